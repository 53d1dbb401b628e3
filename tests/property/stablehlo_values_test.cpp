// Tests that StableHLO texts, run by a PJRT plug-in for CPUs, give the interpreter's results for
// special values, and report faults.

#include <gtest/gtest.h>

#include <limits>

#include "spmd/ops/verify.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/stablehlo/stablehlo_target.hpp"
#include "spmd/text/text.hpp"
#include "tests/property/hlo_runner.hpp"
#include "tests/support/custom_ops.hpp"
#include "tests/support/op_values.hpp"
#include "tests/support/random_program.hpp"
#include "tests/support/real_plugins.hpp"

namespace weft::stablehlo_values_test {
namespace {

using testing::expect_near;
using testing::HloRunner;
using testing::input_types;
using testing::output_types;
using testing::Random;

const Mesh kMesh({2, 2}, {"data", "model"});
const Mesh kOneChip({1}, {"data"});

/// Runs a program for the mesh as StableHLO and in the interpreter, and compares the results.
void expect_same(std::string_view text, const Mesh& mesh, const std::vector<Elements>& inputs,
                 double tolerance = 2e-5) {
  HloRunner* runner = HloRunner::get();
  if (runner == nullptr) GTEST_SKIP() << testing::kNoRealPlugins;
  SCOPED_TRACE(text);
  const Program program = parse_program(text, mesh);
  verify(program, mesh);
  const Plan plan = compile(program, mesh, kStableHloTarget);
  const auto expected = interpret(program, mesh, inputs);
  const auto actual =
      runner->run({plan.program, mesh, plan.input_types, plan.output_types, inputs}).outputs;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].size(), actual[i].size());
    for (std::size_t e = 0; e < expected[i].size(); ++e) {
      SCOPED_TRACE(fmt::format("element {}", e));  // one by one, so that each has its own tolerance
      expect_near(plan.output_types[i], {expected[i][e]}, {actual[i][e]}, tolerance);
    }
  }
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const Elements kSpecial{kNaN, kInfinity, -kInfinity, 0, -0.0, 0.5, -0.5, 1, -1, 2.5, -2.5, 12};

/// Runs ops on one or two inputs of `type`, as expect_same() does. Each op is a text "NAME
/// {ATTRIBUTES} : TYPE", to which the operands are added.
void expect_same_values(const std::vector<std::string>& ops, std::string_view type,
                        const std::vector<Elements>& inputs) {
  const bool is_pair = inputs.size() == 2;
  std::string text = fmt::format("program(%0: {} data \"a\" [{{}}]", type);
  if (is_pair) text += fmt::format(", %1: {} data \"b\" [{{}}]", type);
  text += ") {\n";
  std::string outputs;
  std::size_t value = inputs.size();
  for (const std::string& op : ops) {
    const std::size_t name_end = op.find(' ');
    text += fmt::format("  %{} = {} {}{}\n", value, op.substr(0, name_end),
                        is_pair ? "%0, %1" : "%0", op.substr(name_end));
    outputs += fmt::format("{}%{} \"y\" [{{}}]", outputs.empty() ? "" : ",\n", value++);
  }
  expect_same(text + "return " + outputs + "\n}", kOneChip, inputs);
}

TEST(StableHloValues, OfFunctionsAreThoseOfTheInterpreter) {
  std::vector<std::string> ops;
  for (const char* name :
       {"negate", "sign", "abs", "exponential", "log", "tanh", "logistic", "sqrt", "rsqrt", "sine",
        "cosine", "softplus", "floor", "ceil", "round_nearest_even", "log_plus_one",
        "exponential_minus_one", "erf", "tan"}) {
    ops.push_back(fmt::format("{} : f32[12]", name));
  }
  ops.emplace_back("is_finite : pred[12]");
  ops.emplace_back("argsort {descending = 0} : i32[12]");
  ops.emplace_back("argsort {descending = 1} : i32[12]");
  expect_same_values(ops, "f32[12]", {kSpecial});
}

