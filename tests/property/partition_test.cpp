// Tests that random programs, partitioned on N simulated chips, give bitwise the reference
// interpreter's results: on small integers every sum is exact in any order. WEFT_TEST_SEED=<seed>
// runs one random case again.

#include <gtest/gtest.h>

#include <array>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/plan/settle.hpp"
#include "spmd/reference/interpret.hpp"
#include "spmd/text/text.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/mlp.hpp"
#include "tests/support/random_program.hpp"
#include "tests/support/shrink.hpp"

namespace weft::partition_test {
namespace {

using testing::Mlp;
using testing::Random;
using testing::small_integers;

/// Succeeds if the plan gives the program's results. A failure says where they differ.
::testing::AssertionResult agrees(const Program& program, const Mesh& mesh, Random& random) {
  const std::vector<Elements> inputs = small_integers(program, random);
  const auto expected = interpret(program, mesh, inputs);
  try {
    const Plan plan = compile(program, mesh, kCpuTarget);
    const auto actual = simulate(plan.program, mesh, plan.input_types, plan.output_types, inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (actual[i] == expected[i]) continue;
      return ::testing::AssertionFailure()
             << "output " << i << " of\n"
             << to_text(program, mesh) << "on mesh " << mesh.to_string() << "\nplan\n"
             << to_text(plan.program, mesh);
    }
  } catch (const Error& error) {
    return ::testing::AssertionFailure()
           << error.what() << " in\n"
           << to_text(program, mesh) << "on mesh " << mesh.to_string();
  }
  return ::testing::AssertionSuccess();
}

/// Tests a random program with agrees(), and shrinks a program that fails. Each program is tried
/// with a few inputs while it shrinks, because some inputs hide its fault.
::testing::AssertionResult agrees_or_shrinks(const Program& program, const Mesh& mesh,
                                             std::uint64_t seed) {
  const auto result = [&](const Program& tried, std::uint64_t num_draws) {
    ::testing::AssertionResult found = ::testing::AssertionSuccess();
    for (std::uint64_t draw = 0; found && draw < num_draws; ++draw) {
      Random random(seed + draw);
      found = agrees(tried, mesh, random);
    }
    return found;
  };
  if (result(program, 1)) return ::testing::AssertionSuccess();
  const Program left = testing::shrink(
      program, testing::of_valid(mesh, [&](const Program& tried) { return !result(tried, 4); }));
  return result(left, 4) << "seed " << seed << ", shrunk from " << program.num_ops() << " ops to "
                         << left.num_ops();
}

Mesh mesh_of(std::vector<std::int64_t> shape) {
  const std::vector<std::string> names{"a", "b", "c"};
  const auto num_axes = static_cast<std::ptrdiff_t>(shape.size());
  return Mesh(std::move(shape), {names.begin(), names.begin() + num_axes});
}

Mesh hybrid_mesh(std::vector<std::int64_t> ici, std::vector<std::int64_t> dcn) {
  const Mesh flat = mesh_of(ici);
  return HybridMesh{std::move(ici), std::move(dcn), flat.axis_names()}.mesh();
}

AxisNames axis_names(const std::vector<std::string>& names) {
  switch (names.size()) {
    case 1: return {names[0]};
    case 2: return {names[0], names[1]};
    default: return {names.at(0), names.at(1), names.at(2)};
  }
}

/// Returns all specs of a tensor: each axis shards one of the dims or none, and axes of a dim are
/// in any order.
std::vector<PartitionSpec> all_specs(const Mesh& mesh, std::size_t num_dims) {
  std::vector<std::vector<AxisNames>> specs{std::vector<AxisNames>(num_dims)};
  for (const std::string& axis : mesh.axis_names()) {
    std::vector<std::vector<AxisNames>> longer = specs;
    for (const auto& spec : specs) {
      for (std::size_t dim = 0; dim < num_dims; ++dim) {
        const auto& names = spec[dim].names();
        for (std::size_t at = 0; at <= names.size(); ++at) {
          std::vector<std::string> with(names);
          with.insert(with.begin() + static_cast<std::ptrdiff_t>(at), axis);
          longer.push_back(spec);
          longer.back()[dim] = axis_names(with);
        }
      }
    }
    specs = std::move(longer);
  }
  std::vector<PartitionSpec> result;
  for (auto& spec : specs) result.emplace_back(std::move(spec));
  return result;
}

/// Sums a tensor of every sharding over dim 0, and reshards the sum, which is partial if dim 0 is
/// sharded, to every layout.
void check_all_reshards(const Mesh& mesh) {
  const std::int64_t size = mesh.size();
  const TensorType type{DType::f32, {size, 2 * size, size}};
  const Shape sum_shape{2 * size, size};
  Random random(1);
  for (const PartitionSpec& from : all_specs(mesh, 3)) {
    for (const PartitionSpec& to : all_specs(mesh, 2)) {
      Program program;
      Builder builder(program);
      const ValueId x = program.add_input(type, InputKind::data, "x",
                                          Sharding::from_spec(mesh, from, type.shape, "x"));
      const ValueId sum = builder.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{0});
      program.add_output(sum, "sum", Sharding::from_spec(mesh, to, sum_shape, "sum"));
      ASSERT_TRUE(agrees(program, mesh, random));
    }
  }
}

TEST(Partition, ReshardsFromEveryLayoutToEveryOther) {
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{4}, {2, 3}, {4, 2}, {2, 2, 2}}) {
    ASSERT_NO_FATAL_FAILURE(check_all_reshards(mesh_of(shape)));
  }
}

