// Tests that the StableHLO text of every op and of random programs, run by a PJRT plug-in for CPUs,
// gives the results of the reference interpreter. WEFT_TEST_SEED=<seed> runs one random case again.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "spmd/ops/verify.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/stablehlo/stablehlo_target.hpp"
#include "spmd/text/text.hpp"
#include "tests/property/hlo_runner.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/custom_ops.hpp"
#include "tests/support/op_examples.hpp"
#include "tests/support/op_values.hpp"
#include "tests/support/random_program.hpp"
#include "tests/support/real_plugins.hpp"

namespace weft::stablehlo_ops_test {
namespace {

using testing::expect_near;
using testing::HloRunner;
using testing::input_types;
using testing::inputs_of;
using testing::OpExample;
using testing::output_types;
using testing::Random;
using testing::tolerance_of;

const Mesh kMesh({2, 2}, {"data", "model"});
const Mesh kOneChip({1}, {"data"});

/// Returns whether all cases are tested, instead of only some of each kind.
bool tests_all() {
  const char* times = std::getenv("WEFT_TEST_TIMES");
  return times != nullptr && std::stod(times) > 1;
}

class Ops : public ::testing::TestWithParam<OpExample> {
 protected:
  static void SetUpTestSuite() { testing::custom_target(testing::CustomKind::affine, 2); }
  void SetUp() override {
    runner_ = HloRunner::get();
    if (runner_ == nullptr) GTEST_SKIP() << testing::kNoRealPlugins;
  }

  const OpExample& example() const { return GetParam(); }

  void expect_partitioned(const Program& program) const {
    SCOPED_TRACE(to_text(program, kMesh));
    const std::vector<Elements> given = inputs_of(input_types(program));
    const Plan plan = compile(program, kMesh, kStableHloTarget);
    const auto expected = interpret(program, kMesh, given);
    const auto actual =
        runner_->run({plan.program, kMesh, plan.input_types, plan.output_types, given}).outputs;
    expect_near(plan.output_types[0], expected.at(0), actual.at(0), tolerance_of(program));
  }

