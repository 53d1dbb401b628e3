/// Runs jobs over machines that are namespaces of this machine, and disturbs the network between
/// them: links that are down for a while or for ever, machines that vanish, slow links. Needs root
/// and is skipped elsewhere.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/drawn_digits.hpp"
#include "tests/support/slots.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::hosts_net_test {
namespace {

using testing::AppProcess;
using testing::expect_says;
using testing::NetMachines;
using testing::Slots;
using Json = nlohmann::json;

/// A fixture with two machines and a spare one.
class HostsNet : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!machines_.why_not().empty()) GTEST_SKIP() << machines_.why_not();
  }

  void expect_same_bits(const std::vector<std::string>& words) {
    const std::vector<std::string> variables{"WEFT_LAUNCH_MESH=data=2x2,model=1"};
    const Json alone = testing::in_one_memory(words, variables);
    testing::expect_same_training(Slots(words, variables, &machines_).run(), alone);
  }

  /// Starts a job whose worker 2, which is on host 1, waits at step 200 of 400 until go() is
  /// called. Returns when it waits there.
  void begin_and_wait_at_200() {
    slots_ = std::make_unique<Slots>(
        std::vector<std::string>{HOST_APP, "--workers", "4", "--steps", "400", "--whole", "--waits",
                                 "2", "--once", gate(), "--max-failures", "3", "--host-timeout",
                                 "3", "--json", "{json}"},
        std::vector<std::string>{"WEFT_LOG=info"}, &machines_);
    slots_->start(0);
    slots_->start(1);
    testing::wait_until([&] { return std::filesystem::exists(gate() + ".waits"); });
  }
  void go() { std::ofstream(gate()) << "go\n"; }
  AppProcess& host(std::size_t start) { return slots_->host(start); }
  /// Expects that host 0, and the host that was started as number `last`, end well.
  void expect_all_steps(std::size_t last) {
    EXPECT_EQ(host(0).wait(), 0) << host(0).output();
    EXPECT_EQ(host(last).wait(), 0) << host(last).output() << host(0).output();
    EXPECT_EQ(host(0).result().at("counter"), 400);
  }
  std::string gate() const { return folder_.path() + "/gate"; }

  const testing::TemporaryFolder folder_;
  NetMachines machines_{3};
  std::unique_ptr<Slots> slots_;
};

TEST_F(HostsNet, TrainDigitsWithTheBitsOfOneMemory) {
  expect_same_bits({DIGITS, "--epochs", "2", "--workers", "4", "--chips", "1", "--json", "{json}"});
}

TEST_F(HostsNet, TrainAConvolutionalNetOverASlowLinkWithTheBitsOfOneMemory) {
  for (const int machine : {0, 1}) {
    if (!machines_.limit(machine, 100)) GTEST_SKIP() << "this kernel has no tbf";
  }
  testing::draw_digits(folder_.path());
  expect_same_bits({MNIST_CNN, "--data", folder_.path(), "--batch", "32", "--epochs", "1",
                    "--workers", "4", "--chips", "1", "--json", "{json}"});
}

TEST_F(HostsNet, NoticeNothingOfALinkThatIsDownForAMoment) {
  begin_and_wait_at_200();
  machines_.set_link(1, false);
  machines_.set_link(1, true);
  go();
  expect_all_steps(1);
  EXPECT_EQ(host(0).output().find("is lost"), std::string::npos) << host(0).output();
}

TEST_F(HostsNet, TakeAHostBackWhoseLinkIsUpAgain) {
  begin_and_wait_at_200();
  machines_.set_link(1, false);
  EXPECT_NE(host(0).wait_for_line("is lost: it has been silent for"), "") << host(0).output();
  EXPECT_NE(host(1).wait_for_line("the trainer of host 0 has been silent for"), "")
      << host(1).output();
  go();
  machines_.set_link(1, true);
  expect_all_steps(1);
  expect_says(host(1), "host 1 takes part again, with the state of step");
  EXPECT_EQ(host(0).output().find("gets the state"), std::string::npos) << host(0).output();
}

TEST_F(HostsNet, TakeAHostBackManyTimes) {
  begin_and_wait_at_200();
  for (int time = 0; time < 3; ++time) {
    machines_.set_link(1, false);
    EXPECT_NE(host(0).wait_for_line("is lost: it has been silent for"), "") << host(0).output();
    machines_.set_link(1, true);
    EXPECT_NE(host(0).wait_for_line("the job continues at step"), "") << host(0).output();
  }
  go();
  expect_all_steps(1);
}

TEST_F(HostsNet, ReplaceAMachineThatVanishesByTheSpareOne) {
  begin_and_wait_at_200();
  machines_.set_link(1, false);  // so that the kill closes no connection
  ::kill(host(1).pid(), SIGKILL);
  EXPECT_NE(host(0).wait_for_line("is lost: it has been silent for"), "") << host(0).output();
  go();
  slots_->start_on(2, 1);
  expect_all_steps(2);
  expect_says(host(0), "host 1 gets the state of step");
}

TEST_F(HostsNet, EndAMachineWhoseReplacementHasItsPlace) {
  begin_and_wait_at_200();
  machines_.set_link(1, false);
  EXPECT_NE(host(0).wait_for_line("is lost: it has been silent for"), "") << host(0).output();
  slots_->start_on(2, 1);
  EXPECT_NE(host(0).wait_for_line("the job continues at step"), "") << host(0).output();
  machines_.set_link(1, true);
  EXPECT_EQ(host(1).wait(), 1) << host(1).output();
  expect_says(host(1), "another process has its place");
  go();
  expect_all_steps(2);
}

}  // namespace
}  // namespace weft::hosts_net_test
