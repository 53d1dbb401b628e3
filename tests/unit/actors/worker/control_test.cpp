#include <weft/actors/worker/control.hpp>

#include <gtest/gtest.h>

#include <thread>

#include <weft/tests/support/expect_error.hpp>

namespace weft {
namespace {

using std::chrono::milliseconds;
using testing::expect_error;

constexpr milliseconds kLong{60'000};

TEST(Control, WaitsUntilTheTrainerAllowsIt) {
  Control control(kLong);
  std::jthread trainer([&] {
    control.start();
    control.admit(1);
    control.grant(10);
  });
  control.wait_started();
  control.wait_admitted(0);
  control.wait_granted(9);
}

TEST(Control, ACancelEndsAWaitWithItsReason) {
  Control control(kLong);
  std::jthread trainer([&] { control.cancel("worker 3 was killed"); });
  expect_error(Errc::cancelled, {"worker 3 was killed"}, [&] { control.wait_admitted(0); });
  expect_error(Errc::cancelled, {"worker 3 was killed"}, [&] { control.begin_run(1, 0); });
  EXPECT_TRUE(control.cancelled());
}

TEST(Control, ATimeoutSaysWhatWasWaitedFor) {
  Control control(milliseconds(1));
  expect_error(Errc::timeout, {"lease", "0.001 s"}, [&] { control.wait_granted(0); });
  EXPECT_FALSE(control.wait_stopped(milliseconds(1)));
}

TEST(Control, ARunThatAnotherWorkerTakesNoPartInIsADivergence) {
  Control control(kLong);
  control.begin_run(1, 0);
  EXPECT_FALSE(control.loop_ended(2, 1));
  expect_error(Errc::program_divergence, {"worker 2", "after 1 programs"},
               [&] { control.begin_run(2, 0); });
}

TEST(Control, NoticesARunThatHasBegunAlready) {
  Control control(kLong);
  control.begin_run(1, 0);
  control.begin_run(2, 0);
  const auto wrong = control.loop_ended(2, 1);
  ASSERT_TRUE(wrong);
  EXPECT_NE(wrong->find("number 2"), std::string::npos);
}

/// Another worker asks for a new program in a run that this one makes with one it knows.
TEST(Control, ShowsTheKnownProgramOfARunThatIsAskedFor) {
  const auto start = [](Control& control) {
    control.shown({.worker = 0, .sequence = 0, .run = 1, .text = "known"});
    control.begin_run(1, 0);
  };
  Control late(kLong);
  start(late);
  late.begin_run(2, 0);
  const auto known = late.asked(1, 2);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->sequence, 1U);
  EXPECT_EQ(known->run, 2U);
  EXPECT_EQ(known->text, "known");

  Control early(kLong);
  start(early);
  EXPECT_FALSE(early.asked(1, 2));
  EXPECT_TRUE(early.begin_run(2, 0));
}

TEST(Control, ShowsNothingWhereItRunsTheNewProgramToo) {
  Control control(kLong);
  EXPECT_FALSE(control.asked(0, 1));
  control.shown({.worker = 0, .sequence = 0, .run = 1});
  EXPECT_FALSE(control.begin_run(1, 0));
}

}  // namespace
}  // namespace weft