  HloRunner* runner_ = nullptr;
};

TEST_P(Ops, ComputeWhatTheInterpreterComputes) {
  if (example().is_of_chips() || example().is_of_shard_map()) {
    GTEST_SKIP() << "it stands in no program of one chip";
  }
  int dtypes = 0;
  std::vector<std::string_view> tested{"f32", "bf16", "i32", "pred"};
  if (tests_all()) tested = {"pred", "i32", "u32", "i64", "bf16", "f32", "f64", "f16", "i8", "u8"};
  if (example().kind == OpKind::custom_call) tested = {"f32", "f64", "i64"};
  for (const std::string_view dtype : tested) {
    SCOPED_TRACE(dtype);
    Program program;
    try {
      program = parse_program(testing::text_of(example(), dtype), kOneChip);
      verify(program, kOneChip);
    } catch (const Error&) {
      continue;  // the op or its body doesn't allow this dtype
    }
    ++dtypes;
    const std::vector<TensorType> inputs = input_types(program);
    const std::vector<TensorType> outputs = output_types(program);
    const std::vector<Elements> given = inputs_of(inputs);
    const Elements expected = interpret(program, given).at(0);
    try {
      const Elements actual =
          runner_->run({program, kOneChip, inputs, outputs, given}).outputs.at(0);
      expect_near(outputs[0], expected, actual, tolerance_of(program));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << to_stablehlo(program, kOneChip, "test").text;
    }
  }
  EXPECT_GE(dtypes, 1);
}

TEST_P(Ops, AreTheSameWhenTheyArePartitioned) {
  if (example().is_of_chips()) {
    const Program program = parse_program(testing::text_of(example()), kMesh);
    std::vector<TensorType> inputs = input_types(program);
    std::vector<TensorType> outputs = output_types(program);
    const auto widen = [](TensorType& type, const Sharding& sharding) {
      for (int dim = 0; dim < type.shape.size(); ++dim) {
        type.shape[dim] *= kMesh.count(sharding.dims[static_cast<std::size_t>(dim)]);
      }
    };
    widen(inputs[0], program.inputs[0].sharding);
    widen(outputs[0], program.outputs[0].sharding);
    const std::vector<Elements> given = inputs_of(inputs);
    const auto expected = simulate(program, kMesh, inputs, outputs, given);
    const auto actual = runner_->run({program, kMesh, inputs, outputs, given}).outputs;
    return expect_near(outputs[0], expected.at(0), actual.at(0), 2e-6);
  }
  const Program open = parse_program(testing::text_of(example()), kMesh);
  verify(open, kMesh);
  if (open.inputs.empty()) return expect_partitioned(open);
  for (std::size_t cut = 0; cut < (tests_all() ? open.inputs.size() : 1); ++cut) {
    const int num_dims = open.type(open.inputs[cut].value).shape.size();
    for (int dim = 0; dim < (tests_all() ? num_dims : std::min(num_dims, 1)); ++dim) {
      Program marked = open;
      Sharding& sharding = marked.inputs[cut].sharding;
      sharding = Sharding::closed();
      sharding.dims[static_cast<std::size_t>(dim)] = kMesh.axis_atoms(0);
      expect_partitioned(marked);
      if (HasFatalFailure()) return;
    }
  }
}

std::string name_of(const OpExample& example) {
  return fmt::format("{}{}{}", to_string(example.kind), example.variant.empty() ? "" : "_",
                     example.variant);
}

INSTANTIATE_TEST_SUITE_P(Every, Ops, ::testing::ValuesIn(testing::op_examples()),
                         [](const auto& tested) { return name_of(tested.param); });

/// Succeeds if the plan's text gives the interpreter's results. A failure says where they differ.
::testing::AssertionResult agrees(HloRunner& runner, const Program& program, const Mesh& mesh,
                                  std::uint64_t seed) {
  Random random(seed);
  const std::vector<Elements> inputs = testing::small_integers(program, random);
  const auto expected = interpret(program, mesh, inputs);
  const auto text = [&](const Plan& plan) {
    return fmt::format("{}on mesh {}\nplan\n{}\n{}", to_text(program, mesh), mesh.to_string(),
                       to_text(plan.program, mesh), to_stablehlo(plan.program, mesh, "it").text);
  };
  const Plan plan = compile(program, mesh, kStableHloTarget);
  try {
    const auto actual =
        runner.run({plan.program, mesh, plan.input_types, plan.output_types, inputs}).outputs;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto [is, should] = std::ranges::mismatch(actual[i], expected[i]);
      if (is == actual[i].end()) continue;
      return ::testing::AssertionFailure()
             << "element " << is - actual[i].begin() << " of output " << i << " is " << *is
             << " instead of " << *should << " in\n"
             << text(plan);
    }
  } catch (const std::exception& error) {
    return ::testing::AssertionFailure() << error.what() << " in\n" << text(plan);
  }
  return ::testing::AssertionSuccess();
}

/// Inputs are small integers, so that every sum is exact in any order and results must be equal.
TEST(RandomPrograms, GiveTheResultsOfTheInterpreter) {
  HloRunner* runner = HloRunner::get();
  if (runner == nullptr) GTEST_SKIP() << testing::kNoRealPlugins;
  testing::custom_target(testing::CustomKind::affine, 2);
  const std::vector<Mesh> meshes{Mesh({1}, {"a"}), Mesh({2}, {"a"}), Mesh({2, 2}, {"a", "b"}),
                                 Mesh({6}, {"a"}), Mesh({2, 2, 2}, {"a", "b", "c"})};
  for (const std::uint64_t seed : testing::seeds(25)) {
    Random random(seed);
    const Mesh& mesh = meshes[random.below(meshes.size())];
    const Program program = seed % 3 == 0   ? testing::random_program(mesh, random)
                            : seed % 3 == 1 ? testing::random_program_of_narrow(mesh, random)
                                            : testing::random_program_of_shards(mesh, random);
    ASSERT_TRUE(agrees(*runner, program, mesh, seed)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft::stablehlo_ops_test
