#include <gtest/gtest.h>

#include <algorithm>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::hybrid_mesh_test {
namespace {

using testing::expect_error;

TEST(HybridMesh, MultipliesHostsAndChips) {
  const HybridMesh hybrid{{2, 2}, {3, 1}, {"data", "model"}};
  EXPECT_EQ(hybrid.chips_per_host(), 4);
  EXPECT_EQ(hybrid.num_hosts(), 3);
  EXPECT_EQ(hybrid.mesh().shape(), (std::vector<std::int64_t>{6, 2}));
}

TEST(HybridMesh, KeepsDevicesOfAHostTogether) {
  const HybridMesh hybrid{{2, 2}, {2, 1}, {"data", "model"}};
  EXPECT_EQ(hybrid.mesh().device_ids(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  const HybridMesh across{{2, 2}, {1, 2}, {"data", "model"}};
  EXPECT_EQ(across.mesh().device_ids(), (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7}));
}

/// Expects that two chips are on one host exactly if their coordinates differ only along atoms
/// within a host.
void expect_tiers(const HybridMesh& hybrid) {
  SCOPED_TRACE(hybrid.mesh().to_string());
  const Mesh mesh = hybrid.mesh();
  const std::vector<Tier> tiers = atom_tiers(hybrid);
  ASSERT_EQ(static_cast<int>(tiers.size()), mesh.num_atoms() + 1);
  EXPECT_EQ(mesh.count(mesh.dcn_atoms()), hybrid.num_hosts());
  for (Atom atom = 1; atom <= mesh.num_atoms(); ++atom) {
    for (int position = 0; position < mesh.size(); ++position) {
      const auto group = mesh.group(position, {atom});
      const bool on_one_host = std::ranges::all_of(
          group, [&](int member) { return host_of(mesh, member) == host_of(mesh, position); });
      ASSERT_EQ(on_one_host, tiers[atom] == Tier::ici) << int{atom} << " at " << position;
    }
  }
}

TEST(HybridMesh, AtomsOfOneTierStayOnOneHost) {
  expect_tiers({{2, 4}, {3, 2}, {"data", "model"}});
  expect_tiers({{12, 3}, {4, 2}, {"data", "model"}});
}

TEST(HybridMesh, TakesAnyNumberOfChipsOnAnyNumberOfHosts) {
  for (std::int64_t hosts = 2; hosts <= 16; ++hosts) {
    for (std::int64_t chips = 2; chips <= 32; ++chips) expect_tiers({{chips}, {hosts}, {"data"}});
  }
}

TEST(HybridMesh, TellsTheMeshWhatCrossesTheNetwork) {
  const Mesh mesh = HybridMesh{{2, 4}, {3, 1}, {"data", "model"}}.mesh();
  EXPECT_EQ(mesh.dcn_atoms(), AtomList{1}.mask());
  EXPECT_NE(mesh, Mesh(mesh.shape(), mesh.axis_names(), mesh.device_ids()));
  EXPECT_EQ(Mesh({6}, {"data"}).dcn_atoms(), 0);
}

TEST(HybridMesh, RejectsListsOfOtherLengths) {
  expect_error(Errc::mesh_mismatch, {"ici (2,2) has 2", "dcn (2) has 1", "axis_names has 2"}, [] {
    HybridMesh{{2, 2}, {2}, {"x", "y"}}.validate();
  });
  expect_error(Errc::mesh_mismatch, {"axis_names has 1"}, [] {
    HybridMesh{{2, 2}, {2, 1}, {"x"}}.validate();
  });
}

TEST(HybridMesh, RejectsSizeBelowOne) {
  expect_error(Errc::invalid_argument, {"ici[1] is 0"}, [] {
    HybridMesh{{2, 0}, {1, 1}, {"x", "y"}}.validate();
  });
  expect_error(Errc::invalid_argument, {"dcn[0] is -2"}, [] {
    HybridMesh{{2, 1}, {-2, 1}, {"x", "y"}}.validate();
  });
}

TEST(HybridMesh, OfHostsThatDoNotDivideAnAxisIsRefused) {
  expect_error(Errc::invalid_argument, {"hosts[0] is 4", "shape[0] is 6"},
               [] { (void)Mesh({6}, {"x"}, {}, {4}); });
  expect_error(Errc::mesh_mismatch, {"hosts (2) has 1", "shape (2,2) has 2"}, [] {
    (void)Mesh({2, 2}, {"x", "y"}, {}, {2});
  });
}

}  // namespace
}  // namespace weft::hybrid_mesh_test
