#include "spmd/passes/reshard.hpp"

#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "spmd/mesh/hybrid_mesh.hpp"

namespace weft::reshard_test {
namespace {

// Atoms 1, 2 and 3 have size 2, and atom 4 has size 3.
const Mesh kMesh({2, 2, 2, 3}, {"a", "b", "c", "d"});
const TensorType kType{DType::f32, {240, 240}};

Sharding layout(AtomList rows, AtomList columns, AtomMask unreduced = 0) {
  Sharding sharding;
  sharding.dims = {rows, columns};
  sharding.unreduced = unreduced;
  return sharding;
}

AtomMask mask(AtomList atoms) { return atoms.mask(); }

/// Returns steps such as "all_gather 2,1 of 0", which has the atoms and the dim. An all_to_all has
/// two dims, as "of 1 to 0".
std::vector<std::string> steps(const Sharding& from, const Sharding& to, const Mesh& mesh = kMesh,
                               const TensorType& type = kType, AtomMask held = 0) {
  std::vector<std::string> lines;
  for (const ReshardStep& step : reshard_steps(mesh, type, from, to, held)) {
    std::vector<int> atoms;
    for (int i = 0; i < step.atoms.size(); ++i) atoms.push_back(step.atoms[i]);
    std::string line = fmt::format("{} {}", to_string(step.kind), fmt::join(atoms, ","));
    if (step.kind == OpKind::all_to_all) {
      line += fmt::format(" from {} to {}", step.concat_dim, step.dim);
    } else if (step.dim >= 0) {
      line += fmt::format(" of {}", step.dim);
    }
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Reshard, TakesNoStepBetweenEqualLayouts) {
  EXPECT_EQ(steps(layout({1}, {2}), layout({1}, {2})), Lines{});
}

TEST(Reshard, SlicesWhatIsWhole) {
  EXPECT_EQ(steps(layout({1}, {}), layout({1, 2, 3}, {4})),
            (Lines{"all_slice 2,3 of 0", "all_slice 4 of 1"}));
}

TEST(Reshard, GathersAllAtomsOfADimAtOnce) {
  EXPECT_EQ(steps(layout({1, 2, 3}, {}), layout({1}, {})), (Lines{"all_gather 2,3 of 0"}));
}

TEST(Reshard, MovesAtomsBetweenDims) {
  EXPECT_EQ(steps(layout({1, 2}, {}), layout({1}, {2})), (Lines{"all_to_all 2 from 0 to 1"}));
  EXPECT_EQ(steps(layout({1, 2}, {3}), layout({}, {3, 1, 2})),
            (Lines{"all_to_all 1,2 from 0 to 1"}));
}

TEST(Reshard, SlicesBeforeItMovesAndMovesBeforeItGathers) {
  EXPECT_EQ(steps(layout({1, 2}, {}), layout({}, {2})),
            (Lines{"all_to_all 2 from 0 to 1", "all_gather 1 of 0"}));
  EXPECT_EQ(steps(layout({1, 2}, {}), layout({1, 3}, {2})),
            (Lines{"all_to_all 2 from 0 to 1", "all_slice 3 of 0"}));
  EXPECT_EQ(steps(layout({}, {1, 2}), layout({3}, {1})),
            (Lines{"all_slice 3 of 0", "all_gather 2 of 1"}));
}

TEST(Reshard, PermutesWhereAtomsOfOneSizeTakeEachOthersPlace) {
  EXPECT_EQ(steps(layout({1}, {}), layout({2}, {})), (Lines{"collective_permute "}));
  EXPECT_EQ(steps(layout({1, 2}, {}), layout({2, 1}, {})), (Lines{"collective_permute "}));
  EXPECT_EQ(steps(layout({1}, {2}), layout({2}, {1})), (Lines{"collective_permute "}));
  // Atoms 4 and 1 have different sizes.
  EXPECT_EQ(steps(layout({1}, {}), layout({4}, {})),
            (Lines{"all_gather 1 of 0", "all_slice 4 of 0"}));
}

TEST(Reshard, GathersAMajorAtomBehindAPermute) {
  EXPECT_EQ(steps(layout({1, 2}, {}), layout({2}, {})),
            (Lines{"collective_permute ", "all_gather 1 of 0"}));
}

TEST(Reshard, PermutesAlongNoAtomOfAShardMap) {
  const Sharding from = layout({3}, {2});
  const Sharding to = layout({2}, {});
  EXPECT_EQ(steps(from, to), (Lines{"collective_permute ", "all_gather 1 of 1"}));
  EXPECT_EQ(steps(from, to, kMesh, kType, mask({1})),
            (Lines{"collective_permute ", "all_gather 3 of 1"}));
}

TEST(Reshard, ReducesToAllOrScattersToTheDimThatWantsTheAtom) {
  EXPECT_EQ(steps(layout({}, {}, mask({1, 2})), layout({}, {})), (Lines{"all_reduce 1,2"}));
  EXPECT_EQ(steps(layout({3}, {}, mask({1})), layout({3, 1}, {})),
            (Lines{"reduce_scatter 1 of 0"}));
  EXPECT_EQ(steps(layout({}, {}, mask({1, 2})), layout({2}, {})),
            (Lines{"reduce_scatter 2 of 0", "all_reduce 1"}));
  EXPECT_EQ(steps(layout({}, {}, mask({1, 2})), layout({2}, {1})),
            (Lines{"reduce_scatter 2 of 0", "reduce_scatter 1 of 1"}));
}

TEST(Reshard, SlicesBeforeItReduces) {
  EXPECT_EQ(steps(layout({}, {}, mask({1})), layout({3, 1}, {})),
            (Lines{"all_slice 3 of 0", "reduce_scatter 1 of 0"}));
  EXPECT_EQ(steps(layout({}, {}, mask({1})), layout({3}, {})),
            (Lines{"all_slice 3 of 0", "all_reduce 1"}));
}

TEST(Reshard, ReducesInFullWhereTheDimHasAnotherAtom) {
  EXPECT_EQ(steps(layout({4}, {}, mask({1})), layout({1}, {})),
            (Lines{"all_reduce 1", "all_gather 4 of 0", "all_slice 1 of 0"}));
}

TEST(Reshard, KeepsWhatTheTargetKeepsUnreduced) {
  EXPECT_EQ(steps(layout({}, {}, mask({1, 2})), layout({3}, {}, mask({2}))),
            (Lines{"all_slice 3 of 0", "all_reduce 1"}));
}

// Atom 1 is between hosts; atoms 2, 3 and 4 are within a host.
const Mesh kHybrid = HybridMesh{{4, 2}, {2, 1}, {"data", "model"}}.mesh();

TEST(Reshard, ReducesBothTiersAtOnce) {
  EXPECT_EQ(steps(layout({}, {}, mask({1, 2, 3})), layout({}, {}), kHybrid),
            (Lines{"all_reduce 1,2,3"}));
}

TEST(Reshard, ReducesAtOnceWhatStaysWithinOneTier) {
  EXPECT_EQ(steps(layout({}, {}, mask({2, 3})), layout({}, {}), kHybrid),
            (Lines{"all_reduce 2,3"}));
  EXPECT_EQ(steps(layout({}, {}, mask({1})), layout({}, {}), kHybrid), (Lines{"all_reduce 1"}));
}

TEST(Reshard, ReducesBetweenHostsWhatIsScatteredWithinThem) {
  EXPECT_EQ(steps(layout({}, {}, mask({1, 2, 3})), layout({2, 3}, {}), kHybrid),
            (Lines{"reduce_scatter 2,3 of 0", "all_reduce 1"}));
}

TEST(Reshard, CostsBytesReceivedAndAMeetingPerCollective) {
  const auto cost = [](const Sharding& from, const Sharding& to) {
    return reshard_cost(kMesh, kType, from, reshard_steps(kMesh, kType, from, to));
  };
  const std::int64_t bytes = kType.bytes();
  EXPECT_EQ(cost(layout({}, {}), layout({1}, {2})), 0);
  EXPECT_EQ(cost(layout({4}, {}), layout({}, {})), bytes - bytes / 3 + kCollectiveCost);
  EXPECT_EQ(cost(layout({}, {}, mask({4})), layout({}, {})),
            2 * (bytes - bytes / 3) + kCollectiveCost);
  EXPECT_EQ(cost(layout({}, {}, mask({4})), layout({4}, {})), bytes - bytes / 3 + kCollectiveCost);
  EXPECT_EQ(cost(layout({1}, {}), layout({}, {1})), bytes / 4 + kCollectiveCost);
  EXPECT_EQ(cost(layout({1}, {}), layout({2}, {})), bytes / 2 + kCollectiveCost);
}

TEST(Reshard, CostsMoreBetweenHosts) {
  // Atom 1 is between 2 hosts; atoms 2 and 3 are 4 chips of a host.
  const auto cost = [](const Sharding& from, const Sharding& to) {
    return reshard_cost(kHybrid, kType, from, reshard_steps(kHybrid, kType, from, to));
  };
  const std::int64_t bytes = kType.bytes();
  const std::int64_t meetings = kCollectiveCost + kNetworkCost * kCollectiveCost;
  EXPECT_EQ(cost(layout({}, {}, mask({2, 3})), layout({}, {})),
            2 * (bytes - bytes / 4) + kCollectiveCost);
  EXPECT_EQ(cost(layout({}, {}, mask({1})), layout({}, {})),
            kNetworkCost * (2 * (bytes - bytes / 2) + kCollectiveCost));
  EXPECT_EQ(cost(layout({}, {}, mask({1, 2, 3})), layout({}, {})),
            2 * (bytes - bytes / 4) + kNetworkCost * 2 * (bytes / 4 - bytes / 8) + meetings);
  EXPECT_EQ(cost(layout({}, {}, mask({1, 2, 3})), layout({1, 2, 3}, {})),
            bytes - bytes / 4 + kNetworkCost * (bytes / 4 - bytes / 8) + meetings);
  EXPECT_EQ(cost(layout({1, 2, 3}, {}), layout({}, {})),
            bytes - bytes / 4 + kNetworkCost * (bytes / 4 - bytes / 8) + meetings);
  EXPECT_EQ(cost(layout({1, 2, 3}, {}), layout({}, {1, 2, 3})),
            bytes / 8 - bytes / 32 + kNetworkCost * (bytes / 8 - bytes / 16) + meetings);
  EXPECT_EQ(cost(layout({1}, {}), layout({2}, {})), kNetworkCost * (bytes / 2 + kCollectiveCost));
}

}  // namespace
}  // namespace weft::reshard_test
