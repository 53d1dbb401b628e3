/// Runs jobs over two slots of this machine, which share no memory: their losses equal those of one
/// memory bit for bit, contradictions between hosts are refused on every host, and errors name lost
/// hosts.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/files/file_bytes.hpp"
#include "tests/support/slots.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/format/plan_file.hpp"

namespace weft::hosts_test {
namespace {

using testing::AppProcess;
using testing::expect_says;
using testing::Slots;
using Json = nlohmann::json;

/// Returns the words for a job of two workers that trains for this number of epochs.
std::vector<std::string> digits(const std::string& epochs) {
  return {DIGITS, "--epochs", epochs, "--workers", "2", "--chips", "1"};
}

/// Expects that two hosts end with errors that contain `text`.
void expect_both_refuse(AppProcess& trainer, AppProcess& other, const std::string& text) {
  EXPECT_NE(trainer.wait(), 0);
  EXPECT_NE(other.wait(), 0);
  expect_says(trainer, text);
  expect_says(other, text);
}

void expect_same_bits(const std::vector<std::string>& words, const std::string& mesh,
                      std::vector<std::string> variables = {}) {
  variables.push_back("WEFT_LAUNCH_MESH=" + mesh);
  const Json alone = testing::in_one_memory(words, variables);
  testing::expect_same_training(Slots(words, variables).run(), alone);
}

TEST(Hosts, TrainDigitsWithTheBitsOfOneMemory) {
  expect_same_bits({DIGITS, "--epochs", "2", "--workers", "4", "--chips", "1", "--json", "{json}"},
                   "data=2x2,model=1");
}

TEST(Hosts, TrainWithTensorParallelismWithinEachHost) {
  expect_same_bits({DIGITS, "--epochs", "2", "--workers", "2", "--chips", "2", "--json", "{json}"},
                   "data=2x1,model=1x2");
}

TEST(Hosts, TrainATransformerWhoseParametersAreShardedWithinEachHost) {
  expect_same_bits({CHAR_GPT, "--workers", "4", "--chips", "1", "--steps", "10", "--layers", "2",
                    "--size", "64", "--fsdp", "--json", "{json}"},
                   "data=2x2,model=1");
}

/// Counts 40 steps on two hosts of two workers. No collective precedes most of the updates.
Json expect_counts(const std::vector<std::string>& more) {
  std::vector<std::string> words{HOST_APP, "--workers", "4",     "--max-failures",
                                 "2",      "--json",    "{json}"};
  words.insert(words.end(), more.begin(), more.end());
  const testing::TemporaryFolder folder;
  words.insert(words.end(), {"--once", folder.path() + "/once"});
  const Json metrics = Slots(words).run();
  EXPECT_EQ(metrics.at("counter"), 40);
  return metrics;
}

TEST(Hosts, UpdateStateThatNoCollectivePrecedes) {
  expect_counts({});
  expect_counts({"--meets-every", "7"});
}

TEST(Hosts, ShiftValuesAlongAnAxisThatIsPartlyWithinHosts) {
  const Json metrics = expect_counts({"--shifts", "--steps", "40"});
  EXPECT_EQ(metrics.at("shifted"), Json({0, 1, 2, 3, 4, 5, 6, 7})) << "40 shifts by 1 of 4";
}

TEST(Hosts, LoseNoStepWithAWorkerOfAnyHost) {
  expect_counts({"--kills", "0"});
  expect_counts({"--kills", "3"});
  expect_counts({"--kills", "2", "--meets-every", "1"});
}

/// Returns why this machine has no UCX; "" if it has.
std::string why_no_ucx() {
  Slots probe({HOST_APP, "--wire", "ucx", "--steps", "1"});
  probe.start(0);
  probe.start(1);
  for (const std::size_t host : {0, 1}) {
    if (probe.host(host).wait() == 0) continue;
    const std::string& text = probe.host(host).output();
    if (text.find("libucx") != text.npos) return text;
  }
  return {};
}

TEST(Hosts, ReduceAndShiftOverUcxAndLoseNoStepWithAWorker) {
  if (const std::string why = why_no_ucx(); !why.empty()) GTEST_SKIP() << why;
  expect_counts({"--wire", "ucx", "--meets-every", "1", "--shifts"});
  expect_counts({"--wire", "ucx", "--meets-every", "1", "--kills", "2"});
}

/// Returns the number of waits in the plans of a folder that end collectives between hosts.
std::size_t waits_in(const std::string& folder) {
  std::size_t waits = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".weftplan") continue;
    const Plan plan = decode_plan(read_file_bytes(file.path(), kPlanBytesMax));
    for (const PlanStep& step : plan.steps) waits += step.kind == StepKind::wait ? 1 : 0;
  }
  return waits;
}

