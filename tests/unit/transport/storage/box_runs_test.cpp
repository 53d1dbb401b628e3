#include "transport/storage/box_runs.hpp"

#include <gtest/gtest.h>

namespace weft::box_runs_test {
namespace {

std::string runs(const BoxRuns& boxes, std::int64_t begin, std::int64_t end) {
  std::string text;
  boxes.each(begin, end, [&](std::int64_t stored, std::int64_t placed, std::int64_t count) {
    text += std::to_string(stored) + ">" + std::to_string(placed) + "x" + std::to_string(count);
    text += " ";
  });
  return text;
}

TEST(BoxRuns, AreAsLongAsBothMemoriesAllow) {
  const Box whole{{0, 0}, {4, 6}};
  EXPECT_EQ(runs(BoxRuns(whole, {whole, {4, 6}}), 0, 24), "0>0x24 ");
  EXPECT_EQ(runs(BoxRuns(whole, {{{1, 0}, {2, 6}}, {2, 6}}), 0, 24), "6>0x12 ");
  EXPECT_EQ(runs(BoxRuns(whole, {whole, {4, 8}}), 0, 24), "0>0x6 6>8x6 12>16x6 18>24x6 ");
  EXPECT_EQ(runs(BoxRuns(whole, {{{1, 2}, {2, 3}}, {2, 3}}), 0, 24), "8>0x3 14>3x3 ");
  EXPECT_EQ(runs(BoxRuns({{}, {}}, {{{}, {}}, {}}), 0, 1), "0>0x1 ");
}

TEST(BoxRuns, AreCutAtTheEndsOfAPieceOfTheStoredShard) {
  const BoxRuns boxes({{0, 0}, {4, 6}}, {{{1, 2}, {3, 3}}, {3, 3}});  // bytes 8-10, 14-16, 20-22
  EXPECT_EQ(runs(boxes, 9, 21), "9>1x2 14>3x3 20>6x1 ");
  EXPECT_EQ(runs(boxes, 11, 14), "");
  EXPECT_FALSE(boxes.any(11, 14));
  EXPECT_TRUE(boxes.any(16, 17));
  EXPECT_FALSE(boxes.any(23, 24));
}

TEST(BoxRuns, OfBoxesApartThereAreNone) {
  const BoxRuns boxes({{0, 0}, {2, 6}}, {{{2, 0}, {2, 6}}, {2, 6}});
  EXPECT_TRUE(boxes.empty());
  EXPECT_EQ(runs(boxes, 0, 12), "");
  EXPECT_TRUE(BoxRuns({{0, 0}, {2, 0}}, {{{0, 0}, {2, 0}}, {2, 0}}).empty());
}

}  // namespace
}  // namespace weft::box_runs_test
