#include "tools/weft/launch/options.hpp"

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tools/weft/launch/shell_word.hpp"

namespace weft::options_test {
namespace {

LaunchOptions parse(const std::string& line) {
  LaunchOptions options;
  CLI::App app;
  CLI::App* launch = app.add_subcommand("launch", "");
  add_options(*launch, options);
  app.parse("launch " + line);
  return options;
}

TEST(LaunchOptions, LeaveTheProgramItsOwnWords) {
  const std::vector<std::string> command{"./app", "-n", "8", "--only", "x", "--epochs=3"};
  EXPECT_EQ(parse("-n 4 -- ./app -n 8 --only x --epochs=3").command, command);
  const LaunchOptions as_mpirun = parse("-n 4 --only 1,2 --env A=1 ./app -n 8 --only x --epochs=3");
  EXPECT_EQ(as_mpirun.command, command);
  EXPECT_EQ(as_mpirun.workers, 4);
  EXPECT_EQ(as_mpirun.only, (std::vector<int>{1, 2}));
}

TEST(LaunchOptions, MayBeRepeatedWhereTheyAreLists) {
  const LaunchOptions options = parse("--env A=1 --env B=2,3 --only 0 --only 3 -- ./app");
  EXPECT_EQ(options.environment, (std::vector<std::string>{"A=1", "B=2,3"}));
  EXPECT_EQ(options.only, (std::vector<int>{0, 3}));
}

TEST(LaunchOptions, ReadLinesOnlyWhereTheyAreAboutLines) {
  EXPECT_FALSE(parse("-n 4 --bind cores --timeout 3 -- ./app").reads_lines());
  for (const char* option : {"--tag-output", "--only 0", "--log-dir /tmp", "--timestamps"}) {
    EXPECT_TRUE(parse(std::string(option) + " -- ./app").reads_lines()) << option;
  }
}

TEST(LaunchOptions, AreRefusedByNameAndValue) {
  const auto refused = [](const std::string& line, std::initializer_list<std::string_view> words) {
    testing::expect_error(Errc::invalid_argument, words, [&] { check(parse(line)); });
  };
  refused("-n 2 ./a : -n 3 ./b", {"\":\"", "one program", "weft launch A & weft launch B"});
  refused("--env A -- ./app", {"--env", "\"A\"", "NAME=value"});
  refused("--env =x -- ./app", {"--env", "\"=x\""});
  refused("-n 2 --only 0,2 -- ./app", {"--only 2", "-n 2", "0 to 1"});
  refused("-n 0 --bind cores -- ./app", {"--bind cores", "-n 0"});
  testing::expect_error(Errc::not_found, {"--cwd", "/no such", "mkdir -p '/no such'"},
                        [] { check({.folder = "/no such", .command = {"./app"}}); });
}

TEST(LaunchOptions, AreAShellLineInADryRun) {
  EXPECT_EQ(shell_text(parse("-n 2 --chips 4 --mesh data=8 --env A=b --cwd /tmp -- ./app x")),
            "cd /tmp && A=b WEFT_LAUNCH_WORKERS=2 WEFT_LAUNCH_CHIPS=4 WEFT_LAUNCH_MESH=data=8 "
            "WEFT_LAUNCH_STDIN=1 ./app x\n");
}

TEST(ShellWord, IsQuotedWhereAShellWouldChangeIt) {
  EXPECT_EQ(shell_word("a-b/c=1"), "a-b/c=1");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's $x"), "'it'\\''s $x'");
}

}  // namespace
}  // namespace weft::options_test