TEST(Hosts, LoseNoStepWithAWorkerThatDiesWhileASumGoesOn) {
  const testing::TemporaryFolder folder;
  const std::string once = folder.path() + "/once";
  std::vector<std::string> words{HOST_APP, "--workers", "4",      "--max-failures",
                                 "2",      "--json",    "{json}", "--adds"};
  for (const char* victim : {"3", "0"}) {
    std::filesystem::remove(once);
    std::vector<std::string> more = words;
    more.insert(more.end(), {"--kills", victim, "--once", once, "--whole"});
    const Json metrics = Slots(more, {"WEFT_DUMP_TO=" + folder.path()}).run();
    EXPECT_TRUE(std::filesystem::exists(once)) << "nobody was killed";
    EXPECT_EQ(metrics.at("counter"), 40);
    EXPECT_EQ(metrics.at("most_total"), 40 * 8);
    EXPECT_EQ(metrics.at("least_total"), 40 * 8);
  }
  EXPECT_GT(waits_in(folder.path()), 0U);
}

TEST(Hosts, TrainWithSumsThatGoOnWithTheBitsOfOneMemory) {
  const testing::TemporaryFolder folder;
  expect_same_bits({CHAR_GPT, "--workers", "2", "--chips", "1", "--steps", "3", "--layers", "2",
                    "--size", "256", "--json", "{json}"},
                   "data=2x1,model=1", {"WEFT_DUMP_TO=" + folder.path()});
  EXPECT_GT(waits_in(folder.path()), 0U);
}

/// If hosts meet by a file, host 0 doesn't know which of its addresses other hosts can reach.
TEST(Hosts, NeedANetworkForUcxIfTheyMeetByAFile) {
  const testing::TemporaryFolder folder;
  const std::vector<std::string> words{HOST_APP,    "--wire",      "ucx",    "--timeout", "60",
                                       "--storage", folder.path(), "--json", "{json}"};
  const auto host = [&](const std::string& index, const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    const std::vector<std::string> variables{"WEFT_HOSTS=2", "WEFT_JOB=ucx",
                                             "WEFT_HOST_INDEX=" + index};
    return std::make_unique<AppProcess>(all, variables);
  };
  const auto refused = host("0", {});
  EXPECT_NE(refused->wait(), 0) << refused->output();
  expect_says(*refused, "backend.wire = Wire::ucx without backend.network");
  if (const std::string why = why_no_ucx(); !why.empty()) GTEST_SKIP() << why;
  const auto trainer = host("0", {"--network", "lo"});
  const auto agent = host("1", {"--network", "lo"});
  EXPECT_EQ(trainer->wait(), 0) << trainer->output();
  EXPECT_EQ(agent->wait(), 0) << agent->output();
}

/// A job of two hosts with two workers each, in which worker 2 sends a signal to the agent of its
/// host after 200 of 400 steps.
class LostHost : public ::testing::Test {
 protected:
  void begin(int signal, const std::vector<std::string>& more) {
    std::vector<std::string> words{HOST_APP,
                                   "--workers",
                                   "4",
                                   "--steps",
                                   "400",
                                   "--once",
                                   once(),
                                   "--signals",
                                   "2",
                                   "--signal",
                                   std::to_string(signal),
                                   "--max-failures",
                                   "3",
                                   "--json",
                                   "{json}",
                                   "--host-timeout",
                                   "3"};
    words.insert(words.end(), more.begin(), more.end());
    slots_ = std::make_unique<Slots>(words);
    slots_->start(0);
    slots_->start(1);
  }
  AppProcess& host(std::size_t index) { return slots_->host(index); }
  std::string once() const { return folder_.path() + "/once"; }
  /// Waits until host 1 is lost, and returns its exit code.
  int wait_for_loss() {
    EXPECT_NE(host(0).wait_for_line("is lost"), "") << host(0).output();
    return host(1).wait();
  }
  /// Expects that host 0, and the host that was started as number `last`, end well.
  void expect_all_steps(std::size_t last) {
    EXPECT_EQ(host(0).wait(), 0) << host(0).output();
    EXPECT_EQ(host(last).wait(), 0) << host(last).output();
    EXPECT_EQ(host(0).result().at("counter"), 400);
  }

  /// Expects that the job continues at step 200, or a few steps before, since the loop is ahead of
  /// the chips.
  void expect_gets_the_state() {
    const std::string& said = host(0).output();
    const bool at_200 = said.find("host 1 gets the state of step 200 from host 0") != said.npos;
    if (!at_200) expect_says(host(0), "host 1 gets the state of step 19");
  }

  const testing::TemporaryFolder folder_;
  std::unique_ptr<Slots> slots_;
};

TEST_F(LostHost, IsReplacedWithoutTheLossOfAStep) {
  begin(SIGKILL, {"--whole"});
  EXPECT_EQ(wait_for_loss(), 128 + SIGKILL);
  slots_->start(1);
  expect_all_steps(2);
  expect_gets_the_state();
}

TEST_F(LostHost, IsReplacedOverUcx) {
  if (const std::string why = why_no_ucx(); !why.empty()) GTEST_SKIP() << why;
  begin(SIGKILL, {"--whole", "--wire", "ucx"});
  EXPECT_EQ(wait_for_loss(), 128 + SIGKILL);
  slots_->start(1);
  expect_all_steps(2);
  expect_gets_the_state();
}

