#include "transport/memory/utf8.hpp"

#include <gtest/gtest.h>

namespace weft {
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

}  // namespace
}  // namespace weft
