/// Runs actor systems over slots of this machine, which share no memory. The scenarios are in
/// host_actors_app.cpp; host 0 checks their results.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/slots.hpp"
#include "tests/support/stranger.hpp"

namespace weft::host_actors_test {
namespace {

using testing::AppProcess;
using testing::expect_says;
using testing::Slots;
using testing::TemporaryFolder;

constexpr int kKilled = 128 + 9;

/// The hosts of a system.
class HostActors : public ::testing::Test {
 protected:
  /// Starts the hosts of a scenario, waits for their ends, and expects these codes.
  void run(const std::string& scenario, const std::vector<int>& codes) {
    Slots slots({HOST_ACTORS_APP, scenario}, {"STORAGE=" + storage_.path()});
    const int count = static_cast<int>(codes.size());
    for (int host = 0; host < count; ++host) slots.start(host, count);
    for (std::size_t host = 0; host < codes.size(); ++host) {
      EXPECT_EQ(slots.host(host).wait(), codes[host]) << "host " << host << ":\n"
                                                      << slots.host(host).output();
    }
    said_ = slots.host(0).output();
    expect_says(slots.host(0), "as expected");
  }
  const std::string& said() const { return said_; }
  const std::string& storage() const { return storage_.path(); }

 private:
  const TemporaryFolder storage_;
  std::string said_;
};

TEST_F(HostActors, CallEachOtherWithTensorsAndLeaveNothingBehind) {
  run("calls", {0, 0});
  std::size_t hosts = 0;
  std::ifstream lines(storage() + "/memory");
  for (std::string id; std::getline(lines, id); ++hosts) {
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      EXPECT_EQ(entry.path().filename().string().find(id), std::string::npos) << entry.path();
    }
  }
  EXPECT_EQ(hosts, 2);
}

TEST_F(HostActors, GetTheMessagesOfAThreadInTheirOrder) { run("tells", {0, 0}); }
TEST_F(HostActors, SkipCallsWhoseTimeIsOver) { run("deadline", {0, 0}); }
TEST_F(HostActors, AreMadeAgainOnTheirHostAfterAKill) { run("kill", {0, 0}); }
TEST_F(HostActors, AreMadeAgainOnAnotherHostIfTheirsIsLost) { run("lose", {0, kKilled}); }
TEST_F(HostActors, AreMadeAgainOnAnotherHostIfTheirsIsSilent) { run("silence", {0, 1}); }
TEST_F(HostActors, FailTheirSystemWithTheirHostIfNoneIsMadeAgain) { run("give_up", {0, kKilled}); }
TEST_F(HostActors, RefusePipesAndUnknownHosts) { run("refusals", {0, 0}); }
TEST_F(HostActors, AreCalledByALoopOfHost0) { run("job", {0, 0}); }
TEST_F(HostActors, AreReachedAfterASenderWasKilled) { run("kill_a_sender", {0, 0}); }
TEST_F(HostActors, AnswerBesideAFullLane) { run("full_lane", {0, 0}); }
TEST_F(HostActors, AreKilledIfTheyHangOnAnyHost) { run("hang", {0, 0}); }
TEST_F(HostActors, CallEachOtherBetweenTwoAgents) { run("three", {0, 0, kKilled}); }

TEST_F(HostActors, LetNoStrangerIn) {
  Slots slots({HOST_ACTORS_APP, "calls"}, {"STORAGE=" + storage()});
  AppProcess& host_0 = slots.start(0);
  testing::wait_until([&] { return testing::TcpStranger(slots.port()).connected(); });
  const testing::TcpStranger garbage(slots.port());
  garbage.say("GET / HTTP/1.1\r\n\r\n");
  garbage.hear(1);  // waits until the host closes the connection
  std::ofstream(slots.secret()) << "another secret, which has 16 bytes\n";
  AppProcess& other = slots.start(1, 2, {"1"});  // tries to connect for 1 s
  EXPECT_EQ(other.wait(), 1);
  expect_says(other, "host 1 (");
  expect_says(other, "hasn't reached host 0 of actor system \"hosts\"");
  std::ofstream(slots.secret()) << "0123456789abcdef0123456789abcdef\n";
  AppProcess& host_1 = slots.start(1);
  EXPECT_EQ(host_0.wait(), 0) << host_0.output();
  EXPECT_EQ(host_1.wait(), 0) << host_1.output();
  expect_says(host_0, "closed a connection from 127.0.0.1");
}

TEST_F(HostActors, NameTheHostsThatHaventJoined) {
  Slots slots({HOST_ACTORS_APP, "calls", "1"}, {"STORAGE=" + storage()});
  EXPECT_EQ(slots.start(0, 3).wait(), 1);
  expect_says(slots.host(0),
              "actor system \"hosts\": of 3 hosts, these haven't joined within "
              "ActorHosts::timeout_s = 1: 1, 2; start the program there");
}

TEST_F(HostActors, RefuseAHostWithAnotherNumberOfHosts) {
  Slots slots({HOST_ACTORS_APP, "calls", "20"}, {"STORAGE=" + storage()});
  AppProcess& host_0 = slots.start(0, 2);
  AppProcess& host_1 = slots.start(1, 3);
  EXPECT_EQ(host_0.wait(), 1);
  EXPECT_EQ(host_1.wait(), 1);
  expect_says(host_1, "host 0 has ended while the hosts met");
  expect_says(host_0, ") has WEFT_HOSTS = 3, and host 0 has 2: give all hosts the same number");
}

}  // namespace
}  // namespace weft::host_actors_test