TEST_F(LostHost, BeginsAgainFromACheckpointIfItHadStateOfItsOwn) {
  begin(SIGKILL, {"--meets-every", "1"});
  EXPECT_EQ(wait_for_loss(), 128 + SIGKILL);
  slots_->start(1);
  expect_all_steps(2);
  expect_says(host(0), "the lost host had parts of the state that no other host has");
  expect_says(host(0), "the job continues at step 0");
}

TEST_F(LostHost, ComesBackWithItsMemoryAfterItWasSilent) {
  begin(SIGSTOP, {"--whole"});
  EXPECT_NE(host(0).wait_for_line("is lost: it has been silent for"), "") << host(0).output();
  ::kill(host(1).pid(), SIGCONT);
  expect_all_steps(1);
  expect_says(host(1), "host 1 takes part again, with the state of step");
  EXPECT_EQ(host(0).output().find("gets the state"), std::string::npos) << host(0).output();
}

TEST_F(LostHost, IsReplacedByAProcessThatComesBeforeTheLossIsNoticed) {
  begin(SIGSTOP, {"--whole"});
  testing::wait_until([&] { return std::filesystem::exists(once()); });
  // On a slow machine, the process may come after the loss is noticed. The results are the same.
  slots_->start(1);
  expect_all_steps(2);
  expect_gets_the_state();
  ::kill(host(1).pid(), SIGCONT);
  EXPECT_EQ(host(1).wait(), 1) << host(1).output();
}

TEST_F(LostHost, EndsIfItsPlaceIsTaken) {
  begin(SIGSTOP, {"--whole", "--acts-at", "200", "--steps", "100000000"});
  EXPECT_NE(host(0).wait_for_line("is lost: it has been silent for"), "") << host(0).output();
  slots_->start(1);
  EXPECT_NE(host(0).wait_for_line("the job continues at step"), "") << host(0).output();
  ::kill(host(1).pid(), SIGCONT);
  EXPECT_EQ(host(1).wait(), 1) << host(1).output();
  expect_says(host(1), "another process has its place");
  ::kill(host(0).pid(), SIGINT);
  EXPECT_NE(host(0).wait(), 0);
}

TEST(Hosts, RefuseAnotherWire) {
  Slots slots({HOST_APP, "--workers", "2"});
  AppProcess& trainer = slots.start(0, 2, {"--wire", "ucx"});
  expect_both_refuse(trainer, slots.start(1, 2), "backend.wire = \"tls\", but host 0 has \"ucx\"");
}

TEST(Hosts, RefuseAnotherNumberOfHosts) {
  Slots slots({DIGITS, "--epochs", "1", "--workers", "6", "--chips", "1"});
  AppProcess& trainer = slots.start(0, 2);
  expect_both_refuse(trainer, slots.start(1, 3), "host 1 has WEFT_HOSTS = 3, but host 0 has 2");
}

TEST(Hosts, RefuseOtherOptions) {
  Slots slots({DIGITS, "--epochs", "1", "--chips", "1"});
  AppProcess& trainer = slots.start(0, 2, {"--workers", "4"});
  expect_both_refuse(trainer, slots.start(1, 2, {"--workers", "2"}),
                     "scaling.num_workers = \"2\", but host 0 has \"4\"");
}

TEST(Hosts, RefuseASecretThatOthersMayRead) {
  Slots slots(digits("1"));
  ::chmod(slots.secret().c_str(), 0644);
  AppProcess& trainer = slots.start(0);
  EXPECT_NE(trainer.wait(), 0);
  expect_says(trainer, "chmod 600");
}

TEST(Hosts, GoOnWhenAStrayHostIsRefused) {
  Slots slots(digits("40"));
  slots.train();
  AppProcess& stray = slots.start(1);
  EXPECT_NE(stray.wait(), 0);
  expect_says(stray, "two hosts have WEFT_HOST_INDEX = 1");
  EXPECT_EQ(slots.host(0).wait(), 0) << slots.host(0).output();
  EXPECT_EQ(slots.host(1).wait(), 0) << slots.host(1).output();
}

TEST(Hosts, EndTheJobWhenTheirAgentGetsASignal) {
  Slots slots(digits("100000"));
  slots.train();
  ::kill(slots.host(1).pid(), SIGTERM);
  EXPECT_NE(slots.host(0).wait(), 0);
  EXPECT_NE(slots.host(1).wait(), 0);
  expect_says(slots.host(0), "the agent of host 1 (pid");
  expect_says(slots.host(0), "got SIGTERM");
}

TEST(Hosts, EndAJobWhoseHostIsLost) {
  Slots slots(digits("100000"));
  slots.train();
  ::kill(slots.host(1).pid(), SIGKILL);
  EXPECT_NE(slots.host(0).wait(), 0);
  expect_says(slots.host(0), "host 1 (");
  expect_says(slots.host(0), "is lost");
}

TEST(Hosts, EndWithTheirTrainer) {
  Slots slots(digits("100000"));
  slots.train();
  ::kill(slots.host(0).pid(), SIGKILL);
  EXPECT_EQ(slots.host(1).wait(), 1);
  expect_says(slots.host(1), "the connection to the trainer of host 0 has ended");
}

}  // namespace
}  // namespace weft::hosts_test
