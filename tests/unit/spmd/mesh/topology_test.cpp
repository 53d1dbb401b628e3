#include <gtest/gtest.h>

#include <weft/sharding/mesh.hpp>

#include "tests/support/expect_error.hpp"

namespace weft::topology_test {
namespace {

using testing::expect_error;
using Sizes = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

std::vector<int> workers(int count, int chips) {
  return std::vector<int>(static_cast<std::size_t>(count), chips);
}

TEST(Topology, ParsesSizes) {
  EXPECT_EQ(parse_topology("16"), (Sizes{16}));
  EXPECT_EQ(parse_topology("4x4"), (Sizes{4, 4}));
  EXPECT_EQ(parse_topology("2x2x4"), (Sizes{2, 2, 4}));
}

TEST(Topology, QuotesWhatItCannotParse) {
  for (const std::string text : {"", "x", "4x", "x4", "4x4x", "4 x 4", "4X4", "0x4", "-1x4",
                                 "4x4.0", "9999999999999999999x2"}) {
    expect_error(Errc::invalid_argument, {"topology \"" + text + "\"", "\"4x4\""},
                 [&] { parse_topology(text); });
  }
}

TEST(Topology, NamesAxesByDefault) {
  EXPECT_EQ(default_axis_names(1), (Names{"data"}));
  EXPECT_EQ(default_axis_names(2), (Names{"data", "model"}));
  EXPECT_EQ(default_axis_names(3), (Names{"data", "fsdp", "model"}));
  expect_error(Errc::invalid_argument, {"4 axes", "axis_names"}, [] { default_axis_names(4); });
  expect_error(Errc::invalid_argument, {"0 axes"}, [] { default_axis_names(0); });
}

TEST(MakeMesh, FollowsWorkersAndChips) {
  EXPECT_EQ(make_mesh({.chips_per_worker = workers(4, 4)}), Mesh({4, 4}, {"data", "model"}));
  EXPECT_EQ(make_mesh({.chips_per_worker = workers(2, 8)}), Mesh({2, 8}, {"data", "model"}));
  EXPECT_EQ(make_mesh({.chips_per_worker = workers(1, 8)}), Mesh({8}, {"data"}));
  EXPECT_EQ(make_mesh({.chips_per_worker = workers(1, 1)}), Mesh({1}, {"data"}));
}

TEST(MakeMesh, FollowsTheTopology) {
  EXPECT_EQ(make_mesh({.chips_per_worker = workers(2, 8), .topology = {4, 4}}),
            Mesh({4, 4}, {"data", "model"}));
  EXPECT_EQ(make_mesh({.chips_per_worker = workers(4, 4), .topology = {16}}), Mesh({16}, {"data"}));
}

TEST(MakeMesh, FollowsParallelSizes) {
  const auto mesh = [](std::int64_t data, std::int64_t model) {
    return make_mesh({.chips_per_worker = workers(4, 4),
                      .data_parallel_size = data,
                      .model_parallel_size = model});
  };
  EXPECT_EQ(mesh(8, 2), Mesh({8, 2}, {"data", "model"}));
  EXPECT_EQ(mesh(8, 0), Mesh({8, 2}, {"data", "model"}));
  EXPECT_EQ(mesh(0, 8), Mesh({2, 8}, {"data", "model"}));
  EXPECT_EQ(mesh(16, 0), Mesh({16, 1}, {"data", "model"}));
}

TEST(MakeMesh, PutsAMeshShapeFirst) {
  EXPECT_EQ(make_mesh({.chips_per_worker = workers(2, 8),
                       .topology = {4, 4},
                       .mesh_shape = {8, 2},
                       .axis_names = {"fsdp", "model"},
                       .model_parallel_size = 2}),
            Mesh({8, 2}, {"fsdp", "model"}));
  EXPECT_EQ(make_mesh({.chips_per_worker = workers(1, 8), .mesh_shape = {2, 2, 2}}),
            Mesh({2, 2, 2}, {"data", "fsdp", "model"}));
  EXPECT_EQ(make_mesh({.chips_per_worker = workers(4, 2),
                       .mesh_shape = {8, 1},
                       .axis_names = {"fsdp", "model"}}),
            Mesh({8, 1}, {"fsdp", "model"}));
}

TEST(MakeMesh, WantsAMeshShapeForUnevenWorkers) {
  expect_error(Errc::mesh_mismatch, {"chips_per_worker", "4,2", "mesh_shape", "6"}, [] {
    make_mesh({.chips_per_worker = {4, 2}});
  });
  expect_error(Errc::mesh_mismatch, {"chips_per_worker"}, [] {
    make_mesh({.chips_per_worker = {4, 2}, .topology = {3, 2}});
  });
  EXPECT_EQ(make_mesh({.chips_per_worker = {4, 2}, .mesh_shape = {3, 2}}),
            Mesh({3, 2}, {"data", "model"}));
}

TEST(MakeMesh, RejectsATopologyOfOtherSizeWithItsGrid) {
  expect_error(
      Errc::mesh_mismatch,
      {"topology (4x4)", "16 chips", "3 worker(s) x 4 chip(s)", "12", "columns: model", "data=3"},
      [] {
        make_mesh({.chips_per_worker = workers(3, 4), .topology = {4, 4}});
      });
}

TEST(MakeMesh, RejectsAMeshShapeOfOtherSizeWithItsGrid) {
  expect_error(Errc::mesh_mismatch, {"mesh_shape (2x2)", "4 chips", "8", "data=1"}, [] {
    make_mesh({.chips_per_worker = workers(1, 8), .mesh_shape = {2, 2}});
  });
}

TEST(MakeMesh, NamesTheAxesOfAMeshShapeOfOtherSize) {
  expect_error(Errc::mesh_mismatch,
               {"mesh_shape (foo=2,bar=2)", "4 chips", "8", "columns: bar", "foo=1"}, [] {
                 make_mesh({.chips_per_worker = workers(1, 8),
                            .mesh_shape = {2, 2},
                            .axis_names = {"foo", "bar"}});
               });
}

TEST(MakeMesh, RejectsATopologyThatContradictsTheMeshShape) {
  expect_error(Errc::mesh_mismatch, {"topology (4x4)", "16", "8"}, [] {
    make_mesh({.chips_per_worker = workers(2, 4), .topology = {4, 4}, .mesh_shape = {2, 4}});
  });
}

TEST(MakeMesh, RejectsParallelSizesWithBothNumbers) {
  expect_error(
      Errc::mesh_mismatch,
      {"data_parallel_size 4", "model_parallel_size 2", "16", "4 worker(s) x 4 chip(s)"}, [] {
        make_mesh(
            {.chips_per_worker = workers(4, 4), .data_parallel_size = 4, .model_parallel_size = 2});
      });
  expect_error(Errc::mesh_mismatch, {"data_parallel_size is 3", "16"},
               [] { make_mesh({.chips_per_worker = workers(4, 4), .data_parallel_size = 3}); });
  expect_error(Errc::mesh_mismatch, {"model_parallel_size is 32", "16"},
               [] { make_mesh({.chips_per_worker = workers(4, 4), .model_parallel_size = 32}); });
}

TEST(MakeMesh, RejectsParallelSizesThatContradictTheMeshShape) {
  expect_error(
      Errc::mesh_mismatch, {"data_parallel_size is 8", "axis \"data\"", "size 4", "columns: model"},
      [] {
        make_mesh(
            {.chips_per_worker = workers(4, 4), .mesh_shape = {4, 4}, .data_parallel_size = 8});
      });
  expect_error(Errc::mesh_mismatch, {"model_parallel_size is 2", "axis \"model\"", "size 1"}, [] {
    make_mesh({.chips_per_worker = workers(1, 8), .mesh_shape = {8}, .model_parallel_size = 2});
  });
}

TEST(MakeMesh, RejectsNamesThatDoNotFit) {
  expect_error(Errc::invalid_argument, {"axis_names has 1", "(x)", "(2,4)", "2 axes"},
               [] { make_mesh({.chips_per_worker = workers(2, 4), .axis_names = {"x"}}); });
  expect_error(Errc::invalid_argument, {"repeated"}, [] {
    make_mesh({.chips_per_worker = workers(2, 4), .axis_names = {"x", "x"}});
  });
  expect_error(Errc::invalid_argument, {"4 axes", "axis_names"}, [] {
    make_mesh({.chips_per_worker = workers(2, 8), .mesh_shape = {2, 2, 2, 2}});
  });
}

TEST(MakeMesh, RejectsValuesThatNameNoSize) {
  expect_error(Errc::invalid_argument, {"chips_per_worker", "empty"}, [] { make_mesh({}); });
  expect_error(Errc::invalid_argument, {"chips_per_worker of worker 1 is 0"}, [] {
    make_mesh({.chips_per_worker = {2, 0}});
  });
  expect_error(Errc::invalid_argument, {"data_parallel_size -1"},
               [] { make_mesh({.chips_per_worker = workers(1, 2), .data_parallel_size = -1}); });
  expect_error(Errc::invalid_argument, {"topology (0x4)"}, [] {
    make_mesh({.chips_per_worker = workers(1, 2), .topology = {0, 4}});
  });
  const std::int64_t large = std::int64_t{1} << 40;
  expect_error(Errc::invalid_argument, {"mesh_shape", "1048576"}, [&] {
    make_mesh({.chips_per_worker = workers(1, 2), .mesh_shape = {large, large}});
  });
}

}  // namespace
}  // namespace weft::topology_test
