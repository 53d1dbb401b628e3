#include "tools/weft/table.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Visible, LeavesPrintableTextAsItIs) {
  EXPECT_EQ(visible("all_reduce 'fc1.weight' \\ é 字 😀"), "all_reduce 'fc1.weight' \\ é 字 😀");
  EXPECT_EQ(visible(""), "");
}

TEST(Visible, ShowsControlCharactersAsBytes) {
  EXPECT_EQ(visible("a\x1b[2Jb\nc\r\x7f"), "a\\x1b[2Jb\\x0ac\\x0d\\x7f");
  EXPECT_EQ(visible(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(visible("\u009b2J"), "\\xc2\\x9b2J");
}

TEST(Visible, ShowsWhatIsNotUtf8AsBytes) {
  EXPECT_EQ(visible("\x9b["), "\\x9b[");
  EXPECT_EQ(visible("\xc3"), "\\xc3");
  EXPECT_EQ(visible("\xc3("), "\\xc3(");
  EXPECT_EQ(visible("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(visible("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(visible("\xff"), "\\xff");
}

TEST(Table, MakesColumnsAsWideAsTheyHaveToBe) {
  Table table({{"name"}, {"bytes", Align::right}, {""}});
  EXPECT_TRUE(table.empty());
  table.add({"é", "5", ""});
  table.add({"temporaries", "123456", "of 7"});
  EXPECT_EQ(table.to_string(),
            "name          bytes\n"
            "é                 5\n"
            "temporaries  123456  of 7\n");
}

TEST(Table, KeepsARowOnItsLine) {
  Table table({{"error"}, {"step"}});
  table.add({"a\nb", "1"});
  EXPECT_EQ(table.to_string(),
            "error   step\n"
            "a\\x0ab  1\n");
}

}  // namespace
}  // namespace weft
