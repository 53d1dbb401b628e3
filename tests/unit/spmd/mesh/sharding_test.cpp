#include <gtest/gtest.h>

#include <algorithm>

#include "spmd/mesh/sharding.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/unit/spmd/mesh/small_meshes.hpp"

namespace weft::sharding_test {
namespace {

using testing::atom_lists;
using testing::expect_error;
using testing::small_meshes;
using Sizes = std::vector<std::int64_t>;

const Mesh kMesh({4, 2}, {"data", "model"});

TEST(PartitionSpec, PrintsItself) {
  EXPECT_EQ((PartitionSpec{{"data", "model"}, {}}).to_string(), "{{\"data\", \"model\"}, {}}");
  EXPECT_EQ(PartitionSpec::replicated(2), (PartitionSpec{{}, {}}));
  EXPECT_EQ(PartitionSpec().to_string(), "{}");
}

TEST(Sharding, ExpandsAxesToAtoms) {
  const Sharding sharding =
      Sharding::from_spec(kMesh, {{"model"}, {}, {"data"}}, Sizes{6, 5, 8}, "w", 2);
  EXPECT_EQ(sharding.dims[0], (AtomList{3}));
  EXPECT_TRUE(sharding.dims[1].empty());
  EXPECT_EQ(sharding.dims[2], (AtomList{1, 2}));
  EXPECT_EQ(sharding.open_mask, 0);
  EXPECT_EQ(sharding.used(), 0b1110);
  for (Atom atom = 1; atom <= 3; ++atom) EXPECT_EQ(sharding.priority(atom), 2);
  EXPECT_FALSE(sharding.is_replicated());
}

TEST(Sharding, TakesSeveralAxesForADim) {
  EXPECT_EQ(Sharding::from_spec(kMesh, {{"model", "data"}}, Sizes{8}, "w").dims[0],
            (AtomList{3, 1, 2}));
}

TEST(Sharding, IgnoresAxesOfSizeOne) {
  const Mesh mesh({2, 1}, {"data", "model"});
  EXPECT_EQ(Sharding::from_spec(mesh, {{"model"}}, Sizes{3}, "w"), Sharding::closed());
}

TEST(Sharding, RejectsSpecOfOtherLength) {
  expect_error(Errc::invalid_argument,
               {"fc1.weight", "{{\"data\"}}", "1 entries", "[8,4]", "2 dims"}, [] {
                 Sharding::from_spec(kMesh, {{"data"}}, Sizes{8, 4}, "fc1.weight");
               });
}

TEST(Sharding, RejectsUnknownAxis) {
  expect_error(Errc::invalid_argument, {"x: ", "\"fsdp\"", "(4,2) (\"data\",\"model\")"},
               [] { Sharding::from_spec(kMesh, {{"fsdp"}}, Sizes{8}, "x"); });
}

TEST(Sharding, RejectsAxisUsedTwice) {
  expect_error(Errc::invalid_argument, {"\"data\" twice"}, [] {
    Sharding::from_spec(kMesh, {{"data"}, {"data"}}, Sizes{8, 8}, "x");
  });
  const Mesh flat({1}, {"data"});
  expect_error(Errc::invalid_argument, {"\"data\" twice"}, [&] {
    Sharding::from_spec(flat, {{"data", "data"}}, Sizes{8}, "x");
  });
}

TEST(Sharding, RoundsUpDimThatIsNotDivided) {
  const Sizes shape{8, 6};
  const Sharding sharding = Sharding::from_spec(kMesh, {{}, {"data"}}, shape, "x");
  EXPECT_EQ(sharding.local_shape(kMesh, shape)[1], 2);
  std::vector<std::int64_t> begins;
  for (int position = 0; position < kMesh.size(); ++position) {
    begins.push_back(sharding.offsets(kMesh, position, shape)[1]);
  }
  std::ranges::sort(begins);
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  EXPECT_EQ(begins, (Sizes{0, 2, 4, 6}));
}

TEST(Sharding, RejectsPriorityOutOfRange) {
  for (const int priority : {-1, 16}) {
    expect_error(Errc::invalid_argument, {"priority", std::to_string(priority), "0..15"},
                 [&] { Sharding::from_spec(kMesh, {{}}, Sizes{8}, "x", priority); });
  }
}

TEST(Sharding, OpensEveryDim) {
  EXPECT_EQ(Sharding::open(0), Sharding::closed());
  const Sharding open = Sharding::open(6);
  for (int dim = 0; dim < kDimCountMax; ++dim) EXPECT_TRUE(open.is_open(dim));
  EXPECT_TRUE(open.is_replicated());
}

TEST(Sharding, KeepsPrioritiesApart) {
  Sharding sharding;
  sharding.set_priority(1, 15);
  sharding.set_priority(2, 3);
  sharding.set_priority(1, 4);
  EXPECT_EQ(sharding.priority(1), 4);
  EXPECT_EQ(sharding.priority(2), 3);
  EXPECT_EQ(sharding.priority(3), 0);
}

TEST(Sharding, ComparesLayoutsWithoutOpennessAndProvenance) {
  Sharding a;
  a.dims[0] = {1};
  Sharding b = a;
  b.open_mask = 1;
  b.set_priority(1, 2);
  b.reduce_kind = ReduceKind::max;  // has no effect without unreduced atoms
  EXPECT_TRUE(a.same_layout(b));
  b.unreduced = 0b100;
  EXPECT_FALSE(a.same_layout(b));
  a.unreduced = 0b100;
  EXPECT_FALSE(a.same_layout(b));
  a.reduce_kind = ReduceKind::max;
  EXPECT_TRUE(a.same_layout(b));
  a.dims[0] = {2};
  EXPECT_FALSE(a.same_layout(b));
}

/// Tries every way to divide a list of atoms between the two dims of a tensor.
TEST(Sharding, ShardsTileTheTensorExactly) {
  for (const Mesh& mesh : small_meshes()) {
    for (const AtomList atoms : atom_lists(mesh)) {
      for (int cut = 0; cut <= atoms.size(); ++cut) {
        Sharding sharding;
        sharding.dims[0] = atoms.prefix(cut);
        sharding.dims[1] = atoms.suffix_from(cut);
        const Sizes shape{2 * mesh.count(sharding.dims[0]), 3 * mesh.count(sharding.dims[1])};
        std::vector<int> covered(static_cast<std::size_t>(shape[0] * shape[1]), 0);
        const auto local = sharding.local_shape(mesh, shape);
        EXPECT_EQ(local[0], 2);
        EXPECT_EQ(local[1], 3);
        for (int position = 0; position < mesh.size(); ++position) {
          const auto at = sharding.offsets(mesh, position, shape);
          for (std::int64_t i = at[0]; i < at[0] + local[0]; ++i) {
            for (std::int64_t j = at[1]; j < at[1] + local[1]; ++j) {
              ++covered.at(static_cast<std::size_t>(i * shape[1] + j));
            }
          }
        }
        const auto copies = static_cast<int>(mesh.size() / mesh.count(atoms));
        for (const int count : covered) ASSERT_EQ(count, copies) << sharding.to_string(mesh, 2);
      }
    }
  }
}

TEST(Sharding, ReplicasHoldTheSameShard) {
  const Sizes shape{24, 24};
  for (const Mesh& mesh : small_meshes()) {
    for (const AtomList atoms : atom_lists(mesh)) {
      Sharding sharding;
      sharding.dims[1] = atoms;
      for (int position = 0; position < mesh.size(); ++position) {
        std::vector<int> same;
        for (int other = 0; other < mesh.size(); ++other) {
          if (sharding.offsets(mesh, other, shape) == sharding.offsets(mesh, position, shape)) {
            same.push_back(other);
          }
        }
        EXPECT_EQ(sharding.replicas(mesh, position), same)
            << mesh.to_string() << sharding.to_string(mesh, 2) << position;
      }
    }
  }
}

TEST(Sharding, ReplicasAreOnOneHost) {
  const Mesh hybrid = kMesh.with_dcn_atoms(0b0010);  // the major half of "data"
  Sharding by_model;
  by_model.dims[0] = {3};
  EXPECT_EQ(by_model.replicas(hybrid, 0), (std::vector<int>{0, 2}));
  EXPECT_EQ(by_model.replicas(hybrid, 7), (std::vector<int>{5, 7}));
  EXPECT_EQ(Sharding::closed().replicas(hybrid, 5), (std::vector<int>{4, 5, 6, 7}));
}

TEST(Sharding, PrintsAxesAndParts) {
  Sharding sharding;
  sharding.dims[0] = {1, 2};
  sharding.open_mask = 0b110;
  sharding.unreduced = 0b1000;
  EXPECT_EQ(sharding.to_string(kMesh, 3), "[{\"data\"}, {?}, {?}] unreduced{\"model\"}");
  sharding.dims[0] = {2};
  sharding.dims[1] = {3, 1};
  sharding.unreduced = 0;
  sharding.open_mask = 0b10;
  EXPECT_EQ(sharding.to_string(kMesh, 2), "[{\"data\":1}, {\"model\", \"data\":0?}]");
}

TEST(Sharding, PrintsWhatIsNotDefault) {
  Sharding sharding;
  sharding.reduce_kind = ReduceKind::min;
  sharding.replicated = 0b0110;
  sharding.set_priority(1, 1);
  sharding.set_priority(2, 2);
  sharding.set_priority(3, 2);
  EXPECT_EQ(sharding.to_string(kMesh, 0),
            "[] reduce=min replicated{\"data\"} "
            "priority{\"data\":0=1, \"data\":1=2, \"model\"=2}");
  sharding.set_priority(1, 2);
  EXPECT_EQ(sharding.to_string(kMesh, 0),
            "[] reduce=min replicated{\"data\"} priority{\"data\"=2, \"model\"=2}");
}

}  // namespace
}  // namespace weft::sharding_test
