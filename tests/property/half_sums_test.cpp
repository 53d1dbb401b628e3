// Tests that sums of bf16 and f16 over several chips stay in f32 until all parts are added, and are
// rounded once. WEFT_TEST_SEED=<seed> runs one case again.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/program/element.hpp"
#include "spmd/text/text.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/random_program.hpp"

namespace weft::half_sums_test {
namespace {

using testing::EngineMesh;
using testing::Random;

const std::vector<Mesh>& meshes() {
  static const std::vector<Mesh> all{Mesh({2}, {"a"}), Mesh({3}, {"a"}), Mesh({4}, {"a"}),
                                     Mesh({2, 2}, {"a", "b"}), Mesh({8}, {"a"})};
  return all;
}

std::vector<Elements> run(const Program& program, const Mesh& mesh,
                          const std::vector<Elements>& inputs) {
  const Plan plan = compile(program, mesh, kCpuTarget);
  EngineMesh chips(mesh);
  return testing::join(plan, mesh, chips.run(plan, inputs, EngineMesh::Schedule::one_thread));
}

Sharding over(const Mesh& mesh, int num_dims, int dim) {
  Sharding sharding = Sharding::open(num_dims);
  sharding.dims[static_cast<std::size_t>(dim)] = mesh.list(mesh.all_atoms());
  return sharding;
}

TEST(HalfSums, KeepWhatCancelsBetweenChips) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const Mesh& mesh : {Mesh({2}, {"a"}), Mesh({4}, {"a"}), Mesh({3}, {"a"})}) {
      Program program;
      Builder b(program);
      const ValueId x = program.add_input({dtype, {4}}, InputKind::data, "x", over(mesh, 1, 0));
      program.add_output(b.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{0}), "y", {});
      // Rounding loses a 1 that is added to this number.
      const double large = dtype == DType::bf16 ? 256 : 2048;
      const std::vector<Elements> inputs{{large, 1, -large, 0}};
      EXPECT_EQ(run(program, mesh, inputs).at(0).at(0), 1) << mesh.to_string();
    }
  }
}

/// A sum is rounded before it is added to other values, scaled, or accumulated in a loop.
TEST(HalfSums, AreRoundedBeforeTheyAreReadByOtherOps) {
  const Mesh mesh({2}, {"a"});
  Program program;
  Builder b(program);
  const ValueId x =
      program.add_input({DType::bf16, {3, 4}}, InputKind::data, "x", over(mesh, 2, 1));
  const auto total = [&](ValueId value, std::int64_t dim) {
    return b.reduce(ReduceKind::add, value, std::array{dim});
  };
  const ValueId zero = b.constant(0, {DType::bf16, {}});
  const ValueId number = b.loop(3, false);
  const ValueId carry = b.border(OpKind::carry, {number, zero});
  const ValueId sum = total(b.border(OpKind::item, {number, x}), 0);
  const ValueId next = b.binary(OpKind::add, carry, sum);
  program.add_output(b.border(OpKind::next, {number, carry, next}), "loop", {});
  const ValueId rows = total(x, 1);
  const ValueId half = b.constant(0.5, {DType::bf16, {3}});
  program.add_output(b.binary(OpKind::add, b.binary(OpKind::multiply, rows, half), rows), "scaled",
                     {});
  const std::vector<Elements> inputs{{256, 1, -256, 0, 512, 3, -512, 0, 1024, 2, -1024, 1}};
  const auto outputs = run(program, mesh, inputs);
  EXPECT_EQ(outputs.at(0).at(0), 7);
  EXPECT_EQ(outputs.at(1), (Elements{1.5, 4.5, 4.5}));
}

/// Returns a program of sums and composites along a dim that is divided over chips. Each output is
/// sharded or complete on each chip.
Program random_half_program(const Mesh& mesh, Random& random, DType dtype) {
  Program program;
  Builder b(program);
  const std::int64_t rows = 1 + static_cast<std::int64_t>(random.below(4));
  const std::int64_t size = 24 * (1 + static_cast<std::int64_t>(random.below(3)));
  const TensorType type{dtype, {rows, size}};
  const auto input = [&] {
    return program.add_input(type, InputKind::data, "x", over(mesh, 2, 1));
  };
  const auto output = [&](ValueId value) {
    program.add_output(value, "y", testing::random_sharding(mesh, program.shape(value), random));
  };
  const ValueId x = input();
  const ValueId g = input();
  const Normalization normalization{.center = random.one_in(2), .eps = 0.01};
  const ValueId labels = b.iota({DType::i32, {rows}}, 0);
  switch (random.below(5)) {
    case 0:
      output(b.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{1}));
      output(b.reduce(ReduceKind::add, x, std::array<std::int64_t, 2>{0, 1}));
      break;
    case 1:
      output(b.softmax(x));
      output(b.softmax_grad(OpKind::softmax_grad, x, g));
      break;
    case 2:
      output(b.log_softmax(x));
      output(b.softmax_grad(OpKind::log_softmax_grad, x, g));
      break;
    case 3:
      output(b.normalize(x, normalization));
      output(b.normalize_grad(x, g, normalization));
      break;
    default:
      output(b.cross_entropy(x, labels));
      output(b.cross_entropy_grad(
          x, labels, program.add_input({dtype, {rows}}, InputKind::data, "of losses", {})));
  }
  return program;
}

/// Returns the distance between neighboring numbers of the dtype at x.
double unit(DType dtype, double x) {
  const int digits = dtype == DType::bf16 ? 8 : 11;
  const int lowest = dtype == DType::bf16 ? -126 : -14;
  return std::ldexp(1, std::max(std::ilogb(x == 0 ? 0x1p-126 : x), lowest) - digits + 1);
}

TEST(HalfSums, DifferBetweenMeshesByOneRoundingAtMost) {
  for (const std::uint64_t seed : testing::seeds(400)) {
    Random random(seed);
    const Mesh& mesh = meshes()[random.below(meshes().size())];
    const DType dtype = random.one_in(2) ? DType::bf16 : DType::f16;
    const Program program = random_half_program(mesh, random, dtype);
    std::vector<Elements> inputs;
    for (const ProgramInput& input : program.inputs) {
      Elements& elements = inputs.emplace_back();
      for (std::int64_t i = 0; i < program.type(input.value).num_elements(); ++i) {
        elements.push_back(static_cast<double>(random.below(256)) / 64 - 2);
      }
    }
    const Mesh alone({1}, {"a"});
    Program on_one = program;
    for (ProgramInput& input : on_one.inputs) input.sharding = {};
    for (ProgramOutput& output : on_one.outputs) output.sharding = {};
    const auto expected = run(on_one, alone, inputs);
    const auto found = run(program, mesh, inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      for (std::size_t e = 0; e < expected[i].size(); ++e) {
        // The tolerance allows for rounding in either direction, and for f32 errors that remain
        // when terms cancel in another order.
        const double tolerance = unit(dtype, expected[i][e]) + 1e-5;
        ASSERT_NEAR(found[i][e], expected[i][e], tolerance)
            << "seed " << seed << ", output " << i << ", element " << e << " on mesh "
            << mesh.to_string() << "\n"
            << to_text(program, mesh);
      }
    }
  }
}

}  // namespace
}  // namespace weft::half_sums_test
