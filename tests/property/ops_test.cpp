// Tests every op's row in the table of ops and its kernels. An example of each op is printed and
// parsed, computed directly and from its decomposition, differentiated, run by the real executor in
// each dtype, and partitioned on three meshes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/grad/grad.hpp"
#include "spmd/ops/fingerprint.hpp"
#include "spmd/ops/verify.hpp"
#include "spmd/program/element.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/custom_ops.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/op_examples.hpp"
#include "tests/support/op_values.hpp"

namespace weft::ops_test {
namespace {

using testing::EngineMesh;
using testing::input_types;
using testing::inputs_of;
using testing::OpExample;
using testing::output_types;
using testing::tolerance_of;

const Mesh kMesh({2, 2}, {"data", "model"});

class Ops : public ::testing::TestWithParam<OpExample> {
 protected:
  static void SetUpTestSuite() { testing::custom_target(testing::CustomKind::affine, 2); }

  const OpExample& example() const { return GetParam(); }
  Program program(const Mesh& mesh = kMesh) const {
    Program program = parse_program(testing::text_of(example()), mesh);
    verify(program, mesh);
    return program;
  }
};

/// Compares with a tolerance relative to the largest expected element, or 1 if all are smaller.
void expect_near(const Elements& expected, const Elements& actual, double tolerance) {
  ASSERT_EQ(expected.size(), actual.size());
  double scale = 1;
  for (const double element : expected) scale = std::max(scale, std::abs(element));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(expected[i], actual[i], tolerance * scale) << "element " << i;
  }
}

/// Returns the result of the chips of a mesh; std::nullopt if the dtype has no kernel.
std::optional<Elements> run(const Plan& plan, const Mesh& mesh, std::span<const Elements> inputs) {
  EngineMesh chips(mesh);
  try {
    const auto outputs = chips.run(plan, inputs, EngineMesh::Schedule::one_thread);
    return testing::join(plan, mesh, outputs).at(0);
  } catch (const Error& error) {
    if (error.code() != Errc::unavailable) throw;
    return {};
  }
}

/// Returns the op's name, with the variant if the op has several examples: "attention_mask".
std::string name_of(const OpExample& example) {
  return fmt::format("{}{}{}", to_string(example.kind), example.variant.empty() ? "" : "_",
                     example.variant);
}

TEST(OpExamples, AreThereForEachOp) {
  std::set<OpKind> kinds;
  for (const OpExample& example : testing::op_examples()) kinds.insert(example.kind);
  for (std::uint16_t number = 0; number < kOpNumberMax; ++number) {
    if (!is_op_kind(number)) continue;
    EXPECT_TRUE(kinds.contains(static_cast<OpKind>(number)))
        << to_string(static_cast<OpKind>(number)) << " has no example in op_examples.cpp";
  }
}

TEST_P(Ops, ReadsAsItIsPrinted) {
  const Program program = this->program();
  EXPECT_TRUE(std::ranges::count(program.op_kinds, example().kind));
  const std::string text = to_text(program, kMesh);
  const Program parsed = parse_program(text, kMesh);
  EXPECT_EQ(to_text(parsed, kMesh), text);
  EXPECT_EQ(fingerprint(parsed), fingerprint(program));
}

TEST_P(Ops, IsWhatItDecomposesTo) {
  if (!is_composite(example().kind)) GTEST_SKIP() << "it is a primitive";
  Program program = this->program();
  const std::vector<Elements> inputs = inputs_of(input_types(program));
  const Elements expected = interpret(program, inputs).at(0);
  const OpId op = program.num_ops() - 1;
  const std::vector<ValueId> operands(program.op_operands(op).begin(),
                                      program.op_operands(op).end());
  const std::vector<std::int64_t> attrs(program.op_attrs(op).begin(), program.op_attrs(op).end());
  Builder builder(program);
  program.outputs[0].value = decompose(builder, example().kind, operands, attrs);
  expect_near(expected, interpret(program, inputs).at(0), 1e-7);
}

/// Compares the gradient with central differences of a weighted sum of the result.
TEST_P(Ops, HasTheGradientOfItsValues) {
  const Gradient::How how = row(example().kind).gradient->how;
  using enum Gradient::How;
  if (example().is_of_chips())
    GTEST_SKIP() << "its gradient is one of a shard_map (shard_map_test.cpp)";
  if (how != function && how != decomposition && how != Gradient::How::loop) {
    GTEST_SKIP() << "its result is constant, or it isn't differentiated";
  }
  Program program = this->program();
  const TensorType type = program.type(program.outputs[0].value);
  if (!is_floating(type.dtype)) GTEST_SKIP() << "its result isn't floating";
  Builder builder(program, &kMesh);
  std::vector<ValueId> wrt;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (!is_floating(program.type(program.inputs[i].value).dtype)) continue;
    wrt.push_back(program.inputs[i].value);
    numbers.push_back(i);
  }
  const auto size = static_cast<std::size_t>(type.num_elements());
  std::vector<float> weights(size);
  for (std::size_t i = 0; i < size; ++i) weights[i] = 0.5F + static_cast<float>(i % 7) / 8;
  ValueId weight = builder.constant(std::as_bytes(std::span(weights)), {DType::f32, type.shape});
  if (type.dtype != DType::f32) weight = builder.convert(weight, type.dtype);
  std::vector<std::int64_t> dims;
  for (int dim = 0; dim < type.shape.size(); ++dim) dims.push_back(dim);
  const ValueId weighted = builder.binary(OpKind::multiply, program.outputs[0].value, weight);
  const ValueId loss = builder.reduce(ReduceKind::add, weighted, dims);
  const std::vector<ValueId> gradients = grad(builder, loss, wrt);
  program.outputs.clear();
  program.add_output(loss, "loss", {});
  for (const ValueId gradient : gradients) program.add_output(gradient, "gradient", {});

