#include "actors/supervision/members.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weft::members_test {
namespace {

class MembersTest : public ::testing::Test {
 protected:
  MembersTest() {
    for (int worker = 0; worker < 3; ++worker)
      members.add(worker, "link " + std::to_string(worker));
  }
  /// Returns the workers to which an action is sent.
  std::vector<int> told(const Action& action) {
    std::vector<int> workers;
    members.tell(action, [&](int worker, const std::string&) { workers.push_back(worker); });
    return workers;
  }
  Members<std::string> members;
};

using Workers = std::vector<int>;

TEST_F(MembersTest, EveryMemberIsToldButTheOneThatAnActionIsAbout) {
  EXPECT_EQ(told(Start{}), Workers({0, 1, 2}));
  EXPECT_EQ(told(action::Grant{}), Workers({0, 1, 2}));
  EXPECT_EQ(told(action::Cancel{}), Workers({0, 1, 2}));
  EXPECT_EQ(told(action::Asked{.worker = 1}), Workers({0, 2}));
  EXPECT_EQ(told(action::PeerEnded{.worker = 2, .runs = 9, .last = {}}), Workers({0, 1}));
}

TEST_F(MembersTest, Worker0JoinsThePartsOfCheckpoints) {
  EXPECT_EQ(told(action::JoinParts{}), Workers{0});
}

TEST_F(MembersTest, NobodyIsToldOfProcessesAndTimers) {
  EXPECT_EQ(told(action::Kill{.worker = 1}), Workers());
  EXPECT_EQ(told(action::Backoff{.worker = 1}), Workers());
  EXPECT_EQ(told(action::GatherDeadline{}), Workers());
  EXPECT_EQ(told(action::Grace{}), Workers());
  EXPECT_EQ(told(action::LinkGrace{}), Workers());
  EXPECT_EQ(told(action::Warn{}), Workers());
}

TEST_F(MembersTest, AProcessWhoseWorkerIsStartedAgainIsNoMember) {
  EXPECT_TRUE(members.has("link 1"));
  EXPECT_EQ(told(action::Launch{.worker = 1}), Workers());
  EXPECT_FALSE(members.has("link 1"));
  EXPECT_EQ(told(action::Stop{}), Workers({0, 2}));
  EXPECT_FALSE(members.remove("link 1")) << "its link ends late";
  members.add(1, "new link");
  EXPECT_TRUE(members.has("new link"));
  EXPECT_EQ(members.remove("new link"), 1);
}

TEST_F(MembersTest, ALinkReplacesTheOneBefore) {
  members.add(1, "new link");
  EXPECT_FALSE(members.has("link 1"));
  EXPECT_EQ(told(action::Stop{}), Workers({0, 1, 2}));
}

}  // namespace
}  // namespace weft::members_test
