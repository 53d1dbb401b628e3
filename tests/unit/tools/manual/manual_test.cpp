#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tools/weft/manual/completions.hpp"
#include "tools/weft/manual/man_page.hpp"

namespace weft::manual_test {
namespace {

/// Returns a program that has a subcommand with a subcommand, and a hidden command.
CommandText program() {
  static std::string text;
  static int number = 0;
  static bool quiet = false;
  CLI::App app{"does it"};
  CLI::App* run = app.add_subcommand("run", "runs - it's fast");
  run->add_option("-n,--times", number, "how often")->check(CLI::Range(1, 9))->type_name("N");
  run->add_option("--how", text, "the way")->check(CLI::IsMember({"slow", "fast"}));
  run->add_option("--in", text, "where")->type_name("FOLDER");
  run->add_flag("--quiet", quiet, "no words");
  run->add_option("program", text, "what");
  run->footer("Examples:\n  weft run -n 2\n\n.that is all");
  run->add_subcommand("again", "runs it again");
  app.add_subcommand("secret", "hidden")->group("");
  return describe(app, "weft");
}

void expect_lines(const std::string& text, std::initializer_list<const char*> lines) {
  for (const char* line : lines) EXPECT_NE(text.find(line), text.npos) << line << "\n" << text;
}

TEST(CommandText, HasWhatIsNotHidden) {
  const CommandText weft = program();
  ASSERT_EQ(weft.commands.size(), 1U);
  const CommandText& run = weft.commands.front();
  EXPECT_EQ(run.path, "weft run");
  EXPECT_EQ(run.commands.front().path, "weft run again");
  const auto find = [&](const std::string& name) {
    for (const OptionText& option : run.options) {
      if (option.names.back() == name) return option;
    }
    ADD_FAILURE() << name;
    return OptionText{};
  };
  EXPECT_EQ(find("--times").names, (std::vector<std::string>{"-n", "--times"}));
  EXPECT_EQ(find("--times").value, "N");
  EXPECT_EQ(find("--how").choices, (std::vector<std::string>{"slow", "fast"}));
  EXPECT_TRUE(find("--in").takes_folder());
  EXPECT_EQ(find("--quiet").value, "");
  EXPECT_TRUE(find("program").is_positional);
}

TEST(Completions, NameCommandsOptionsAndValues) {
  expect_lines(completions(program(), "bash"),
               {"'weft run again') at=", "'weft run --how') COMPREPLY=($(compgen -W 'slow fast'",
                "'weft run --in') COMPREPLY=($(compgen -d", "'weft run -n') return ;;",
                "'weft') words='run -h --help' ;;"});
  expect_lines(completions(program(), "zsh"),
               {"#compdef weft", "'weft run --how') compadd slow fast; return ;;",
                "'run:runs - it'\\''s fast'", "'--quiet:no words'"});
  expect_lines(
      completions(program(), "fish"),
      {"complete -c weft -n '__fish_use_subcommand' -f -a run",
       "complete -c weft -n '__fish_seen_subcommand_from run' -l how -x -a 'slow fast'",
       "-s n -l times -r -d 'how often'", "-n '__fish_seen_subcommand_from run' -f -a again"});
}

TEST(Completions, AreForThreeShells) {
  testing::expect_error(Errc::invalid_argument, {"\"csh\"", "bash, zsh or fish"},
                        [] { completions(program(), "csh"); });
}

TEST(ManPage, HasOptionsAndNotes) {
  const std::string page = man_page(program().commands.front(), "0.1.0");
  expect_lines(page, {".TH WEFT-RUN 1 \"\" \"weft 0.1.0\"", "weft\\-run \\- runs \\- it's fast",
                      "\\fB\\-n\\fR, \\fB\\-\\-times\\fR \\fIN\\fR\nhow often",
                      "the way (one of: slow, fast)", ".nf\nweft run \\-n 2\n.fi",
                      "\\&.that is all", "\\fBweft\\-run\\-again\\fR(1)"});
}

}  // namespace
}  // namespace weft::manual_test