  std::vector<Elements> inputs = inputs_of(input_types(program));
  const std::vector<Elements> values = interpret(program, kMesh, inputs);
  const auto loss_at = [&] { return interpret(program, kMesh, inputs).at(0).at(0); };
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    Elements& x = inputs[numbers[i]];
    for (std::size_t e = 0; e < x.size(); e += 1 + x.size() / 9) {
      constexpr double kStep = 1e-5;
      const double at = x[e];
      x[e] = at + kStep;
      const double above = loss_at();
      x[e] = at - kStep;
      const double below = loss_at();
      x[e] = at;
      const double slope = (above - below) / (2 * kStep);
      EXPECT_NEAR(values[1 + i][e], slope, 1e-6 * (1 + std::abs(slope)))
          << "element " << e << " of %" << numbers[i];
    }
  }
}

TEST_P(Ops, HasAKernelThatComputesItsValues) {
  if (example().is_of_chips() || example().is_of_shard_map() ||
      example().kind == OpKind::sharding_constraint) {
    GTEST_SKIP() << "it stands in no program of one chip";
  }
  const Mesh mesh({1}, {"data"});
  int kernels = 0;
  for (const std::string_view dtype :
       {"pred", "i32", "u32", "i64", "bf16", "f32", "f64", "f16", "i8", "u8"}) {
    SCOPED_TRACE(dtype);
    const bool is_custom = example().kind == OpKind::custom_call;
    if (is_custom && dtype != "i64" && dtype != "f32" && dtype != "f64") continue;
    Program program;
    try {
      program = parse_program(testing::text_of(example(), dtype), mesh);
      verify(program, mesh);
    } catch (const Error&) {
      continue;  // the op or its body doesn't allow this dtype
    }
    const std::vector<TensorType> types = input_types(program);
    const std::vector<Elements> inputs = inputs_of(types);
    const Plan plan = make_plan(program, mesh, types, output_types(program), kCpuTarget);
    verify(plan, mesh);
    const std::optional<Elements> actual = run(plan, mesh, inputs);
    if (!actual) continue;
    ++kernels;
    expect_near(interpret(program, inputs).at(0), *actual, tolerance_of(program));
  }
  EXPECT_GE(kernels, 1);
}

/// Each input is sharded along each of its dims in turn, also unevenly.
TEST_P(Ops, IsTheSameWhenItIsPartitioned) {
  if (example().is_of_chips()) {
    const Program program = this->program();
    std::vector<TensorType> global_inputs = input_types(program);
    std::vector<TensorType> global_outputs = output_types(program);
    const auto widen = [](TensorType& type, const Sharding& sharding) {
      for (int dim = 0; dim < type.shape.size(); ++dim) {
        type.shape[dim] *= kMesh.count(sharding.dims[static_cast<std::size_t>(dim)]);
      }
    };
    widen(global_inputs[0], program.inputs[0].sharding);
    widen(global_outputs[0], program.outputs[0].sharding);
    const std::vector<Elements> inputs = inputs_of(global_inputs);
    const Plan plan = make_plan(program, kMesh, global_inputs, global_outputs, kCpuTarget);
    verify(plan, kMesh);
    const auto actual = run(plan, kMesh, inputs);
    ASSERT_TRUE(actual);
    const auto expected = simulate(program, kMesh, global_inputs, global_outputs, inputs);
    return expect_near(expected.at(0), *actual, 2e-6);
  }
  for (const Mesh& mesh : {Mesh({2}, {"data"}), kMesh, Mesh({3}, {"data"})}) {
    const Program open = program(mesh);
    for (std::size_t cut = 0; cut < std::max<std::size_t>(1, open.inputs.size()); ++cut) {
      const int num_dims = open.inputs.empty() ? 0 : open.type(open.inputs[cut].value).shape.size();
      for (int dim = 0; dim <= num_dims; ++dim) {
        Program marked = open;
        if (dim < num_dims) {
          Sharding& sharding = marked.inputs[cut].sharding;
          sharding = Sharding::closed();
          sharding.dims[static_cast<std::size_t>(dim)] = mesh.axis_atoms(0);
          if (mesh.num_axes() > 1 && dim + 1 < num_dims) {
            sharding.dims[static_cast<std::size_t>(dim) + 1] = mesh.axis_atoms(1);
          }
        }
        SCOPED_TRACE(to_text(marked, mesh));
        const std::vector<Elements> inputs = inputs_of(input_types(marked));
        const std::optional<Elements> actual = run(compile(marked, mesh, kCpuTarget), mesh, inputs);
        ASSERT_TRUE(actual);
        expect_near(interpret(marked, mesh, inputs).at(0), *actual, tolerance_of(marked));
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Ops, ::testing::ValuesIn(testing::op_examples()),
                         [](const auto& tested) { return name_of(tested.param); });

}  // namespace
}  // namespace weft::ops_test
