#include "spmd/text/listing_difference.hpp"

#include <gtest/gtest.h>

namespace weft::listing_difference_test {
namespace {

/// Returns the listing of a program with these ops whose parameter has this layout.
std::string listing(const std::string& layout, const std::string& ops) {
  return "program(%0: f32[4,2] param \"w\" " + layout +
         ",\n        %1: f32[4] data \"data.0\" [{?}]) {\n" + ops + "  return %2 \"w\" " + layout +
         " updates 0,\n         %3 \"out.0\" []\n}\n";
}

constexpr const char* kSum = "  %2 = reduce %0 {kind = add, dims = [0]} : f32[2]  // train.cpp:7\n";
constexpr const char* kSumElsewhere =
    "  %2 = reduce %0 {kind = add, dims = [0]} : f32[2]  // train.cpp:9\n";
constexpr const char* kMax = "  %2 = reduce %0 {kind = max, dims = [0]} : f32[2]  // train.cpp:7\n";

/// One listing is of the program's first run, before its open layouts were fixed.
TEST(ListingDifference, IsWhatIsComputedWhereLayoutsDifferToo) {
  const auto [line, first, second] =
      first_difference(listing("[{?}, {?}]", kSum), listing(R"([{"data"}, {}])", kMax));
  EXPECT_EQ(line, 3);
  EXPECT_NE(first.find("kind = add"), std::string::npos);
  EXPECT_NE(second.find("kind = max"), std::string::npos);
}

TEST(ListingDifference, IsTheLayoutWhereNothingElseDiffers) {
  const auto [line, first, second] =
      first_difference(listing("[{?}, {?}]", kSum), listing(R"([{"data"}, {}])", kSum));
  EXPECT_EQ(line, 1);
  EXPECT_NE(second.find("data"), std::string::npos);
}

TEST(ListingDifference, IsNotTheLineOfTheSource) {
  EXPECT_EQ(first_difference(listing("[]", kSum), listing("[]", kSumElsewhere)).line, 0);
  const std::string more = std::string(kSumElsewhere) + kMax;
  EXPECT_EQ(first_difference(listing("[]", kSum), listing("[]", more)).line, 4);
}

TEST(ListingDifference, IsTheEndOfTheShorterOne) {
  const auto [line, first, second] = first_difference("a\n", "a\nb\n");
  EXPECT_EQ(line, 2);
  EXPECT_EQ(first, "(end)");
  EXPECT_EQ(second, "b");
}

}  // namespace
}  // namespace weft::listing_difference_test
