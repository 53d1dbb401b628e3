#include "spmd/ops/fingerprint.hpp"
#include "spmd/program/custom_function.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "spmd/ops/builder.hpp"
#include "spmd/ops/verify.hpp"
#include "spmd/reference/interpret.hpp"
#include "spmd/rules/custom_rule.hpp"
#include "spmd/text/difference.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/custom_ops.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::custom_call_test {
namespace {

using testing::custom_target;
using testing::CustomKind;
using testing::expect_error;
using Names = std::vector<std::string>;

const Mesh kMesh({2, 2}, {"data", "model"});

RuleText rule_of(std::string_view text, const Names& whole = {}, const Names& added = {}) {
  return make_custom_rule(text, whole, added);
}

TEST(CustomRule, ReadsAsItIsWritten) {
  EXPECT_EQ(to_text(rule_of("b s, s -> b s")), "b s, s -> b s");
  EXPECT_EQ(to_text(rule_of(" rows  cols ,->rows cols", {"cols"})),
            "rows cols, -> rows cols need_replication={cols}");
  EXPECT_EQ(to_text(rule_of("b s -> ", {"s"}, {"b"})), "b s -> reduction={b} need_replication={s}");
  for (const char* text : {"b s, s -> b s", "b s, -> b need_replication={s}",
                           "b s, t -> reduction={b} need_replication={s t}"}) {
    EXPECT_EQ(to_text(parse_custom_rule(text)), text);
  }
}

TEST(CustomRule, HoldsWholeWhatIsNotOnBothSides) {
  EXPECT_EQ(to_text(rule_of("b s -> b t")), "b s -> b t need_replication={s t}");
}

TEST(CustomRule, RefusesWhatIsNone) {
  const auto refuses = [](std::initializer_list<std::string_view> words, std::string_view text,
                          const Names& whole = {}, const Names& added = {}) {
    expect_error(Errc::invalid_argument, words, [&] { rule_of(text, whole, added); });
  };
  refuses({"sharding_rule \"b s\"", "expected ',' or '->' at character 4, found the end",
           "for example \"b s, s -> b s\""},
          "b s");
  refuses({"expected ',' or '->' at character 3, found '2'"}, "b 2 -> b");
  refuses({"expected the end", "at character 7, found ','"}, "b -> b, s");
  refuses({"found '=>'"}, "b => b");
  refuses({"factor i is used twice in one tensor"}, "i i -> i");
  refuses({"a tensor has more than 6 dims"}, "a b c d e f g -> a");
  refuses({"need_replication_factors: \"t\" isn't a factor", "its factors are b, s"}, "b s -> b",
          {"t"});
  refuses({"reduction_factors: \"t\" isn't a factor"}, "b s -> b", {}, {"t"});
  refuses({"reduction_factors: \"b\" is a dim of the result"}, "b s -> b", {}, {"b"});
  refuses({"need_replication_factors: \"s\" is also in reduction_factors"}, "b s -> b", {"s"},
          {"s"});
}

TEST(CustomRule, RefusesOperandsThatDoNotFit) {
  const RuleText rule = rule_of("b s, s -> b");
  const TensorType x{DType::f32, {4, 6}};
  const auto refuses = [&](std::initializer_list<std::string_view> words,
                           const std::vector<TensorType>& operands) {
    expect_error(Errc::invalid_argument, words, [&] { factor_sizes(rule, operands); });
  };
  refuses({"\"b s, s -> b need_replication={s}\"", "is for 2 operands, but 1 are given"}, {x});
  refuses({"operand 1 is f32[4,6], but the rule names 1 dims of it"}, {x, x});
  refuses({"factor s is 6 in operand 0 f32[4,6] and 5 in operand 1 f32[5]"},
          {x, {DType::f32, {5}}});
  const auto sizes = factor_sizes(rule, std::vector<TensorType>{x, {DType::f32, {6}}});
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 6}));
  check_custom_result(rule, sizes, {DType::f32, {4}});
  expect_error(Errc::invalid_argument, {"the result f32[6]", "factor b has size 4 in the operands"},
               [&] {
                 check_custom_result(rule, sizes, {DType::f32, {6}});
               });
  expect_error(Errc::invalid_argument, {"the result f32[]", "names 1 dims of the result"}, [&] {
    check_custom_result(rule, sizes, {DType::f32, {}});
  });
  const RuleText sum = rule_of("b -> ", {}, {"b"});
  expect_error(Errc::invalid_argument, {"pred can't be a sum"}, [&] {
    check_custom_result(sum, std::array<std::int64_t, 1>{4}, {DType::pred, {}});
  });
}

TEST(CustomFunction, NameHasOneMeaning) {
  const CustomTarget target = custom_target(CustomKind::prefix_sum, 1);
  const CustomFunction* known = find_custom_function(target);
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(&register_custom_function(*known), known);
  CustomFunction other = *known;
  other.target.rule = "s -> s";
  EXPECT_EQ(find_custom_function(other.target), nullptr);
  expect_error(Errc::invalid_argument,
               {"name: 'prefix_sum1' is already registered with the sharding_rule", target.rule,
                "is now given with \"s -> s\"", "another name"},
               [&] { register_custom_function(other); });
  other = *known;
  other.kernel = testing::affine_kernel;
  expect_error(Errc::invalid_argument, {"'prefix_sum1' is already registered with another kernel"},
               [&] { register_custom_function(other); });
}

