#include "data/files/utf8.hpp"

#include <gtest/gtest.h>

namespace weft::utf8_test {
namespace {

TEST(Utf8, StaysAsItIs) {
  EXPECT_EQ(as_utf8(""), "");
  EXPECT_EQ(as_utf8("a\nb é 字 😀"), "a\nb é 字 😀");
}

TEST(Utf8, ShowsWhatIsNoneAsBytes) {
  EXPECT_EQ(as_utf8("a\xff"
                    "b"),
            "a\\xffb");
  EXPECT_EQ(as_utf8("\xc3"), "\\xc3");
  EXPECT_EQ(as_utf8("\xe0\x80\x9b("), "\\xe0\\x80\\x9b(");
  EXPECT_EQ(as_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

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

}  // namespace
}  // namespace weft::utf8_test
