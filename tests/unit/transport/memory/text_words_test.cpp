#include "transport/memory/text_words.hpp"

#include <gtest/gtest.h>

namespace weft::text_words_test {
namespace {

TEST(TextWords, GiveTheTextBack) {
  EXPECT_EQ(unpack_text(pack_text<4>("digits")), "digits");
  EXPECT_EQ(unpack_text(pack_text<1>("abcdefgh")), "abcdefg") << "one byte is the terminating zero";
}

/// The data pointer of an empty text may be null.
TEST(TextWords, TakeAnEmptyText) { EXPECT_EQ(unpack_text(pack_text<2>({})), ""); }

TEST(TextWords, AreNotCutWithinACharacter) {
  EXPECT_EQ(unpack_text(pack_text<1>("abcdefé")), "abcdef") << "é has two bytes";
}

}  // namespace
}  // namespace weft::text_words_test
