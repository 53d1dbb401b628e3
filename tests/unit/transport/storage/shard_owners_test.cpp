#include "transport/storage/shard_owners.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "tests/support/checkpoint_world.hpp"

namespace weft::shard_owners_test {
namespace {

ShardedTensor tensor(const Mesh& mesh, const TensorType& type, const PartitionSpec& spec) {
  return {type, Sharding::from_spec(mesh, spec, type.shape, "tensor")};
}

TEST(ShardOwners, GiveEachElementToOneChipThatHasIt) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    testing::Random random(seed);
    const Mesh mesh = testing::random_mesh(random);
    const testing::Tree tree = testing::random_tree(random);
    std::vector<ShardedTensor> tensors;
    for (const auto& each : tree) {
      tensors.push_back({each.type, testing::random_sharding(random, mesh, each.type.shape)});
    }
    std::vector<std::int64_t> elements(tree.size());
    for (const OwnedBox& own : assign_owners(tensors, mesh, all_positions(mesh))) {
      const ShardedTensor& tensor = tensors[own.tensor];
      const Box shard = shard_box(tensor.type.shape, tensor.sharding, mesh, own.position).box;
      for (int d = 0; d < shard.dims.size(); ++d) {
        EXPECT_GE(own.box.offsets[d], shard.offsets[d]);
        EXPECT_LE(own.box.offsets[d] + own.box.dims[d], shard.offsets[d] + shard.dims[d]);
      }
      elements[own.tensor] += own.box.dims.num_elements();
    }
    // The boxes of a tensor have all its elements. Manifests check that boxes don't overlap.
    for (std::size_t t = 0; t < tree.size(); ++t) {
      EXPECT_EQ(elements[t], tree[t].type.num_elements()) << "seed " << seed;
    }
  }
}

TEST(ShardOwners, SpreadReplicatedTensorsOverAllChips) {
  const Mesh mesh({4, 2}, {"data", "model"});
  std::vector<ShardedTensor> tensors;
  for (int layer = 0; layer < 12; ++layer) {
    tensors.push_back(tensor(mesh, {DType::f32, {768, 3072}}, {{}, {"model"}}));
    tensors.push_back(tensor(mesh, {DType::f32, {3072}}, {{"model"}}));
    tensors.push_back(tensor(mesh, {DType::f32, {768}}, {{}}));
  }
  std::map<int, std::int64_t> bytes;
  for (const OwnedBox& own : assign_owners(tensors, mesh, all_positions(mesh))) {
    bytes[own.position] += own.box.dims.num_elements() * 4;
  }
  ASSERT_EQ(bytes.size(), 8U);
  const auto [least, most] = std::ranges::minmax(bytes | std::views::values);
  EXPECT_LE(static_cast<double>(most), 1.02 * static_cast<double>(least));
}

TEST(ShardOwners, AreTheChipsOfAHostThatStoresItsOwnCopy) {
  const Mesh mesh({4, 2}, {"data", "model"}, {}, {2, 1});
  const std::vector<ShardedTensor> tensors{tensor(mesh, {DType::f32, {64, 6}}, {{}, {"model"}}),
                                           tensor(mesh, {DType::f32, {3}}, {{}})};
  for (const int host : {0, 1}) {
    std::vector<int> positions;
    for (int position = 0; position < mesh.size(); ++position) {
      if (host_of(mesh, position) == host) positions.push_back(position);
    }
    std::vector<std::int64_t> elements(tensors.size());
    for (const OwnedBox& own : assign_owners(tensors, mesh, positions)) {
      EXPECT_EQ(host_of(mesh, own.position), host);
      elements[own.tensor] += own.box.dims.num_elements();
    }
    EXPECT_EQ(elements, (std::vector<std::int64_t>{64 * 6, 3}));
  }
}

TEST(ShardOwners, CutAShardThatIsLargerThanAFairShare) {
  const Mesh mesh({4}, {"data"});
  const std::vector<ShardedTensor> tensors{tensor(mesh, {DType::f32, {10, 8}}, {{}, {}})};
  const auto owned = assign_owners(tensors, mesh, all_positions(mesh));
  ASSERT_EQ(owned.size(), 4U);
  std::int64_t row = 0;
  for (const OwnedBox& own : owned) {
    EXPECT_EQ(own.box.offsets[0], row);
    EXPECT_GE(own.box.dims[0], 2);
    EXPECT_LE(own.box.dims[0], 3);
    row += own.box.dims[0];
  }
}

}  // namespace
}  // namespace weft::shard_owners_test
