#include <gtest/gtest.h>

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

TEST(HybridMesh, AtomsOfOneTierStayOnOneHost) {
  const HybridMesh hybrid{{2, 4}, {3, 2}, {"data", "model"}};
  const Mesh mesh = hybrid.mesh();
  const std::vector<Tier> tiers = atom_tiers(hybrid);
  ASSERT_EQ(static_cast<int>(tiers.size()), mesh.num_atoms() + 1);
  const auto host = [&](int position) {
    return mesh.device_at(position) / hybrid.chips_per_host();
  };
  for (Atom atom = 1; atom <= mesh.num_atoms(); ++atom) {
    for (int position = 0; position < mesh.size(); ++position) {
      for (const int member : mesh.group(position, {atom})) {
        if (member == position) continue;
        EXPECT_EQ(host(member) == host(position), tiers[atom] == Tier::ici) << int{atom};
      }
    }
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

TEST(HybridMesh, RejectsAnAxisWhoseAtomsCrossTheTiers) {
  // 6 = 3 * 2: the leading products are 3 and 6, never 2.
  expect_error(Errc::unavailable, {"\"x\"", "dcn 2", "ici 3", "3,2"}, [] {
    atom_tiers(HybridMesh{{3}, {2}, {"x"}});
  });
}

}  // namespace
}  // namespace weft::hybrid_mesh_test