TEST(CustomFunction, IsRegisteredOnceByManyThreads) {
  std::array<const CustomFunction*, 8> found{};
  std::vector<std::thread> threads;
  for (auto& each : found) {
    threads.emplace_back([&each] {
      for (int i = 0; i < 100; ++i) {
        each = &register_custom_function(
            {{fmt::format("threads{}", i), "s -> s"}, testing::prefix_sum_kernel});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const CustomFunction* each : found) EXPECT_EQ(each, found[0]);
}

/// A program that computes prefix_sum(affine(x, w)) for x[2,3] and w[3].
struct Sample {
  Program program;
  Builder build{program};
  ValueId x = program.add_input({DType::i64, {2, 3}}, InputKind::data, "x", Sharding::open(2));
  ValueId w = program.add_input({DType::i64, {3}}, InputKind::data, "w", Sharding::open(1));

  Sample() {
    build.set_loc("train.cpp:41");
    const ValueId y =
        build.custom_call(custom_target(CustomKind::affine, 2), std::array{x, w}, program.type(x));
    const ValueId z =
        build.custom_call(custom_target(CustomKind::prefix_sum, 2), std::array{y}, program.type(x));
    program.add_output(z, "z", Sharding::open(2));
  }
};

TEST(CustomCall, IsComputedByItsKernel) {
  const Sample sample;
  const std::vector<Elements> inputs{{1, 2, 3, 4, 5, 6}, {10, 20, 30}};
  EXPECT_EQ(interpret(sample.program, inputs), (std::vector<Elements>{{13, 38, 75, 19, 50, 93}}));
}

TEST(CustomCall, HasATextThatReadsBack) {
  const Sample sample;
  const std::string text = to_text(sample.program, kMesh);
  EXPECT_NE(text.find("%2 = custom_call %0, %1 {target = \"affine2\", rule = \"a s, s -> a s\"} : "
                      "i64[2,3]  // train.cpp:41"),
            std::string::npos)
      << text;
  const Program parsed = parse_program(text, kMesh);
  EXPECT_EQ(fingerprint(parsed), fingerprint(sample.program));
  EXPECT_EQ(parsed.custom_targets, sample.program.custom_targets);
}

TEST(CustomCall, NeedsNoFunctionBeforeItIsRun) {
  Program program = Sample().program;
  program.custom_targets[0].name = "stranger";
  verify(program, kMesh);
  parse_program(to_text(program, kMesh), kMesh);
  expect_error(Errc::not_found,
               {"custom_call 'stranger' at train.cpp:41", "no op of that name", "a s, s -> a s"},
               [&] { BoundCustomCall(program, 0); });
}

TEST(CustomCall, IsCorruptWhereItsTargetDoesNotFit) {
  const auto refuses = [](std::initializer_list<std::string_view> words, auto edit) {
    Program program = Sample().program;
    edit(program);
    expect_error(Errc::corrupt, words, [&] { verify(program, kMesh); });
  };
  refuses({"custom target 9 is outside the table of 2"}, [](Program& p) { p.attrs[0] = 9; });
  refuses({"custom target -1"}, [](Program& p) { p.attrs[0] = -1; });
  refuses({"op 0 (custom_call at train.cpp:41)", "expected ',' or '->'"},
          [](Program& p) { p.custom_targets[0].rule = "a"; });
  refuses({"is for 1 operands, but 2 are given"},
          [](Program& p) { p.custom_targets[0].rule = "a s -> a s"; });
}

TEST(CustomCall, DiffersByNameAndRule) {
  const Program before = Sample().program;
  Program after = before;
  after.custom_targets[0].name = "other";
  const Differences found = differences(before, after);
  ASSERT_EQ(found.causes.size(), 1U);
  EXPECT_TRUE(found.causes[0].starts_with(
      "affine2 i64[2,3] at train.cpp:41 -> other i64[2,3] at train.cpp:41"))
      << found.causes[0];
}

TEST(CustomCall, SaysWhatTheKernelReadsWrongly) {
  const std::array types{TensorType{DType::i32, {2}}, TensorType{DType::bf16, {2}}};
  const std::array<std::byte, 8> operand{};
  std::array<std::byte, 4> result{};
  const std::array<const std::byte*, 1> operands{operand.data()};
  const CustomCall call(types, operands, result.data());
  EXPECT_EQ(call.operand<std::int32_t>(0).size(), 2U);
  call.result<Bf16>()[1] = Bf16(1.0F);
  EXPECT_EQ(result, (std::array{std::byte{0}, std::byte{0}, std::byte{0x80}, std::byte{0x3f}}));
  expect_error(Errc::invalid_argument, {"operand 0 is i32[2], but the kernel reads it as f32"},
               [&] { call.operand<float>(0); });
  expect_error(Errc::invalid_argument, {"result is bf16[2], but the kernel reads it as f64"},
               [&] { call.result<double>(); });
  expect_error(Errc::invalid_argument, {"operand 1 is read, but there are 1"},
               [&] { call.operand<float>(1); });
}

}  // namespace
}  // namespace weft::custom_call_test
