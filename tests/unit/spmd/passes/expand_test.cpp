#include "spmd/passes/expand.hpp"
#include "spmd/ops/builder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/passes/factors.hpp"
#include "spmd/passes/propagate.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/reference/interpret.hpp"
#include "spmd/text/text.hpp"

namespace weft::expand_test {
namespace {

const Mesh kMesh({4, 2}, {"data", "model"});

/// A program of one composite, whose result is its only output.
struct OneComposite {
  Program program;
  Builder build{program};
  ValueId input(const Shape& shape, DType dtype = DType::f64) {
    return program.add_input({dtype, shape}, InputKind::data, "x", {});
  }
};

/// Expects that the op of a program's only output and the op's decomposition give the same result.
void expect_same_decomposition(Program program) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> any(-2, 2);
  std::vector<Elements> inputs;
  for (const ProgramInput& input : program.inputs) {
    Elements& elements = inputs.emplace_back(program.type(input.value).num_elements());
    const DType dtype = program.type(input.value).dtype;
    std::ranges::generate(elements, [&] {
      const double x = any(random);
      return dtype == DType::i32 ? std::round(x) : dtype == DType::pred ? double(x > 0) : x;
    });
  }
  const OpId op = program.num_ops() - 1;
  const std::vector<ValueId> operands(program.op_operands(op).begin(),
                                      program.op_operands(op).end());
  const std::vector<std::int64_t> attrs(program.op_attrs(op).begin(), program.op_attrs(op).end());
  program.add_output(program.result(op), "y", {});
  Builder builder(program);
  const ValueId parts = decompose(builder, program.kind(op), operands, attrs);
  ASSERT_EQ(program.type(parts), program.type(program.result(op)));
  program.add_output(parts, "z", {});
  const auto outputs = interpret(program, inputs);
  for (std::size_t i = 0; i < outputs[0].size(); ++i) {
    ASSERT_NEAR(outputs[0][i], outputs[1][i], 1e-12) << to_text(program, kMesh);
  }
}

TEST(Decompose, GivesWhatTheCompositeDoes) {
  for (const Shape& shape : {Shape{5}, Shape{3, 4}, Shape{2, 1, 3}}) {
    const auto check = [&](const auto& make) {
      OneComposite one;
      make(one.build, one.input(shape), one.input(shape));
      expect_same_decomposition(one.program);
    };
    check([](Builder& b, ValueId x, ValueId) { b.softmax(x); });
    check([](Builder& b, ValueId x, ValueId) { b.log_softmax(x); });
    check([](Builder& b, ValueId y, ValueId g) { b.softmax_grad(OpKind::softmax_grad, y, g); });
    check([](Builder& b, ValueId y, ValueId g) { b.softmax_grad(OpKind::log_softmax_grad, y, g); });
    for (const bool center : {false, true}) {
      const Normalization form{.center = center, .eps = 0.1};
      check([&](Builder& b, ValueId x, ValueId) { b.normalize(x, form); });
      check([&](Builder& b, ValueId x, ValueId g) { b.normalize_grad(x, g, form); });
    }
  }
  // The labels are from -2 to 2, so half of them aren't a valid class.
  OneComposite loss;
  loss.build.cross_entropy(loss.input({3, 4, 2}), loss.input({3, 4}, DType::i32));
  expect_same_decomposition(loss.program);
  OneComposite slope;
  const ValueId logits = slope.input({3, 4, 2});
  const ValueId labels = slope.input({3, 4}, DType::i32);
  slope.build.cross_entropy_grad(logits, labels, slope.input({3, 4}));
  expect_same_decomposition(slope.program);
  for (const bool causal : {false, true}) {
    const AttentionForm form{.causal = causal, .scale = 0.7};
    OneComposite forward;
    const ValueId query = forward.input({2, 3, 4, 5});
    forward.build.attention(query, forward.input({2, 3, 6, 5}), forward.input({2, 3, 6, 2}), form);
    expect_same_decomposition(forward.program);
    OneComposite backward;
    const ValueId q = backward.input({2, 3, 4, 5});
    const ValueId k = backward.input({2, 3, 6, 5});
    const ValueId v = backward.input({2, 3, 6, 5});
    const ValueId y = backward.build.attention(q, k, v, form);
    backward.build.attention_grad(q, k, v, y, backward.input({2, 3, 4, 5}), form);
    expect_same_decomposition(backward.program);
    for (const TensorType& bias :
         {TensorType{DType::f64, {1, 3, 4, 6}}, TensorType{DType::pred, {2, 1, 1, 6}},
          TensorType{DType::pred, {2, 1, 4, 1}}}) {
      OneComposite with;
      const ValueId query_in = with.input({2, 3, 4, 5});
      const ValueId key = with.input({2, 3, 6, 5});
      const ValueId value = with.input({2, 3, 6, 5});
      const ValueId added = with.input(bias.shape, bias.dtype);
      const ValueId mixed = with.build.attention(query_in, key, value, form, added);
      expect_same_decomposition(with.program);
      with.build.attention_grad(query_in, key, value, mixed, with.input({2, 3, 4, 5}), form, added);
      expect_same_decomposition(with.program);
    }
  }
}

Plan plan_of(const std::string& text) {
  return compile(parse_program(text, kMesh), kMesh, kCpuTarget);
}

std::size_t count(const Plan& plan, OpKind kind) {
  return static_cast<std::size_t>(std::ranges::count(plan.program.op_kinds, kind));
}

std::vector<std::string> collectives_of(const Plan& plan) {
  std::vector<std::string> lines;
  for (const CollectiveSummary& call : collectives(plan, kMesh)) {
    lines.push_back(fmt::format("{} {} {}", to_string(call.kind), call.axes.at(0), call.bytes));
  }
  return lines;
}

TEST(Expand, LeavesACompositeWhoseRowsAreWhole) {
  const Plan plan = plan_of(R"(program(%0: f32[8,64] data "x" [{"data"}, {}]) {
  %1 = log_softmax %0 : f32[8,64]
  return %1 "y" [{?}, {?}]
})");
  EXPECT_EQ(count(plan, OpKind::log_softmax), 1U);
  EXPECT_EQ(plan.program.outputs[0].sharding.dims[0], kMesh.axis_atoms(0));
  EXPECT_EQ(collectives_of(plan), std::vector<std::string>{});
}