TEST(StableHloValues, OfPairsAreThoseOfTheInterpreter) {
  Elements a;
  Elements b;
  for (const double x : kSpecial) {
    for (const double y : kSpecial) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  std::vector<std::string> ops;
  for (const char* name : {"add", "subtract", "multiply", "divide", "maximum", "minimum", "power",
                           "remainder", "atan2"}) {
    ops.push_back(fmt::format("{} : f32[144]", name));
  }
  for (const char* direction : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    ops.push_back(fmt::format("compare {{direction = {}}} : pred[144]", direction));
  }
  expect_same_values(ops, "f32[144]", {a, b});
}

TEST(StableHloValues, OfIntegersAreThoseOfTheInterpreter) {
  for (const char* dtype : {"i32", "i64", "i8"}) {
    std::vector<std::string> ops;
    for (const char* name : {"divide", "remainder", "maximum", "minimum", "add", "multiply"}) {
      ops.push_back(fmt::format("{} : {}[8]", name, dtype));
    }
    expect_same_values(ops, fmt::format("{}[8]", dtype),
                       {{7, -7, 7, -7, 0, 100, -100, 3}, {2, 2, -2, 0, 0, 3, 7, -1}});
  }
}

TEST(StableHloValues, OfConversionsAreThoseOfTheInterpreter) {
  constexpr std::string_view kDTypes[] = {"pred", "i32", "u32", "i64", "bf16",
                                          "f32",  "f64", "f16", "i8",  "u8"};
  const auto given_to = [](std::string_view from) -> Elements {
    if (from == "pred") return {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
    if (from == "i32" || from == "i64") {
      return {0, 1, -1, 127, 128, 255, 256, -128, -129, 32768, -32768, 16384};
    }
    if (!is_floating(parse_dtype(from))) return {0, 1, 2, 3, 100, 126, 127, 0, 1, 2, 3, 4};
    return {kNaN, kInfinity, -kInfinity, 0.5, -0.5, 300, -300, 1.75, -1.75, 127, 128, 5};
  };
  for (const std::string_view from : kDTypes) {
    std::vector<std::string> ops;
    for (const std::string_view to : kDTypes) ops.push_back(fmt::format("convert : {}[12]", to));
    expect_same_values(ops, fmt::format("{}[12]", from), {given_to(from)});
  }
}

/// The product with a zero is skipped, and so doesn't count even if the other factor is infinite or
/// NaN.
TEST(StableHloValues, OfSkippedZerosAreThoseOfTheInterpreter) {
  const Elements zeros{0, 1, 2, 0, 0, 3, 1, 0, 0};
  const Elements others{kNaN, kInfinity, 1, 2, -kInfinity, 3, 4, 5, kNaN};
  for (const int side : {0, 1}) {
    expect_same(fmt::format("program(%0: f32[3,3] data \"a\" [{{}}, {{}}], "
                            "%1: f32[3,3] data \"b\" [{{}}, {{}}]) {{\n"
                            "  %2 = dot_general %0, %1 {{contracting = [1] x [0], skip_zeros = "
                            "[{}]}} : f32[3,3]\n  return %2 \"y\" [{{}}, {{}}]\n}}",
                            side),
                kOneChip, side == 0 ? std::vector{zeros, others} : std::vector{others, zeros});
  }
}

/// Tests windows with padding and dilations, on values with equal maxima and a NaN.
TEST(StableHloValues, OfSelectedElementsAreThoseOfTheInterpreter) {
  struct Windows {
    std::string_view attributes;
    int count;
  };
  constexpr Windows kWindows[] = {
      {"size = [3], stride = [2], low = [1], high = [1], base_dilation = [1], dilation = [1]", 5},
      {"size = [2], stride = [2], low = [-1], high = [1], base_dilation = [1], dilation = [1]", 4},
      {"size = [2], stride = [2], low = [0], high = [1], base_dilation = [1], dilation = [2]", 4},
      {"size = [3], stride = [4], low = [1], high = [1], base_dilation = [2], dilation = [1]", 5}};
  for (const char* kind : {"max", "min"}) {
    for (const auto& [attributes, count] : kWindows) {
      expect_same(fmt::format("program(%0: f32[9] data \"x\" [{{}}]) {{\n"
                              "  %1 = reduce_window %0 {{kind = {0}, {1}}} : f32[{2}]\n"
                              "  %2 = iota {{dim = 0}} : f32[{2}]\n"
                              "  %3 = select_and_scatter %0, %2 {{kind = {0}, {1}}} : f32[9]\n"
                              "  return %1 \"y\" [{{}}],\n    %3 \"z\" [{{}}]\n}}",
                              kind, attributes, count),
                  kOneChip, {{2, 2, -1, kNaN, 3, 3, 1, 5, 5}});
    }
  }
}

/// The parts of some chips begin with a block of random words, and others begin within a block.
TEST(StableHloValues, OfRandomWordsAreThoseOfTheInterpreter) {
  const std::vector<Elements> state{{3735928559, 305419896, 7, 4294967295}};
  for (const char* cut : {"{\"data\"}, {}", "{}, {\"model\"}", "{\"model\"}, {\"data\"}"}) {
    for (const char* shape : {"4,10", "2,6", "6,2"}) {
      expect_same(fmt::format("program(%0: u32[4] data \"s\" [{{}}]) {{\n"
                              "  %1 = rng_bit_generator %0 {{atoms = [{{}}, {{}}]}} : u32[{0}]\n"
                              "  return %1 \"y\" [{1}]\n}}",
                              shape, cut),
                  kMesh, state);
    }
  }
}

/// Each chip has a part of the queries. Each query must see the same keys as on one chip.
TEST(StableHloValues, OfCausalAttentionInPartsAreThoseOfTheInterpreter) {
  Random random(3);
  std::vector<Elements> inputs(3);
  for (Elements& input : inputs) {
    for (int i = 0; i < 2 * 8 * 4; ++i) input.push_back(static_cast<double>(random.below(64)) / 16);
  }
  expect_same(R"(program(%0: f32[1,2,8,4] data "q" [{}, {}, {"data"}, {}],
        %1: f32[1,2,8,4] data "k" [{}, {}, {}, {}], %2: f32[1,2,8,4] data "v" [{}, {}, {}, {}]) {
  %3 = attention %0, %1, %2 {causal = 1, scale = 0.5, atoms = {}} : f32[1,2,8,4]
  return %3 "y" [{}, {}, {"data"}, {}]
})",
              kMesh, inputs);
}

