#include "tools/weft/launch/lines.hpp"

#include <gtest/gtest.h>

#include "tools/weft/launch/screen.hpp"

namespace weft::lines_test {
namespace {

Lines lines(LineOptions options) {
  return Lines(std::move(options), [] { return std::string("12:00:00.000 "); }, {});
}

TEST(Lines, ShowsTheBeginningOfALineAtOnce) {
  Lines plain = lines({});
  EXPECT_EQ(plain.take("name? "), "name? ");
  EXPECT_FALSE(plain.at_line_start());
  EXPECT_EQ(plain.take("x\ny"), "x\ny");
  EXPECT_EQ(plain.finish(), "");
}

TEST(Lines, WaitsForTheEndWhereWholeLinesAreAskedFor) {
  Lines whole = lines({.whole = true});
  EXPECT_EQ(whole.take("name? "), "");
  EXPECT_EQ(whole.take("x\ny"), "name? x\n");
  EXPECT_EQ(whole.finish(), "y");
  EXPECT_EQ(whole.finish(), "");
}

TEST(Lines, TagsTheProgramsOwnLines) {
  Lines tagged = lines({.tags = true, .whole = true});
  EXPECT_EQ(tagged.take("a\n[worker 12] b\n[worker x] c\n"),
            "[program] a\n[worker 12] b\n[program] [worker x] c\n");
}

TEST(Lines, PutsTheTimeInFront) {
  Lines timed = lines({.timestamps = true, .whole = true});
  EXPECT_EQ(timed.take("a\n[worker 1] b\n"), "12:00:00.000 a\n12:00:00.000 [worker 1] b\n");
}

TEST(Lines, LeavesOutOtherWorkersButNotTheProgram) {
  Lines some = lines({.only = {0, 3}, .whole = true});
  EXPECT_EQ(some.take("[worker 0] a\n[worker 1] b\n[worker 3] c\nd\n"),
            "[worker 0] a\n[worker 3] c\nd\n");
}

TEST(Lines, KeepsAllLinesWithoutTheirTags) {
  std::vector<std::string> kept;
  Lines some({.only = {0}, .whole = true}, {}, [&](int worker, std::string_view line) {
    kept.push_back(std::to_string(worker) + ":" + std::string(line));
  });
  some.take("[worker 0] a\n[worker 1] b\nc");
  some.finish();
  EXPECT_EQ(kept, (std::vector<std::string>{"0:a", "1:b", "-1:c"}));
}

TEST(Lines, ColoursTheTagAlone) {
  Lines coloured = lines({.colours = true});
  EXPECT_EQ(coloured.take("[worker 1] b\nc\n"), "\x1b[33m[worker 1]\x1b[0m b\nc\n");
}

TEST(Lines, ShowsALineThatNeverEndsInPieces) {
  Lines whole = lines({.whole = true});
  EXPECT_EQ(whole.take(std::string(70'000, 'x')).size(), 70'001U);
}

TEST(Screen, ErasesTheStatusBeforeOutputAndDrawsItAgain) {
  Screen screen;
  EXPECT_EQ(screen.status("step 1"), "step 1");
  EXPECT_EQ(screen.status("step 1"), "");
  EXPECT_EQ(screen.print("a\n"), "\r\x1b[Ka\nstep 1");
  EXPECT_EQ(screen.status("step 2"), "\r\x1b[Kstep 2");
  EXPECT_EQ(screen.status(""), "\r\x1b[K");
  EXPECT_EQ(screen.print("b\n"), "b\n");
}

TEST(Screen, LeavesALineAloneThatHasNotEnded) {
  Screen screen;
  screen.status("step 1");
  EXPECT_EQ(screen.print("name? "), "\r\x1b[Kname? ");
  EXPECT_EQ(screen.status("step 2"), "");
  EXPECT_EQ(screen.print("x\n"), "x\nstep 2");
}

}  // namespace
}  // namespace weft::lines_test
