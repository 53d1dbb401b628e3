/// Tests the example actor_learner. WEFT_KILLS=200 kills 200 of its processes, one after another.

#include <gtest/gtest.h>

#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/app_process.hpp"
#include "tests/support/children.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::actor_learner_test {
namespace {

/// Returns the step in the program's next line "step N: ..."; 0 if its output has ended.
std::uint64_t next_step(testing::AppProcess& app) {
  const std::string line = app.wait_for_line("step ");
  return line.empty() ? 0 : std::stoull(line.substr(5));
}

std::vector<std::string> command(const std::string& folder, std::uint64_t steps,
                                 const std::string& until) {
  return {ACTOR_LEARNER,    "--steps", std::to_string(steps), "--until", until,
          "--storage-path", folder};
}

TEST(ActorLearner, LearnsToBalanceThePole) {
  const testing::TemporaryFolder folder;
  testing::AppProcess app(command(folder.path(), 5000, "100"));
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_NE(app.output().find("the learner has ended after "), std::string::npos) << app.output();
}

TEST(ActorLearner, GoesOnAfterKills) {
  const char* variable = std::getenv("WEFT_KILLS");
  const std::uint64_t kills = variable == nullptr ? 4 : std::strtoull(variable, nullptr, 10);
  const testing::TemporaryFolder folder;
  testing::AppProcess app(command(folder.path(), 100 * kills + 300, "501"));
  const std::string job = app.job();
  std::mt19937_64 random(kills);
  std::uint64_t step = next_step(app);
  // If a fast learner takes all its steps before `kills` processes have been killed, its output
  // ends, and `step` is 0.
  std::uint64_t killed = 0;
  while (killed < kills && step != 0) {
    const std::vector<pid_t> children = testing::children_of(app.pid());
    if (!children.empty()) killed += kill(children[random() % children.size()], SIGKILL) == 0;
    const std::uint64_t before = step;
    do step = next_step(app);
    while (step != 0 && step <= before);
  }
  EXPECT_GT(killed, 0) << app.output();
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_NE(
      app.output().find(fmt::format("the learner has ended after {} steps", 100 * kills + 300)),
      std::string::npos)
      << app.output();
  testing::expect_nothing_left(job);
}

}  // namespace
}  // namespace weft::actor_learner_test
