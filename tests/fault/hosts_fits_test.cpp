/// Tests fit() calls over two hosts, which are slots of this machine: host 1 follows host 0 from
/// call to call, and if their calls differ, the output says how.

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/slots.hpp"

namespace weft::hosts_fits_test {
namespace {

using testing::AppProcess;
using testing::expect_says;
using testing::Slots;
using Json = nlohmann::json;

/// Returns the command of a program with two fit() calls. The number of steps that the first job
/// has counted is added to the steps of the second job.
std::vector<std::string> two_calls(const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{HOST_APP, "--workers", "4", "--meets-every", "1",      "--steps",
                                 "20",     "--calls",   "2", "--whole",       "--json", "{json}"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class HostFits : public ::testing::Test {
 protected:
  std::vector<std::string> stored(std::vector<std::string> words) const {
    words.insert(words.end(), {"--storage", folder_.path()});
    return words;
  }
  std::string once() const { return folder_.path() + "/once"; }

  const testing::TemporaryFolder folder_;
};

TEST_F(HostFits, RunTwoJobsWithTheBitsOfOneMemory) {
  const std::vector<std::string> mesh{"WEFT_LAUNCH_MESH=data=2x2"};
  const Json alone = testing::in_one_memory(stored(two_calls()), mesh);
  EXPECT_EQ(alone.at("counter"), 40);
  Slots slots(stored(two_calls()), mesh);
  EXPECT_EQ(slots.run(), alone);
  expect_says(slots.host(0), "between two calls");
  EXPECT_EQ(slots.host(1).output().find("between two calls"), std::string::npos);
}

TEST_F(HostFits, MeetByAFileForEachJob) {
  const auto host = [&](const std::string& index) {
    return std::make_unique<AppProcess>(
        stored(two_calls()),
        std::vector<std::string>{"WEFT_HOSTS=2", "WEFT_JOB=twice", "WEFT_HOST_INDEX=" + index});
  };
  const auto trainer = host("0");
  const auto agent = host("1");
  EXPECT_EQ(trainer->wait(), 0) << trainer->output();
  EXPECT_EQ(agent->wait(), 0) << agent->output();
  EXPECT_EQ(trainer->result().at("counter"), 40);
}

TEST_F(HostFits, RunAJobOfAnotherLoopWithOtherNumbersOfWorkers) {
  for (const char* workers : {"2", "6"}) {
    Slots slots(stored({HOST_APP, "--workers", "4", "--steps", "3", "--json", "{json}",
                        "--then-workers", workers}));
    EXPECT_EQ(slots.run().at("chips"), std::stoi(workers));
  }
}

TEST_F(HostFits, ReplaceAHostThatIsLostInTheSecondJob) {
  Slots slots(stored(
      two_calls({"--max-failures", "3", "--signals", "2", "--acts-at", "30", "--once", once()})));
  slots.start(0);
  slots.start(1);
  EXPECT_NE(slots.host(0).wait_for_line("is lost"), "") << slots.host(0).output();
  EXPECT_EQ(slots.host(1).wait(), 128 + SIGKILL);
  slots.start(1);
  EXPECT_EQ(slots.host(0).wait(), 0) << slots.host(0).output();
  EXPECT_EQ(slots.host(2).wait(), 0) << slots.host(2).output();
  EXPECT_EQ(slots.host(0).result().at("counter"), 40);
}

TEST_F(HostFits, RunAJobAfterOneThatHasFailed) {
  Slots slots(stored(two_calls({"--kills", "2", "--acts-at", "10", "--once", once()})));
  EXPECT_EQ(slots.run().at("counter"), 20) << "the first job has no result to continue from";
  expect_says(slots.host(0), "worker 2");
}

TEST_F(HostFits, ThrowOnAllHostsWhatACallHasThrownOnHost0) {
  Slots slots(stored(two_calls({"--catches"})));
  slots.start(0, 2, {"--first-storage", "/dev/null/runs"});
  slots.start(1);
  EXPECT_EQ(slots.finish().at("counter"), 20);
  const std::string thrown = "the first call has thrown: ";
  expect_says(slots.host(0), thrown);
  const std::string& said = slots.host(0).output();
  const std::size_t at = said.find(thrown);
  expect_says(slots.host(1), said.substr(at, said.find('\n', at) - at));
}

TEST_F(HostFits, SayOnBothHostsThatOnlyHost0CallsAgain) {
  Slots slots(stored(two_calls({"--last-timeout", "5"})));
  AppProcess& trainer = slots.start(0);
  AppProcess& other = slots.start(1, 2, {"--ends-early"});
  EXPECT_NE(trainer.wait(), 0);
  expect_says(trainer, "host 1 (");
  expect_says(trainer, "has not joined");
  EXPECT_EQ(other.wait(), 0);
  expect_says(other, "host 1 ends after fit() #1, but host 0 has begun another fit()");
}

TEST_F(HostFits, SayOnTheHostThatCallsThatHost0DoesNot) {
  Slots slots(stored(two_calls({"--timeout", "2"})));
  AppProcess& trainer = slots.start(0, 2, {"--calls", "0"});
  AppProcess& other = slots.start(1);
  EXPECT_EQ(trainer.wait(), 0);
  EXPECT_NE(other.wait(), 0);
  expect_says(other, "host 1 has not reached host 0 within backend.timeout_s");
}

TEST_F(HostFits, EndWithHost0ThoughAChildOfItLives) {
  Slots slots(stored(two_calls()));
  const std::string file = folder_.path() + "/child";
  AppProcess& trainer = slots.start(0, 2, {"--leaves-child", file});
  AppProcess& other = slots.start(1);
  EXPECT_EQ(trainer.wait(), 0) << trainer.output();
  EXPECT_EQ(other.wait(), 0) << other.output();
  pid_t child = 0;
  std::ifstream(file) >> child;
  ASSERT_GT(child, 0);
  EXPECT_EQ(::kill(child, SIGKILL), 0) << "the child has ended before host 1";
}

TEST_F(HostFits, RefuseAnotherCall) {
  Slots slots(stored(two_calls()));
  AppProcess& trainer = slots.start(0, 2, {"--calls", "1"});
  AppProcess& other = slots.start(1);
  EXPECT_NE(trainer.wait(), 0);
  EXPECT_NE(other.wait(), 0);
  for (const AppProcess* host : {&trainer, &other}) {
    expect_says(*host, "host 1 (");
    expect_says(*host, "source line of the loop = \"host_app.cpp:");
  }
}

/// A program in which host 0 pauses between two fit() calls, so that host 1 waits for it.
class PausedHosts : public HostFits {
 protected:
  void SetUp() override {
    slots_ = std::make_unique<Slots>(stored(two_calls({"--pause", pause()})),
                                     std::vector<std::string>{"WEFT_LOG=info"});
    slots_->start(0);
    slots_->start(1);
    EXPECT_NE(host(0).wait_for_line("between two calls"), "") << host(0).output();
    EXPECT_NE(host(1).wait_for_line("waits for the next fit() of host 0"), "") << host(1).output();
  }
  AppProcess& host(std::size_t start) { return slots_->host(start); }
  std::string pause() const { return folder_.path() + "/pause"; }

  std::unique_ptr<Slots> slots_;
};

TEST_F(PausedHosts, GoOnWithTheNextCall) {
  std::ofstream(pause()) << "over\n";
  EXPECT_EQ(slots_->finish().at("counter"), 40);
}

TEST_F(PausedHosts, EndWithHost0) {
  ::kill(host(0).pid(), SIGKILL);
  EXPECT_EQ(host(1).wait(), 0) << host(1).output();
}

/// While host 1 is stopped, another process takes the address and the secret of host 0.
TEST_F(PausedHosts, EndThoughAnotherHost0Comes) {
  ::kill(host(1).pid(), SIGSTOP);
  ::kill(host(0).pid(), SIGKILL);
  EXPECT_EQ(host(0).wait(), 128 + SIGKILL);
  AppProcess& next = slots_->start(0);
  EXPECT_NE(next.wait_for_line("control at tls://"), "") << next.output();
  ::kill(host(1).pid(), SIGCONT);
  EXPECT_EQ(host(1).wait(), 0) << host(1).output();
  std::ofstream(pause()) << "over\n";
  AppProcess& other = slots_->start(1);
  EXPECT_EQ(next.wait(), 0) << next.output();
  EXPECT_EQ(other.wait(), 0) << other.output();
  EXPECT_EQ(next.result().at("counter"), 40);
}

}  // namespace
}  // namespace weft::hosts_fits_test