/// Slices a chip's part of a tensor. The slice must be in that part, even if the index is outside.
TEST(StableHloValues, OfASliceOfAPartAreThoseOfTheInterpreter) {
  HloRunner* runner = HloRunner::get();
  if (runner == nullptr) GTEST_SKIP() << testing::kNoRealPlugins;
  const Program program = parse_program(R"(program(%0: f32[8,4] data "x" [{}, {}],
        %1: i32[] data "i" []) {
  %2 = all_slice %0 {atoms = {"data"}, dim = 0} : f32[4,4]
  %3 = dynamic_slice %2, %1, %1 {sizes = [1, 4]} : f32[1,4]
  return %3 "y" [{"data"}, {}]
})",
                                        kMesh);
  Elements x;
  for (int i = 0; i < 8 * 4; ++i) x.push_back(i);
  const std::vector<TensorType> outputs{{DType::f32, {2, 4}}};
  for (const double index : {-3.0, 1.0, 9.0}) {
    const std::vector<Elements> given{x, {index}};
    const auto expected = simulate(program, kMesh, input_types(program), outputs, given);
    const auto actual = runner->run({program, kMesh, input_types(program), outputs, given}).outputs;
    EXPECT_EQ(actual.at(0), expected.at(0)) << index;
  }
}

/// Custom ops need row-major operands, even if the compiler prefers other layouts for the ops
/// around.
TEST(StableHloValues, OfACustomOpBesideATransposeAreThoseOfTheInterpreter) {
  testing::custom_target(testing::CustomKind::square_sum, 3);
  Random random(5);
  Elements x;
  for (int i = 0; i < 4 * 8 * 12; ++i) x.push_back(static_cast<double>(random.below(4)));
  const Mesh cube({2, 2, 2}, {"a", "b", "c"});
  expect_same(R"(program(%0: f32[4,8,12] param "in" [{?}, {?}, {?}]) {
  %1 = reverse %0 {dims = [0, 1]} : f32[4,8,12]
  %2 = custom_call %1 {target = "square_sum3", rule = "a b s -> a b reduction={s}"} : f32[4,8]
  %3 = dot_general %0, %2 {contracting = [0] x [0]} : f32[8,12,8]
  %4 = transpose %1 {perm = [2, 0, 1]} : f32[12,4,8]
  return %3 "out" [{"b", "c"?}, {?}, {?}] priority{"b"=1, "c"=1},
         %4 "out" [{?}, {?}, {?}],
         %1 "out" [{?}, {?}, {?}] updates 0
})",
              cube, {x});
}

