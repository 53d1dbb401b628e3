#include "chips/engine/state_hash.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <thread>

namespace weft::state_hash_test {
namespace {

using Floats = std::vector<float>;

std::vector<HashedTensor> one(const Mesh& mesh, const Shape& shape, const PartitionSpec& spec) {
  return {{.name = "w",
           .type = {DType::f32, shape},
           .sharding = Sharding::from_spec(mesh, spec, shape, "w"),
           .offsets = std::vector<std::uint64_t>(static_cast<std::size_t>(mesh.size()))}};
}

/// Hashes the elements `held` of the chips at all positions of a mesh.
struct Hashed {
  Hashed(const Mesh& mesh, std::vector<HashedTensor> state, const std::vector<Floats>& held)
      : hash(3, std::move(state), mesh, positions(mesh), [this](const StateHash&) { ++complete; }) {
    for (int chip = 0; chip < mesh.size(); ++chip) {
      EXPECT_EQ(complete, 0);
      hash.add(chip, reinterpret_cast<const std::byte*>(held.at(std::size_t(chip)).data()));
    }
    EXPECT_EQ(complete, 1);
  }
  static std::vector<int> positions(const Mesh& mesh) {
    std::vector<int> all;
    for (int position = 0; position < mesh.size(); ++position) all.push_back(position);
    return all;
  }
  bool same_piece(int a, int b) const { return hash.piece(0, a) == hash.piece(0, b); }
  bool same(int a, int b) const { return hash.hash(0, a) == hash.hash(0, b); }

  int complete = 0;
  StateHash hash;
};

TEST(StateHash, TellsOneBitOfAReplica) {
  const Mesh mesh({2}, {"data"});
  const Floats held{1, 2, 3, 4};
  EXPECT_TRUE(Hashed(mesh, one(mesh, {4}, {{}}), {held, held}).same(0, 1));
  Floats turned = held;
  turned[3] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(4.0F) ^ 1U);
  const Hashed hashed(mesh, one(mesh, {4}, {{}}), {held, turned});
  EXPECT_TRUE(hashed.same_piece(0, 1));
  EXPECT_FALSE(hashed.same(0, 1));
}

TEST(StateHash, ComparesBitsNotNumbers) {
  const Mesh mesh({3}, {"data"});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Hashed nans(mesh, one(mesh, {1}, {{}}),
                    {{nan}, {nan}, {std::bit_cast<float>(std::bit_cast<std::uint32_t>(nan) + 1)}});
  EXPECT_TRUE(nans.same(0, 1));
  EXPECT_FALSE(nans.same(0, 2));
  EXPECT_FALSE(Hashed(mesh, one(mesh, {1}, {{}}), {{0.0F}, {-0.0F}, {0.0F}}).same(0, 1));
}

TEST(StateHash, TellsWhichChipsHoldTheSamePiece) {
  const Mesh mesh({2, 2}, {"data", "model"});
  const Floats half{1, 2};
  const Hashed hashed(mesh, one(mesh, {4}, {{"model"}}), {half, half, half, half});
  EXPECT_TRUE(hashed.same_piece(0, 2));
  EXPECT_TRUE(hashed.same_piece(1, 3));
  EXPECT_FALSE(hashed.same_piece(0, 1));
}

TEST(StateHash, PassesOverPadding) {
  const Mesh mesh({2, 2}, {"data", "model"});
  // 3 columns are divided over 2 chips: each row of the second chip has one column and then
  // padding.
  const Floats left{1, 2, 4, 5};
  const Hashed hashed(mesh, one(mesh, {2, 3}, {{}, {"model"}}),
                      {left, {3, 70, 6, 71}, left, {3, 80, 6, 81}});
  EXPECT_TRUE(hashed.same_piece(1, 3));
  EXPECT_TRUE(hashed.same(1, 3));
  const Hashed turned(mesh, one(mesh, {2, 3}, {{}, {"model"}}),
                      {left, {3, 70, 6, 71}, left, {3, 70, 7, 71}});
  EXPECT_FALSE(turned.same(1, 3));
}

TEST(StateHash, PassesOverShardsThatAreAllPadding) {
  const Mesh mesh({2, 4}, {"data", "model"});
  std::vector<Floats> held(8, {1, 2});
  held[7] = {3, 4};  // the last of 4 chips has nothing of the 5 elements, only padding
  const Hashed hashed(mesh, one(mesh, {5}, {{"model"}}), held);
  EXPECT_TRUE(hashed.same_piece(3, 7));
  EXPECT_TRUE(hashed.same(3, 7));
}

TEST(StateHash, ReadsItWhereEachChipHasIt) {
  const Mesh mesh({2}, {"data"});
  auto state = one(mesh, {2}, {{}});
  state[0].offsets[1] = 2 * sizeof(float);
  EXPECT_TRUE(Hashed(mesh, state, {{1, 2, 3, 4}, {3, 4, 1, 2}}).same(0, 1));
  EXPECT_FALSE(Hashed(mesh, state, {{1, 2, 3, 4}, {1, 2, 3, 4}}).same(0, 1));
}

TEST(StateHash, TakesChipsThatAddAtTheSameTime) {
  const Mesh mesh({8}, {"data"});
  const Floats held(1000, 1.5F);
  int complete = 0;
  bool same = true;
  StateHash hash(1, one(mesh, {1000}, {{}}), mesh, Hashed::positions(mesh),
                 [&](const StateHash& all) {
                   ++complete;
                   for (int chip = 0; chip < 8; ++chip) {
                     same = same && all.hash(0, chip) == all.hash(0, 0);
                   }
                 });
  {
    std::vector<std::jthread> chips;
    for (int chip = 0; chip < 8; ++chip) {
      chips.emplace_back(
          [&, chip] { hash.add(chip, reinterpret_cast<const std::byte*>(held.data())); });
    }
  }
  EXPECT_EQ(complete, 1);
  EXPECT_TRUE(same);
}

}  // namespace
}  // namespace weft::state_hash_test
