/// Tests fit() calls of loops without names: main() runs again in each worker, and the call that it
/// reaches there is either the job's own call or is refused.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/support/app_process.hpp"

namespace weft::nameless_test {
namespace {

struct Lines {
  int right = 0;
  int wrong = 0;
  std::vector<std::string> refusals;
};

Lines run(const char* mode) {
  const std::string storage = (std::filesystem::temp_directory_path() / "weft-embed").string();
  testing::AppProcess app({NAMELESS_APP, mode}, {"WEFT_TEST_STORAGE=" + storage});
  EXPECT_EQ(app.wait(), 0) << app.output();
  Lines lines;
  std::istringstream output(app.output());
  for (std::string line; std::getline(output, line);) {
    if (line == "right") ++lines.right;
    if (line.starts_with("wrong")) ++lines.wrong;
    if (line.starts_with("refused: ")) lines.refusals.push_back(line);
  }
  EXPECT_EQ(lines.wrong, 0) << app.output();
  return lines;
}

void expect_words(const std::string& text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' isn't in: " << text;
  }
}

int rounds() {
  const char* given = std::getenv("WEFT_EMBED_ROUNDS");
  return given != nullptr ? std::atoi(given) : 5;
}

TEST(Nameless, TwoThreadsNeverGetEachOthersLoop) {
  for (int round = 0; round < rounds(); ++round) {
    const Lines lines = run("race");
    EXPECT_EQ(lines.right + static_cast<int>(lines.refusals.size()), 2);
    for (const std::string& refusal : lines.refusals) {
      expect_words(refusal, {"weft::worker_main(argc, argv)", "weft::Loop"});
    }
  }
}

/// Expects that the program, which tries to run `loops` loops in this mode, refuses all of them.
void expect_refused_captures(const char* mode, std::size_t loops) {
  const Lines lines = run(mode);
  EXPECT_EQ(lines.right, 0);
  ASSERT_EQ(lines.refusals.size(), loops);
  for (const std::string& refusal : lines.refusals) {
    expect_words(refusal, {"nameless_app.cpp:", "captures", "loop_config", "num_workers = 0"});
  }
}

TEST(Nameless, LoopsWithCapturesAreRefused) { expect_refused_captures("captures", 5); }

TEST(Nameless, LoopsWithCapturesAreRefusedOnThreads) {
  expect_refused_captures("captures_on_threads", 10);
}

TEST(Nameless, LoopsWithCapturesAreRefusedWhereMainBranchesByTheEnvironment) {
  expect_refused_captures("captures_by_environment", 5);
}

TEST(Nameless, LoopsWithCapturesRunWithoutWorkers) {
  EXPECT_EQ(run("captures_without_workers").right, 1);
}

TEST(Nameless, AnotherFunctionAtTheSameLineIsRefused) {
  const Lines lines = run("functions_by_environment");
  ASSERT_EQ(lines.refusals.size(), 1U);
  expect_words(lines.refusals.front(), {"reached fit() #1", "its job is fit() #1"});
}

TEST(Nameless, AMainThatBranchesIsRefusedWithBothCalls) {
  const Lines lines = run("branches");
  ASSERT_EQ(lines.refusals.size(), 1U);
  expect_words(lines.refusals.front(),
               {"worker ", "reached fit() #1 at nameless_app.cpp:",
                "its job is fit() #1 at nameless_app.cpp:", "weft::worker_main(argc, argv)"});
}

TEST(Nameless, AConfigThatDiffersIsRefused) {
  const Lines lines = run("other_config");
  ASSERT_EQ(lines.refusals.size(), 1U);
  expect_words(lines.refusals.front(), {"reached fit() #1", "config "});
}

TEST(Nameless, RunOnAnotherThreadThanMains) { EXPECT_EQ(run("background").right, 1); }

TEST(Nameless, RunOneAfterTheOther) { EXPECT_EQ(run("one_after_the_other").right, 3); }

TEST(Nameless, ALoopWithANameNeedsWorkerMain) {
  const Lines lines = run("named");
  ASSERT_EQ(lines.refusals.size(), 1U);
  expect_words(lines.refusals.front(), {"loop \"named\"", "`weft::worker_main(argc, argv);`"});
}

TEST(Nameless, AreNotStartedInTheBackground) {
  const Lines lines = run("start");
  ASSERT_EQ(lines.refusals.size(), 1U);
  expect_words(lines.refusals.front(), {"start() at nameless_app.cpp:", "give the loop a name"});
}

TEST(Nameless, AProgramThatAWorkerStartsIsNoWorker) { EXPECT_EQ(run("grandchild").right, 1); }

}  // namespace
}  // namespace weft::nameless_test