/// Returns {op, what} for each chip.
std::vector<std::vector<std::int32_t>> faults_of(const Program& program, const Elements& input,
                                                 bool detects_anomaly) {
  const std::vector<TensorType> inputs = input_types(program);
  const std::vector<TensorType> outputs = output_types(program);
  return HloRunner::get()
      ->run({program, kOneChip, inputs, outputs, std::span(&input, 1), detects_anomaly})
      .faults;
}

using Faults = std::vector<std::vector<std::int32_t>>;

TEST(StableHloFaults, NameTheFirstIndexOutside) {
  if (HloRunner::get() == nullptr) GTEST_SKIP() << testing::kNoRealPlugins;
  const Program program = parse_program(R"(program(%0: i32[4] data "i" [{}]) {
  %1 = check_index %0 {limit_ignored = [6, -100]} : i32[4]
  %2 = loop {length = 3} : i32[]
  %3 = carry %2, %1 : i32[4]
  %4 = add %3, %1 : i32[4]
  %5 = check_index %4 {limit_ignored = [6, 0]} : i32[4]
  %6 = next %2, %3, %5 : i32[4]
  return %6 "y" [{}]
})",
                                        kOneChip);
  EXPECT_EQ(faults_of(program, {1, 0, 1, 1}, false), (Faults{{-1, 0}}));
  EXPECT_EQ(faults_of(program, {0, 6, -100, 7}, false), (Faults{{0, 6}}));
  EXPECT_EQ(faults_of(program, {0, 1, 0, 2}, false), (Faults{{4, 6}}));
}

TEST(StableHloFaults, NameTheFirstOpThatMakesANaN) {
  if (HloRunner::get() == nullptr) GTEST_SKIP() << testing::kNoRealPlugins;
  const Program program = parse_program(R"(program(%0: f32[2] data "x" [{}]) {
  %1 = multiply %0, %0 : f32[2]
  %2 = log %0 : f32[2]
  %3 = add %1, %2 : f32[2]
  return %3 "y" [{}]
})",
                                        kOneChip);
  EXPECT_EQ(faults_of(program, {1, 2}, true), (Faults{{-1, 0}}));
  EXPECT_EQ(faults_of(program, {1, -2}, true), (Faults{{1, 1}}));
  EXPECT_EQ(faults_of(program, {0, 2}, true), (Faults{{1, 2}}));
  EXPECT_EQ(faults_of(program, {1e30, 2}, true), (Faults{{0, 2}}));
  EXPECT_EQ(faults_of(program, {kNaN, 2}, true), (Faults{{0, 3}}));
}

}  // namespace
}  // namespace weft::stablehlo_values_test