TEST(Expand, ReducesNumbersOfARowThatIsCutInsteadOfGatheringIt) {
  const Plan plan = plan_of(R"(program(%0: f32[8,64] data "x" [{"data"}, {"model"}],
        %1: f32[8,64] data "g" [{"data"}, {"model"}]) {
  %2 = log_softmax %0 : f32[8,64]
  %3 = log_softmax_grad %2, %1 : f32[8,64]
  return %2 "y" [{?}, {?}], %3 "dx" [{?}, {?}]
})");
  EXPECT_EQ(count(plan, OpKind::log_softmax), 0U);
  // log_softmax_grad gets its sharding only after log_softmax, an op before it, has been expanded.
  EXPECT_EQ(count(plan, OpKind::log_softmax_grad), 0U);
  EXPECT_EQ(
      collectives_of(plan),
      (std::vector<std::string>{"all_reduce model 8", "all_reduce model 8", "all_reduce model 8"}));
}

TEST(Expand, OfACrossEntropyWithCutClassesReducesThreeNumbersOfARow) {
  const Plan plan = plan_of(R"(program(%0: f32[8,64] data "x" [{"data"}, {"model"}],
        %1: i32[8] data "labels" [{"data"}], %2: f32[8] data "g" [{"data"}]) {
  %3 = cross_entropy %0, %1 : f32[8]
  %4 = cross_entropy_grad %0, %1, %2 : f32[8,64]
  return %3 "losses" [{?}], %4 "dx" [{?}, {?}]
})");
  EXPECT_EQ(count(plan, OpKind::cross_entropy), 0U);
  EXPECT_EQ(count(plan, OpKind::cross_entropy_grad), 0U);
  EXPECT_EQ(
      collectives_of(plan),
      (std::vector<std::string>{"all_reduce model 8", "all_reduce model 8", "all_reduce model 8"}));
}

TEST(Expand, CutsQueriesButNotKeys) {
  const auto attend = [](std::string_view queries, std::string_view keys) {
    return plan_of(fmt::format(R"(program(%0: f32[2,4,8,16] data "q" {},
        %1: f32[2,4,8,16] data "k" {},
        %2: f32[2,4,8,16] data "v" {}) {{
  %3 = attention %0, %1, %2 {{causal = 1, scale = 0.25, atoms = {{}}}} : f32[2,4,8,16]
  return %3 "y" [{{?}}, {{?}}, {{?}}, {{?}}]
}})",
                               queries, keys, keys));
  };
  const char* const whole = "[{}, {}, {}, {}]";
  const char* const heads = R"([{"model"}, {"data"}, {}, {}])";
  EXPECT_EQ(collectives_of(attend(heads, heads)), std::vector<std::string>{});
  const Plan sequence = attend(R"([{}, {}, {"data"}, {}])", whole);
  ASSERT_EQ(count(sequence, OpKind::attention), 1U);
  EXPECT_EQ(collectives_of(sequence), std::vector<std::string>{});
  const auto found = std::ranges::find(sequence.program.op_kinds, OpKind::attention);
  const auto op = static_cast<OpId>(found - sequence.program.op_kinds.begin());
  EXPECT_EQ(sequence.program.op_attrs(op)[2],
            static_cast<std::int64_t>(kMesh.axis_atoms(0).bits()));
  EXPECT_EQ(count(attend(whole, R"([{}, {}, {"data"}, {}])"), OpKind::attention), 0U);
}

TEST(Expand, CutsABiasOfAttentionWithItsQueriesOrHeads) {
  const auto attend = [](std::string_view queries, std::string_view bias_type,
                         std::string_view bias) {
    return plan_of(fmt::format(R"(program(%0: f32[2,4,8,16] data "q" {},
        %1: f32[2,4,8,16] data "k" [{{}}, {{"model"}}, {{}}, {{}}],
        %2: {} data "bias" {}) {{
  %3 = attention %0, %1, %1, %2 {{causal = 0, scale = 0.25, atoms = {{}}}} : f32[2,4,8,16]
  return %3 "y" [{{?}}, {{?}}, {{?}}, {{?}}]
}})",
                               queries, bias_type, bias));
  };
  const Plan cut = attend(R"([{}, {"model"}, {"data"}, {}])", "f32[1,4,8,8]",
                          R"([{}, {"model"}, {"data"}, {}])");
  EXPECT_EQ(count(cut, OpKind::attention), 1U);
  EXPECT_EQ(collectives_of(cut), std::vector<std::string>{});
  // The mask is gathered, because each chip has only some of its keys.
  const Plan gathered =
      attend(R"([{}, {"model"}, {"data"}, {}])", "pred[1,1,1,8]", R"([{}, {}, {}, {"data"}])");
  EXPECT_EQ(count(gathered, OpKind::attention), 1U);
  EXPECT_EQ(collectives_of(gathered), (std::vector<std::string>{"all_gather data 8"}));
}

}  // namespace
}  // namespace weft::expand_test
