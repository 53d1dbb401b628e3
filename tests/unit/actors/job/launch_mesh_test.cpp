#include "actors/job/launch_mesh.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/expect_error.hpp"

namespace weft::launch_mesh_test {
namespace {

/// Returns what WEFT_LAUNCH_MESH, set to this value, makes of a mesh with 3 chips along "rows".
SpmdConfig applied(const char* variable) {
  ::setenv("WEFT_LAUNCH_MESH", variable, 1);
  SpmdConfig spmd{.mesh_shape = {3}, .axis_names = {"rows"}, .data_parallel_size = 3};
  try {
    apply_launch_mesh(spmd);
  } catch (...) {
    ::unsetenv("WEFT_LAUNCH_MESH");
    throw;
  }
  ::unsetenv("WEFT_LAUNCH_MESH");
  return spmd;
}

TEST(LaunchMesh, GoesBeforeTheOneThatTheProgramAsksFor) {
  const SpmdConfig one = applied("data=4");
  EXPECT_EQ(one.mesh_shape, std::vector<std::int64_t>{4});
  EXPECT_EQ(one.axis_names, std::vector<std::string>{"data"});
  EXPECT_EQ(one.data_parallel_size, 0);
  const SpmdConfig two = applied("data=2,model=16");
  EXPECT_EQ(two.mesh_shape, (std::vector<std::int64_t>{2, 16}));
  EXPECT_EQ(two.axis_names, (std::vector<std::string>{"data", "model"}));
}

TEST(LaunchMesh, HasHosts) {
  const SpmdConfig hosts = applied("data=2x4,model=2");
  ASSERT_TRUE(hosts.hybrid);
  EXPECT_EQ(hosts.hybrid->dcn, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(hosts.hybrid->ici, (std::vector<std::int64_t>{4, 2}));
  EXPECT_EQ(hosts.hybrid->axis_names, (std::vector<std::string>{"data", "model"}));
  EXPECT_TRUE(hosts.mesh_shape.empty());
  const SpmdConfig one = applied("data=1x4");
  EXPECT_FALSE(one.hybrid);
  EXPECT_EQ(one.mesh_shape, std::vector<std::int64_t>{4});
}

TEST(LaunchMesh, LeavesTheProgramsOwnWhereNoneIsAskedFor) {
  SpmdConfig spmd{.mesh_shape = {3}, .axis_names = {"rows"}};
  apply_launch_mesh(spmd);
  EXPECT_EQ(spmd.axis_names, std::vector<std::string>{"rows"});
}

TEST(LaunchMesh, QuotesWhatIsNone) {
  for (const char* text :
       {"", "data", "data=", "=4", "data=4,", "data=x", "data=4x", "data=x4", "data=0x2",
        "data=2x2x2", "data=0", "data=-2", "data=2;model=2", "data=99999999999999999999"}) {
    testing::expect_error(
        Errc::invalid_argument,
        {"WEFT_LAUNCH_MESH", std::string("\"") + text + "\"", "data=2,model=2", "data=2x4"},
        [&] { applied(text); });
  }
}

}  // namespace
}  // namespace weft::launch_mesh_test
