#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "spmd/ops/builder.hpp"
#include "spmd/program/permute.hpp"
#include "spmd/reference/interpret.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/unit/spmd/mesh/small_meshes.hpp"

namespace weft::simulate_test {
namespace {

using testing::expect_error;

const Mesh kLine({3}, {"x"});
const Mesh kSquare({2, 2}, {"x", "y"});

/// Runs `op` on every chip, and returns the results of all chips one after another. Each chip
/// begins with its part of `before`, which has the parts of all chips one after another.
Elements run(const Mesh& mesh, const Shape& local, const Elements& before,
             const std::function<ValueId(Builder&, ValueId)>& op) {
  Program program;
  Builder builder(program);
  Sharding by_chip;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    by_chip.dims[0].append(mesh.axis_atoms(axis));
  }
  const auto stacked = [&](const Shape& shape) {  // adds a dim of size 1 at the front
    std::vector<std::int64_t> dims{1};
    dims.insert(dims.end(), shape.begin(), shape.end());
    return Shape(std::span<const std::int64_t>(dims));
  };
  const auto global = [&](Shape shape) {
    shape[0] = mesh.size();
    return TensorType{DType::f64, shape};
  };
  const ValueId x = program.add_input({DType::f64, stacked(local)}, InputKind::data, "x", by_chip);
  const ValueId result = op(builder, builder.reshape(x, local));
  const Shape after = stacked(program.shape(result));
  program.add_output(builder.reshape(result, after), "y", by_chip);
  const std::vector<TensorType> input_types{global(stacked(local))};
  const std::vector<TensorType> output_types{global(after)};
  const std::vector<Elements> inputs{before};
  return simulate(program, mesh, input_types, output_types, inputs).at(0);
}

TEST(Simulate, AllReduce) {
  EXPECT_EQ(run(kLine, {2}, {1, 2, 3, 4, 5, 60},
                [](Builder& b, ValueId x) { return b.all_reduce(kLine, x, {1}, ReduceKind::add); }),
            (Elements{9, 66, 9, 66, 9, 66}));
  const auto square = [](AtomList atoms, ReduceKind kind) {
    return run(kSquare, {1}, {1, 2, 3, 4},
               [&](Builder& b, ValueId x) { return b.all_reduce(kSquare, x, atoms, kind); });
  };
  EXPECT_EQ(square({1}, ReduceKind::add), (Elements{4, 6, 4, 6}));
  EXPECT_EQ(square({2}, ReduceKind::add), (Elements{3, 3, 7, 7}));
  EXPECT_EQ(square({1, 2}, ReduceKind::add), (Elements{10, 10, 10, 10}));
  EXPECT_EQ(square({2}, ReduceKind::max), (Elements{2, 2, 4, 4}));
  EXPECT_EQ(square({1}, ReduceKind::min), (Elements{1, 2, 1, 2}));
}

TEST(Simulate, SumsOfIntegersWrap) {
  EXPECT_EQ(run(kLine, {1}, {200, 50, 10},
                [](Builder& b, ValueId x) {
                  const ValueId bytes = b.convert(x, DType::u8);
                  return b.convert(b.all_reduce(kLine, bytes, {1}, ReduceKind::add), DType::f64);
                }),
            (Elements{4, 4, 4}));
}

TEST(Simulate, AllGather) {
  EXPECT_EQ(run(kLine, {1}, {1, 2, 3},
                [](Builder& b, ValueId x) { return b.all_gather(kLine, x, {1}, 0); }),
            (Elements{1, 2, 3, 1, 2, 3, 1, 2, 3}));
  const auto square = [](AtomList atoms) {
    return run(kSquare, {1}, {1, 2, 3, 4},
               [&](Builder& b, ValueId x) { return b.all_gather(kSquare, x, atoms, 0); });
  };
  EXPECT_EQ(square({1}), (Elements{1, 3, 2, 4, 1, 3, 2, 4}));
  EXPECT_EQ(square({2}), (Elements{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(square({2, 1}),  // in group order, in which y is major
            (Elements{1, 3, 2, 4, 1, 3, 2, 4, 1, 3, 2, 4, 1, 3, 2, 4}));
}

TEST(Simulate, AllGatherOfAMinorDimInterleaves) {
  const Mesh mesh({2}, {"x"});
  EXPECT_EQ(run(mesh, {2, 1}, {1, 2, 3, 4},
                [&](Builder& b, ValueId x) { return b.all_gather(mesh, x, {1}, 1); }),
            (Elements{1, 3, 2, 4, 1, 3, 2, 4}));
}

TEST(Simulate, ReduceScatter) {
  EXPECT_EQ(run(kLine, {3}, {1, 2, 3, 10, 20, 30, 100, 200, 300},
                [](Builder& b, ValueId x) {
                  return b.reduce_scatter(kLine, x, {1}, ReduceKind::add, 0);
                }),
            (Elements{111, 222, 333}));
  const auto square = [](AtomList atoms, ReduceKind kind) {
    return run(kSquare, {2}, {1, 2, 3, 4, 5, 6, 7, 8},
               [&](Builder& b, ValueId x) { return b.reduce_scatter(kSquare, x, atoms, kind, 0); });
  };
  EXPECT_EQ(square({2}, ReduceKind::add), (Elements{4, 6, 12, 14}));
  EXPECT_EQ(square({1}, ReduceKind::max), (Elements{5, 7, 6, 8}));
}

TEST(Simulate, AllToAll) {
  // Chip p has rows 10 p + {0, 1, 2} before the all_to_all. Then it has piece p of every chip, side
  // by side.
  EXPECT_EQ(run(kLine, {3, 1}, {0, 1, 2, 10, 11, 12, 20, 21, 22},
                [](Builder& b, ValueId x) { return b.all_to_all(kLine, x, {1}, 0, 1); }),
            (Elements{0, 10, 20, 1, 11, 21, 2, 12, 22}));
  EXPECT_EQ(run(kSquare, {2, 1}, {0, 1, 10, 11, 20, 21, 30, 31},
                [](Builder& b, ValueId x) { return b.all_to_all(kSquare, x, {1}, 0, 1); }),
            (Elements{0, 20, 10, 30, 1, 21, 11, 31}));
}

TEST(Simulate, AllToAllMovesAnAtomFromOneDimToAnother) {
  const Program program = parse_program(R"(program(%0: f32[4,2] data "x" [{}, {"x", "y"}]) {
    %1 = all_to_all %0 {atoms = {"y"}, split = 0, concat = 1} : f32[2,4]
    return %1 "y" [{"y"}, {"x"}]
  })",
                                        kSquare);
  const std::vector<TensorType> types{{DType::f32, {4, 8}}};
  std::vector<Elements> inputs(1);
  for (int i = 0; i < 32; ++i) inputs[0].push_back(i);
  EXPECT_EQ(simulate(program, kSquare, types, types, inputs), inputs);
}

TEST(Simulate, AllSlice) {
  EXPECT_EQ(run(kLine, {3}, {1, 2, 3, 4, 5, 6, 7, 8, 9},
                [](Builder& b, ValueId x) { return b.all_slice(kLine, x, {1}, 0); }),
            (Elements{1, 5, 9}));
  EXPECT_EQ(run(kSquare, {2, 2}, {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4},
                [](Builder& b, ValueId x) { return b.all_slice(kSquare, x, {2}, 1); }),
            (Elements{1, 3, 2, 4, 1, 3, 2, 4}));
}

TEST(Simulate, IotaCountsOverTheWholeTensor) {
  const Program program = parse_program(R"(program() {
    %0 = iota {dim = 0, atoms = {"y", "x"}} : i32[2,1]
    return %0 "y" [{"y", "x"}, {}]
  })",
                                        kSquare);
  const std::vector<TensorType> types{{DType::i32, {8, 1}}};
  EXPECT_EQ(simulate(program, kSquare, {}, types, {}).at(0), (Elements{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Simulate, CollectivePermute) {
  // The value is resharded from x to y. Chip (0,1) needs shard 1, which chips (1,0) and (1,1) have.
  const std::array<AtomList, 1> from{AtomList{1}};
  const std::array<AtomList, 1> to{AtomList{2}};
  EXPECT_EQ(permute_sources(kSquare, from, to), (std::vector<int>{0, 2, 0, 3}));
  EXPECT_EQ(run(kSquare, {1}, {1, 1, 2, 2},
                [&](Builder& b, ValueId x) { return b.collective_permute(x, from, to); }),
            (Elements{1, 2, 1, 2}));
}

TEST(Simulate, CollectivePermuteReordersAtoms) {
  const std::array<AtomList, 1> from{AtomList{1, 2}};
  const std::array<AtomList, 1> to{AtomList{2, 1}};
  EXPECT_EQ(permute_sources(kSquare, from, to), (std::vector<int>{0, 2, 1, 3}));
}

/// Expects that each chip's source has the shard that the chip needs. The source is the chip itself
/// if it has that shard, otherwise the lowest chip of the group that has it.
void check_sources(const Mesh& mesh, std::span<const AtomList> from, std::span<const AtomList> to) {
  const std::vector<int> sources = permute_sources(mesh, from, to);
  const AtomList atoms = permute_atoms(mesh, from, to);
  for (int position = 0; position < mesh.size(); ++position) {
    std::vector<int> holders;
    for (const int chip : mesh.group(position, atoms)) {
      bool holds = true;
      for (std::size_t dim = 0; dim < from.size(); ++dim) {
        holds &= mesh.index_in(chip, from[dim]) == mesh.index_in(position, to[dim]);
      }
      if (holds) holders.push_back(chip);
    }
    ASSERT_FALSE(holders.empty());
    const bool itself = std::find(holders.begin(), holders.end(), position) != holders.end();
    ASSERT_EQ(sources[static_cast<std::size_t>(position)],
              itself ? position : *std::min_element(holders.begin(), holders.end()))
        << mesh.to_string();
  }
}

/// Tests all pairs of shardings that cut each of two dims into equally many parts, on small meshes.
TEST(Permute, EverySourceHoldsWhatTheChipShallHold) {
  for (const Mesh& mesh : testing::small_meshes()) {
    const std::vector<AtomList> lists = testing::atom_lists(mesh);
    for (const AtomList from_atoms : lists) {
      for (const AtomList to_atoms : lists) {
        for (int cut = 0; cut <= std::min(from_atoms.size(), to_atoms.size()); ++cut) {
          const std::array from{from_atoms.prefix(cut), from_atoms.suffix_from(cut)};
          const std::array to{to_atoms.prefix(cut), to_atoms.suffix_from(cut)};
          const bool equal_parts =
              mesh.count(from[0]) == mesh.count(to[0]) && mesh.count(from[1]) == mesh.count(to[1]);
          if (equal_parts) check_sources(mesh, from, to);
        }
      }
    }
  }
}

TEST(Simulate, RunsLocalOpsOnEveryChip) {
  const Program program = parse_program(R"(program(%0: f32[2] data "x" [{"x"}]) {
    %1 = add %0, %0 : f32[2]
    %2 = reduce %1 {kind = add, dims = [0]} : f32[]
    %3 = all_reduce %2 {atoms = {"x"}, kind = add} : f32[]
    return %1 "y" [{"x"}], %3 "sum" []
  })",
                                        kLine);
  const std::vector<TensorType> input_types{{DType::f32, {6}}};
  const std::vector<TensorType> output_types{{DType::f32, {6}}, {DType::f32, {}}};
  const std::vector<Elements> inputs{{1, 2, 3, 4, 5, 6}};
  const std::vector<Elements> outputs = simulate(program, kLine, input_types, output_types, inputs);
  EXPECT_EQ(outputs[0], (Elements{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(outputs[1], (Elements{42}));
}

TEST(Simulate, RefusesTypesThatAreNotShards) {
  const Program program = parse_program(
      "program(%0: f32[2] data \"x\" [{\"x\"}]) { return %0 \"y\" [{\"x\"}] }", kLine);
  const std::vector<TensorType> good{{DType::f32, {6}}};
  const std::vector<TensorType> bad{{DType::f32, {7}}};
  const std::vector<Elements> inputs{{1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(simulate(program, kLine, good, good, inputs), inputs);
  expect_error(Errc::invalid_argument, {"\"x\"", "f32[2]", "f32[7]", "[{\"x\"}]"},
               [&] { simulate(program, kLine, bad, good, inputs); });
  expect_error(Errc::invalid_argument, {"\"y\"", "f32[7]"},
               [&] { simulate(program, kLine, good, bad, inputs); });
  expect_error(Errc::invalid_argument, {"1 inputs", "0 output types"},
               [&] { simulate(program, kLine, good, {}, inputs); });
  const std::vector<Elements> few{{1, 2, 3}};
  expect_error(Errc::invalid_argument, {"\"x\"", "f32[6]", "3 elements"},
               [&] { simulate(program, kLine, good, good, few); });
}

TEST(SimulateDeathTest, ChecksThatReplicasAgree) {
  const Program program = parse_program(
      "program(%0: f32[2] data \"x\" [{\"x\"}]) { return %0 \"differs\" [{}] }", kLine);
  const std::vector<TensorType> input_types{{DType::f32, {6}}};
  const std::vector<TensorType> output_types{{DType::f32, {2}}};
  const std::vector<Elements> inputs{{1, 2, 3, 4, 5, 6}};
  EXPECT_DEATH(simulate(program, kLine, input_types, output_types, inputs), "differs");
}

}  // namespace
}  // namespace weft::simulate_test
