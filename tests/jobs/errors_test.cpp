/// Compares the messages about mistakes of a ported program with tests/golden/errors/. These files
/// have the text of a line in mistakes.cpp where the message has the line's number, so each message
/// must name the line of its mistake.

#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "tests/jobs/mistakes.hpp"
#include "tests/jobs/run_loop.hpp"
#include "tests/support/golden.hpp"

namespace weft::errors_test {
namespace {

using testing::expect_golden;
using testing::makes_mistake;
using testing::Mistake;
using testing::run_loop;

std::vector<std::string> lines_of_mistakes() {
  std::ifstream file(std::string(WEFT_TEST_DIR) + "/jobs/mistakes.cpp");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string replaced(const std::string& text, const char* pattern, const char* by) {
  return std::regex_replace(text, std::regex(pattern), by);
}

/// Replaces line numbers with the text of the lines, and masks ids that differ between runs.
std::string steady(std::string message) {
  static const std::vector<std::string> lines = lines_of_mistakes();
  const std::regex place("mistakes\\.cpp:(\\d+)");
  for (std::smatch match; std::regex_search(message, match, place);) {
    std::string line = lines.at(std::stoul(match[1]) - 1);
    line.erase(0, line.find_first_not_of(' '));
    message =
        fmt::format("{}mistakes.cpp: `{}`{}", match.prefix().str(), line, match.suffix().str());
  }
  message = replaced(message, "pid \\d+", "pid N");
  return replaced(message, "thread \\d+", "thread N");
}

void expect_said(const std::string& name, Errc code, const std::string& message) {
  EXPECT_NE(message.find("mistakes.cpp:"), std::string::npos) << message;
  expect_golden("errors/" + name + ".txt",
                fmt::format("{}\n{}\n", to_string(code), steady(message)));
}

class Errors : public ::testing::TestWithParam<Mistake> {};

TEST_P(Errors, NameTheLineTheValuesAndTheRemedy) {
  const auto& [name, workers] = GetParam();
  if (name == "tensor_of_another_job") {
    testing::expect_ok(run_loop(makes_mistake, 0, {{"mistake", "none"}}));
  }
  const Result result = run_loop(makes_mistake, workers, {{"mistake", name}});
  ASSERT_TRUE(result.error);
  expect_said(name, result.error->code, result.error->message);
}

INSTANTIATE_TEST_SUITE_P(All, Errors, ::testing::ValuesIn(testing::mistakes()),
                         [](const auto& mistake) { return mistake.param.name; });

std::optional<Error> thrown_by(void (*make)()) {
  try {
    make();
  } catch (const Error& error) {
    return error;
  }
  return {};
}

TEST(OtherErrors, OfATensorOpOutsideALoop) {
  const auto error = thrown_by(testing::adds_outside_a_loop);
  ASSERT_TRUE(error);
  expect_said("outside_a_loop", error->code(), error->what());
}

TEST(OtherErrors, OfAMeshThatIsNotWorkersTimesChips) {
  const auto error = thrown_by(testing::asks_for_a_mesh_of_other_size);
  ASSERT_TRUE(error);
  expect_said("mesh_of_other_size", error->code(), error->what());
}

}  // namespace
}  // namespace weft::errors_test
