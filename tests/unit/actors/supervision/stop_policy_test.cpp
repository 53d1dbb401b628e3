#include "actors/supervision/stop_policy.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace weft {
namespace {

using Verdict = StopPolicy::Verdict;

class StopPolicyTest : public ::testing::Test {
 protected:
  Verdict signal(int signal, int at_ms, bool over = false) {
    return policy.on_signal(signal, StopPolicy::Time() + std::chrono::milliseconds(at_ms), over);
  }
  StopPolicy policy;
};

TEST_F(StopPolicyTest, TheFirstSigtermStartsTheGraceHoweverOftenItComes) {
  EXPECT_EQ(signal(SIGTERM, 0), Verdict::preempt);
  for (const int at_ms : {0, 1, 700, 2000}) EXPECT_EQ(signal(SIGTERM, at_ms), Verdict::ignore);
}

TEST_F(StopPolicyTest, ASecondSigtermAfterTwoSecondsCancels) {
  signal(SIGTERM, 100);
  EXPECT_EQ(signal(SIGTERM, 2101), Verdict::cancel);
}

TEST_F(StopPolicyTest, OtherSignalsCancelAtOnce) {
  for (const int other : {SIGINT, SIGHUP}) {
    policy = {};
    EXPECT_EQ(signal(other, 0), Verdict::cancel);
    policy = {};
    signal(SIGTERM, 0);
    EXPECT_EQ(signal(other, 1), Verdict::cancel);
  }
}

TEST_F(StopPolicyTest, ASignalToAJobThatIsOverEndsTheProcess) {
  EXPECT_EQ(signal(SIGTERM, 0, true), Verdict::leave);
  EXPECT_EQ(signal(SIGINT, 1, true), Verdict::leave);
}

/// The job has saved, and ended, before the group got its SIGTERM.
TEST_F(StopPolicyTest, WhatComesWithTheFirstSigtermNeverEndsTheProcess) {
  signal(SIGTERM, 0);
  EXPECT_EQ(signal(SIGTERM, 1, true), Verdict::ignore);
  EXPECT_EQ(signal(SIGTERM, 2001, true), Verdict::leave);
}

}  // namespace
}  // namespace weft