TEST(Partition, ReshardsFromEveryLayoutToEveryOtherBetweenHosts) {
  ASSERT_NO_FATAL_FAILURE(check_all_reshards(hybrid_mesh({4}, {2})));
  ASSERT_NO_FATAL_FAILURE(check_all_reshards(hybrid_mesh({2, 2}, {2, 1})));
  ASSERT_NO_FATAL_FAILURE(check_all_reshards(hybrid_mesh({1, 3}, {2, 1})));
}

Mlp small_mlp(const Mesh& mesh) {
  Mlp mlp;
  mlp.batch = 2 * mesh.size();
  mlp.in = mesh.size();
  mlp.hidden = 3 * mesh.size();
  mlp.out = mesh.size();
  return mlp;
}

void check_all_specs(const Mesh& mesh) {
  const std::vector<PartitionSpec> specs = all_specs(mesh, 2);
  Random random(1);
  Mlp mlp = small_mlp(mesh);
  for (const PartitionSpec& x : specs) {
    for (const PartitionSpec& fc1 : specs) {
      for (const PartitionSpec& fc2 : specs) {
        mlp.x = x;
        mlp.fc1 = fc1;
        mlp.fc2 = fc2;
        ASSERT_TRUE(agrees(mlp.program(mesh), mesh, random));
      }
    }
  }
}

TEST(Partition, AgreesForAllSpecsOnAllMeshesOfOneAxis) {
  for (std::int64_t chips = 1; chips <= 8; ++chips) {
    ASSERT_NO_FATAL_FAILURE(check_all_specs(mesh_of({chips})));
  }
}

TEST(Partition, AgreesForAllSpecsOnAllMeshesOfTwoAxes) {
  for (const auto& shape :
       std::vector<std::vector<std::int64_t>>{{1, 2}, {2, 2}, {2, 3}, {3, 2}, {2, 4}, {4, 2}}) {
    ASSERT_NO_FATAL_FAILURE(check_all_specs(mesh_of(shape)));
  }
}

TEST(Partition, AgreesForSampledSpecsOnThreeAxes) {
  const Mesh mesh = mesh_of({2, 2, 2});
  const std::vector<PartitionSpec> specs = all_specs(mesh, 2);
  for (const std::uint64_t seed : testing::seeds(1000)) {
    Random random(seed);
    const auto any_spec = [&]() -> std::optional<PartitionSpec> {
      if (random.below(4) == 0) return std::nullopt;
      return specs[random.below(specs.size())];
    };
    Mlp mlp = small_mlp(mesh);
    mlp.x = any_spec();
    mlp.y = any_spec();
    mlp.fc1 = any_spec();
    mlp.fc2 = any_spec();
    mlp.momentum = random.below(2) == 0;
    mlp.fc1_momentum = any_spec();
    mlp.fc2_momentum = any_spec();
    mlp.priority = static_cast<int>(random.below(3));
    mlp.input_gradient = random.below(2) == 0;
    ASSERT_TRUE(agrees_or_shrinks(mlp.program(mesh), mesh, seed));
  }
}

TEST(Partition, AgreesForRandomPrograms) {
  const std::vector<Mesh> meshes{mesh_of({1}),  mesh_of({2}),          mesh_of({3}),
                                 mesh_of({4}),  mesh_of({2, 2}),       mesh_of({6}),
                                 mesh_of({8}),  mesh_of({4, 2}),       mesh_of({2, 2, 2}),
                                 mesh_of({16}), hybrid_mesh({4}, {2}), hybrid_mesh({2, 2}, {3, 1})};
  for (const std::uint64_t seed : testing::seeds(8000)) {
    Random random(seed);
    const Mesh& mesh = meshes[random.below(meshes.size())];
    const Program program = seed % 3 == 0   ? testing::random_program(mesh, random)
                            : seed % 3 == 1 ? testing::random_program_of_narrow(mesh, random)
                                            : testing::random_program_of_shards(mesh, random);
    ASSERT_TRUE(agrees_or_shrinks(program, mesh, seed));
  }
}

/// In a later step the parameters begin with the shardings that the plan of the first step chose.
/// The plan of the later step must equal the first plan.
TEST(Partition, ALaterStepComesToTheSamePlan) {
  const std::vector<Mesh> meshes{mesh_of({4}), mesh_of({2, 2}), mesh_of({6}), mesh_of({4, 2})};
  for (const std::uint64_t seed : testing::seeds(2000)) {
    Random random(seed);
    const Mesh& mesh = meshes[random.below(meshes.size())];
    const Program program = testing::random_program(mesh, random);
    const Plan first = compile_settled(program, mesh, kCpuTarget);
    const Plan later = compile_settled(settled(program, first), mesh, kCpuTarget);
    ASSERT_EQ(to_text(later.program, mesh), to_text(first.program, mesh)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft::partition_test
