/// Trains the examples on chips of a real PJRT plug-in for CPUs: in one process and in several,
/// beside weft's own engine, and while workers are killed or stopped. WEFT_KILLS sets the number of
/// kills; the default is 3. WEFT_TEST_PLUGIN=xla-cpu-pjrt takes the older plug-in.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "tests/fault/killer.hpp"
#include "tests/fault/watched_run.hpp"
#include "tests/support/drawn_digits.hpp"
#include "tests/support/real_plugins.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::pjrt_test {
namespace {

using testing::AppProcess;
using testing::TemporaryFolder;
using testing::wait_until;
using testing::WatchedRun;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr std::size_t kComparedSteps = 50;

class PjrtExamples : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto plugins = testing::real_plugins();
    if (plugins.empty()) GTEST_SKIP() << testing::kNoRealPlugins;
    variables_ = {"WEFT_PJRT_PLUGIN=" + plugins.front().path,
                  "WEFT_COMPILE_CACHE=" + folder_.path() + "/compiled"};
  }

  /// Returns the words of a run whose result the test reads.
  static Words with(const Words& example, const Words& layout, const std::string& device) {
    Words words = example;
    words.insert(words.end(), layout.begin(), layout.end());
    words.insert(words.end(), {"--device", device, "--json", "{json}"});
    return words;
  }
  Json result_of(const Words& example, const Words& layout,
                 const std::string& device = "pjrt:cpu") const {
    return finished(with(example, layout, device));
  }
  Json finished(const Words& words) const {
    AppProcess app(words, variables_);
    EXPECT_EQ(app.wait(), 0) << app.output();
    testing::expect_nothing_left(app.result().at("job"));
    return app.result();
  }
  /// Expects that the losses of the first steps differ by at most 1e-4.
  static void expect_near(const Json& found, const Json& expected) {
    const auto losses = found.at("loss_history").get<std::vector<double>>();
    const auto right = expected.at("loss_history").get<std::vector<double>>();
    ASSERT_GE(losses.size(), kComparedSteps);
    ASSERT_EQ(losses.size(), right.size());
    for (std::size_t i = 0; i < kComparedSteps; ++i) {
      ASSERT_NEAR(losses[i], right[i], 1e-4) << "step " << i;
    }
  }
  void expect_losses_of_own_engine(const Words& example) const {
    const Words layout{"--workers", "0", "--chips", "2"};
    expect_near(result_of(example, layout), result_of(example, layout, "cpu"));
  }

  const TemporaryFolder folder_{};
  Words variables_{};
};

const Words kDigits{DIGITS, "--epochs", "3", "--seed", "7"};

TEST_F(PjrtExamples, DigitsHasTheLossesOfTheOwnEngine) { expect_losses_of_own_engine(kDigits); }

TEST_F(PjrtExamples, MnistCnnHasTheLossesOfTheOwnEngine) {
  testing::draw_digits(folder_.path());
  expect_losses_of_own_engine(
      {MNIST_CNN, "--data", folder_.path(), "--batch", "32", "--epochs", "5", "--seed", "5"});
}

TEST_F(PjrtExamples, CharGptHasTheLossesOfTheOwnEngine) {
  expect_losses_of_own_engine({CHAR_GPT, "--layers", "2", "--size", "32", "--heads", "4",
                               "--length", "16", "--batch", "8", "--steps", "50", "--sample", "0",
                               "--seed", "3"});
}

TEST_F(PjrtExamples, ProcessesHaveTheLossesOfOneProcess) {
  const Json one = result_of(kDigits, {"--workers", "0", "--chips", "4"});
  expect_near(result_of(kDigits, {"--workers", "4", "--chips", "1"}), one);
  expect_near(result_of(kDigits, {"--workers", "2", "--chips", "2"}), one);
}

TEST_F(PjrtExamples, KillsAtRandomInstantsChangeNoBitOfTheResult) {
  constexpr int kKillsPerRun = 3;
  Words words = with(kDigits, {"--workers", "4", "--chips", "1"}, "pjrt:cpu");
  words.insert(words.end(), {"--max-failures", "-1"});
  const Json undisturbed = finished(words);
  int kills = 0;
  for (std::uint64_t seed = 1; kills < testing::kill_count(3) && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    WatchedRun run(words, 4, variables_);
    testing::Killer killer(4, seed);
    for (int i = 0; i < kKillsPerRun && !run.over(); ++i) kills += killer.kill_one(run) ? 1 : 0;
    run.expect_result_of(undisturbed);
  }
}

TEST_F(PjrtExamples, WhyNamesTheCollectiveThatAStoppedWorkerHasntReached) {
  WatchedRun run(with({DIGITS, "--epochs", "1000"}, {"--workers", "2", "--chips", "1"}, "pjrt:cpu"),
                 2, variables_);
  wait_until([&] { return run.step() >= 5; });
  ASSERT_TRUE(run.kill(1, SIGSTOP));
  std::string answer;
  wait_until([&] {
    AppProcess why({WEFT, "inspect", "why", run.app().job().substr(0, 32), "--patience", "0.3"});
    why.wait();
    answer = why.output();
    return answer.starts_with("STOPPED") || run.over();
  });
  EXPECT_EQ(answer.find("STOPPED  worker 1"), 0U) << answer;
  EXPECT_NE(answer.find("1 chip of worker 0 in all_reduce #"), std::string::npos) << answer;
  run.kill(1, SIGCONT);
  ::kill(run.app().pid(), SIGINT);
  run.app().wait();
}

}  // namespace
}  // namespace weft::pjrt_test
