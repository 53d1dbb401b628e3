/// Tests jobs over two slots of this machine that lose workers and hosts, at random moments and in
/// all ways that need no root. WEFT_HOST_LOSSES sets the number of losses, and WEFT_SEED=N chooses
/// other ones.

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/support/children.hpp"
#include "tests/support/slots.hpp"

namespace weft::hosts_losses_test {
namespace {

using testing::AppProcess;
using testing::Slots;
using Json = nlohmann::json;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// A job on two hosts with two workers each, to which losses happen. Between losses, a random
/// number of lines of the training passes.
class LossyJob {
 public:
  LossyJob(const std::vector<std::string>& words, const std::vector<std::string>& variables,
           std::mt19937_64& random)
      : slots_(words, variables), random_(random) {
    slots_.start(0);
    slots_.start(1);
  }

  /// Makes losses until the job has ended, and returns how many workers and hosts it has lost.
  std::uint64_t lose() {
    const std::vector<std::function<void()>> kinds{[&] { kill_a_worker(trainer()); },
                                                   [&] { kill_a_worker(agent()); },
                                                   [&] { kill_agent(); },
                                                   [&] { kill_machine(); },
                                                   [&] { kill_on_both(); },
                                                   [&] { stop_agent_for_a_moment(); },
                                                   [&] { silence_agent(false); },
                                                   [&] { silence_agent(true); }};
    while (trains_on()) kinds[random_() % kinds.size()]();
    EXPECT_EQ(trainer().wait(), 0) << trainer().output();
    // If the job ended before the last agent could join, this agent waits for another job.
    const bool has_joined =
        trainer().output().find(fmt::format("pid {}) joined", agent().pid())) != std::string::npos;
    if (!has_joined) ::kill(agent().pid(), SIGKILL);
    EXPECT_EQ(agent().wait(), has_joined ? 0 : 128 + SIGKILL)
        << agent().output() << trainer().output();
    return losses_;
  }
  Json result() { return trainer().result(); }
  const std::string& output() { return trainer().output(); }

 private:
  AppProcess& trainer() { return slots_.host(0); }
  AppProcess& agent() { return slots_.host(agent_); }
  /// Waits for one to three more lines of the training. Returns false if the job has ended.
  bool trains_on() {
    for (std::uint64_t lines = 1 + random_() % 3; lines > 0; --lines) {
      if (trainer().wait_for_line("epoch").empty()) return false;
    }
    return true;
  }
  bool sees_the_loss() { return !trainer().wait_for_line("is lost").empty(); }
  void start_agent() {
    agent_ += 1;
    slots_.start(1);
  }
  void kill_a_worker(AppProcess& host) {
    const std::vector<pid_t> workers = testing::children_of(host.pid());
    if (workers.empty()) return;
    losses_ += ::kill(workers[random_() % workers.size()], SIGKILL) == 0;
  }
  void kill_agent() {
    ::kill(agent().pid(), SIGKILL);
    losses_ += 1;
    agent().wait();
    start_agent();
  }
  void kill_machine() {
    const std::vector<pid_t> workers = testing::children_of(agent().pid());
    ::kill(agent().pid(), SIGSTOP);  // so that it can't report its workers' deaths
    for (const pid_t worker : workers) ::kill(worker, SIGKILL);
    kill_agent();
  }
  void kill_on_both() {
    kill_a_worker(trainer());
    kill_agent();
  }
  /// Stops the agent briefly. The job may consider the host lost, or may not notice.
  void stop_agent_for_a_moment() {
    ::kill(agent().pid(), SIGSTOP);
    kill_a_worker(agent());
    ::kill(agent().pid(), SIGCONT);
  }
  /// Stops the agent until the job considers the host lost. Then the host comes back, or is
  /// replaced and ends when it finds another process in its place.
  void silence_agent(bool is_replaced) {
    AppProcess& silent = agent();
    ::kill(silent.pid(), SIGSTOP);
    if (random_() % 2 == 0) kill_a_worker(silent);
    const bool is_lost = sees_the_loss();
    losses_ += is_lost;
    if (is_lost && is_replaced) {
      start_agent();
      trains_on();
      ::kill(silent.pid(), SIGCONT);
      EXPECT_EQ(silent.wait(), 1) << silent.output();
    }
    ::kill(silent.pid(), SIGCONT);
  }

  Slots slots_;
  std::mt19937_64& random_;
  std::size_t agent_ = 1;  ///< the number of the start of the current host 1
  std::uint64_t losses_ = 0;
};

TEST(HostLosses, ChangeNoBitOfTheTraining) {
  const std::uint64_t losses = number_from("WEFT_HOST_LOSSES", 25);
  const std::uint64_t seed = number_from("WEFT_SEED", 1);
  const std::vector<std::string> words{DIGITS,   "--epochs",       "30", "--workers",
                                       "4",      "--chips",        "1",  "--json",
                                       "{json}", "--max-failures", "-1"};
  const std::vector<std::string> variables{"WEFT_LAUNCH_MESH=data=2x2,model=1", "WEFT_LOG=info"};
  const Json expected = testing::in_one_memory(words, variables);
  std::mt19937_64 random(seed);
  for (std::uint64_t lost = 0; lost < losses;) {
    LossyJob job(words, variables, random);
    lost += job.lose();
    testing::expect_same_training(job.result(), expected);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " after " << lost << " losses\n"
                               << job.output();
  }
}

}  // namespace
}  // namespace weft::hosts_losses_test
