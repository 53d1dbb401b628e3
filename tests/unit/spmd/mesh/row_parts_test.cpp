#include "spmd/mesh/row_parts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "spmd/mesh/box.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/unit/spmd/mesh/small_meshes.hpp"

namespace weft::row_parts_test {
namespace {

using Names = std::vector<std::string>;
using Parts = std::vector<std::int64_t>;

std::vector<int> positions_of(const Mesh& mesh, int worker, int chips) {
  std::vector<int> positions;
  for (int i = 0; i < chips; ++i) positions.push_back(mesh.position_of(worker * chips + i));
  return positions;
}

RowParts parts_of(const Mesh& mesh, int worker, int chips, const PartitionSpec& spec) {
  return row_parts(mesh, positions_of(mesh, worker, chips),
                   Sharding::from_spec(mesh, spec, Parts{64}, "x"), "to_device_local");
}

TEST(RowParts, OfWorkersAlongDataAreOneEach) {
  const Mesh mesh({4, 2}, {"data", "model"});
  const RowParts parts = parts_of(mesh, 3, 2, {{"data"}});
  EXPECT_EQ(parts.held, Parts{3});
  EXPECT_EQ(parts.set, 3);
  EXPECT_EQ(parts.num_sets, 4);
  EXPECT_EQ(parts.count(), 4);
}

TEST(RowParts, OfAWorkerAreThoseOfAllItsChips) {
  const RowParts parts = parts_of(Mesh({8}, {"data"}), 1, 4, {{"data"}});
  EXPECT_EQ(parts.held, (Parts{4, 5, 6, 7}));
  EXPECT_EQ(parts.set, 1);
  EXPECT_EQ(parts.num_sets, 2);
}

TEST(RowParts, AreTheSameForWorkersAlongAnAxisThatDoesNotShardRows) {
  const Mesh mesh({2, 4}, {"data", "model"});
  for (const int worker : {0, 1, 2, 3}) {
    const RowParts parts = parts_of(mesh, worker, 2, {{"data"}});
    EXPECT_EQ(parts.set, worker / 2);
    EXPECT_EQ(parts.num_sets, 2);
  }
}

TEST(RowParts, FollowTheOrderOfTheChips) {
  const Mesh mesh({4}, {"data"}, {3, 1, 2, 0});
  EXPECT_EQ(parts_of(mesh, 0, 2, {{"data"}}).held, (Parts{1, 3}));
  EXPECT_EQ(parts_of(mesh, 1, 2, {{"data"}}).held, (Parts{0, 2}));
  EXPECT_EQ(parts_of(mesh, 1, 2, {{"data"}}).set, 0) << "its first part comes first";
}

TEST(RowParts, OfWorkersThatShareSomeAreRefused) {
  const Mesh mesh({3, 2}, {"data", "model"});
  testing::expect_error(
      Errc::invalid_argument,
      {"to_device_local: dim 0 has 3 parts, and worker 0 holds {0,1} but worker 1 holds {1,2}"},
      [&] { parts_of(mesh, 0, 3, {{"data"}}); });
}

/// For every sharding of dim 0, each row is on the chips of only one set of workers.
TEST(RowParts, CutTheRowsAmongTheWorkersOfEverySmallMesh) {
  int tried = 0;
  for (const Mesh& mesh : testing::small_meshes()) {
    for (int chips = 1; chips <= mesh.size(); ++chips) {
      if (mesh.size() % chips != 0) continue;
      for (const AtomList& atoms : testing::atom_lists(mesh)) {
        Sharding sharding;
        sharding.dims[0] = atoms;
        std::map<std::int64_t, std::set<std::int64_t>> sets_of_part;
        try {
          for (int worker = 0; worker < mesh.size() / chips; ++worker) {
            const RowParts parts =
                row_parts(mesh, positions_of(mesh, worker, chips), sharding, "x");
            EXPECT_EQ(parts.count(), mesh.count(atoms));
            for (const std::int64_t part : parts.held) sets_of_part[part].insert(parts.set);
          }
        } catch (const Error&) {
          continue;  // two workers share some, not all, of their parts
        }
        ++tried;
        EXPECT_EQ(std::ssize(sets_of_part), mesh.count(atoms));
        for (const auto& [part, sets] : sets_of_part) EXPECT_EQ(sets.size(), 1U) << part;
      }
    }
  }
  EXPECT_GT(tried, 1000);
}

TEST(BatchAxes, AreThoseAlongWhichWorkersLie) {
  EXPECT_EQ(batch_axes(Mesh({4, 4}, {"data", "model"}), 4), Names{"data"});
  EXPECT_EQ(batch_axes(Mesh({4, 4}, {"fsdp", "model"}), 4), Names{"fsdp"});
  EXPECT_EQ(batch_axes(Mesh({2, 4}, {"data", "model"}), 2), (Names{"data", "model"}));
  EXPECT_EQ(batch_axes(Mesh({8}, {"data"}), 8), Names{"data"}) << "of one worker";
  EXPECT_EQ(batch_axes(Mesh({8}, {"model"}), 8), Names{});
}

}  // namespace
}  // namespace weft::row_parts_test
