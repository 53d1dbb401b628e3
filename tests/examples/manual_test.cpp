/// Tests the completions and man pages of the `weft` command as shells and groff read them.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/app_process.hpp"

namespace weft::manual_test {
namespace {

using testing::AppProcess;

bool has(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

/// Runs `shell -c script`, in which $0 is the weft command, and returns the output.
std::string output_of(const char* shell, const std::string& script) {
  AppProcess process({"/usr/bin/env", shell, "-c", script, WEFT});
  EXPECT_EQ(process.wait(), 0) << process.output();
  return process.output();
}

/// Returns what bash offers for the last of these words.
std::string bash_offers(const std::string& words) {
  return output_of("bash", "source <(\"$0\" completions bash); COMP_WORDS=(" + words +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _weft; "
                               "echo \"${COMPREPLY[*]}\"");
}

TEST(BashCompletion, OffersCommandsOptionsAndValues) {
  EXPECT_EQ(bash_offers("weft la"), "launch\n");
  EXPECT_EQ(bash_offers("weft launch --max"), "--max-failures\n");
  EXPECT_EQ(bash_offers("weft launch --bind ''"), "cores none\n");
  EXPECT_EQ(bash_offers("weft launch --chips 4 --ti"), "--timeout --timestamps\n");
  EXPECT_EQ(bash_offers("weft doctor --j"), "--json\n");
}

TEST(BashCompletion, LeavesTheProgramsWordsToBash) {
  EXPECT_EQ(bash_offers("weft launch -- ./app --ti"), "\n");
  EXPECT_EQ(bash_offers("weft launch --chips ''"), "\n");
}

TEST(ZshCompletion, IsAScriptOfZsh) {
  if (!has("zsh")) GTEST_SKIP() << "no zsh here";
  output_of("bash", "\"$0\" completions zsh | zsh -n /dev/stdin");
}

TEST(FishCompletion, OffersCommandsAndOptions) {
  if (!has("fish")) GTEST_SKIP() << "no fish here";
  const std::string offered =
      output_of("bash",
                "\"$0\" completions fish | fish -c 'source; complete -C \"weft launch --max\"; "
                "complete -C \"weft launch --bind \"'");
  EXPECT_NE(offered.find("--max-failures"), std::string::npos) << offered;
  EXPECT_NE(offered.find("cores"), std::string::npos) << offered;
}

TEST(ManPages, AreSoundRoff) {
  if (!has("groff")) GTEST_SKIP() << "no groff here";
  const std::string said = output_of(
      "bash",
      "for page in '' launch doctor plan inspect sweep rescue export import post devices; do "
      "\"$0\" man $page | groff -man -Tutf8 -ww -z 2>&1 || exit 1; done");
  EXPECT_EQ(said, "");
  EXPECT_NE(output_of("bash", "\"$0\" man launch | groff -man -Tutf8").find("--max-failures"),
            std::string::npos);
}

TEST(ManPages, HaveADescriptionAndExamples) {
  for (const char* page : {"launch", "doctor", "plan", "inspect", "sweep", "rescue", "export",
                           "import", "post", "devices"}) {
    const std::string text = output_of("bash", std::string("\"$0\" man ") + page);
    EXPECT_NE(text.find(".SH DESCRIPTION\n"), std::string::npos) << text;
    EXPECT_NE(text.find(".SH EXAMPLES\n"), std::string::npos) << text;
  }
}

TEST(ManPages, AreOfCommandsThatThereAre) {
  AppProcess process({WEFT, "man", "fly"});
  EXPECT_EQ(process.wait(), 2);
  EXPECT_NE(process.output().find("no command \"fly\": expected one of launch, "),
            std::string::npos)
      << process.output();
}

void expect_said(std::vector<std::string> words, int code, const std::string& text) {
  words.insert(words.begin(), WEFT);
  AppProcess process(words);
  EXPECT_EQ(process.wait(), code);
  EXPECT_NE(process.output().find(text), std::string::npos) << process.output();
}

TEST(Help, OfSweepAndRescueHasTheExitCodesToo) {
  for (const char* command : {"sweep", "rescue"}) {
    expect_said({command, "--help"}, 0, "Examples:");
    expect_said({command, "--help"}, 0, "Exit code: 0, or ");
  }
}

TEST(Command, HasAVersion) { expect_said({"--version"}, 0, "weft "); }

TEST(Command, SaysWhatMayHaveBeenMeant) {
  expect_said({"lunch"}, 1, "there is no command \"weft lunch\": did you mean launch? weft has ");
  expect_said({"launch", "--max-failure", "3", "--", "true"}, 1,
              "weft launch has no option --max-failure: did you mean --max-failures?");
  expect_said({"xylophone"}, 1, "there is no command \"weft xylophone\": weft has launch, ");
}

/// Loading the libraries for datasets would take longer than inspecting a job.
TEST(Command, IsNotLinkedWithReadersOfDatasets) {
  AppProcess process({"/usr/bin/ldd", WEFT});
  EXPECT_EQ(process.wait(), 0);
  for (const char* library : {"libarchive", "libicu", "libjpeg", "libpng", "libwebp", "libcurl"}) {
    EXPECT_EQ(process.output().find(library), std::string::npos) << process.output();
  }
}

TEST(Help, HasExamplesAndHidesWhatTheBuildUses) {
  AppProcess process({WEFT, "--help"});
  EXPECT_EQ(process.wait(), 0);
  EXPECT_NE(process.output().find("Examples:"), std::string::npos) << process.output();
  EXPECT_EQ(process.output().find("completions"), std::string::npos) << process.output();
}

}  // namespace
}  // namespace weft::manual_test
