#include "spmd/program/philox.hpp"

#include <set>

#include <gtest/gtest.h>

namespace weft::philox_test {
namespace {

// Random123 publishes these words as known answers of philox4x32-10.
TEST(Philox, GivesThePublishedNumbers) {
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// These hashes are from the test suite of Fowler, Noll and Vo.
TEST(Philox, StreamsAreFnv1aOfTheName) {
  EXPECT_EQ(stream_of(""), 0xcbf29ce484222325U);
  EXPECT_EQ(stream_of("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(stream_of("foobar"), 0x85944171f73967e8U);
}

TEST(Philox, WordsDifferBySeedStreamAndElement) {
  std::set<std::uint32_t> words;
  for (std::uint64_t seed : {0ULL, 1ULL, 1ULL << 32}) {
    for (std::uint64_t stream : {0ULL, 1ULL, 1ULL << 32}) {
      for (std::uint64_t element : {0ULL, 1ULL, 1ULL << 32}) {
        words.insert(random_word(seed, stream, element));
      }
    }
  }
  EXPECT_EQ(words.size(), 27U);
}

TEST(Philox, UniformIsBelowOne) {
  EXPECT_EQ(uniform(0), 0);
  EXPECT_LT(uniform(0xffffffff), 1);
  EXPECT_EQ(uniform(0x80000000), 0.5);
}

}  // namespace
}  // namespace weft::philox_test
