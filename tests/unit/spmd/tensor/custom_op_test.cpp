#include <weft/ops/custom_op.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <weft/nn/transforms.hpp>
#include <weft/ops/control_flow.hpp>

#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/custom_ops.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::custom_op_test {
namespace {

using testing::calls;
using testing::expect_error;
using testing::expect_near;
using testing::expect_refusal;
using testing::f32;
using testing::kCounted;
using testing::kCumsum;
using testing::kRowNorm;
using testing::kSoftClip;
using testing::numbers;
using testing::SimulateRuntime;
using testing::soft_clip;
using testing::TensorTest;
using Floats = std::vector<float>;

std::int64_t count(const Program& program, OpKind kind) {
  return std::ranges::count(program.op_kinds, kind);
}

using CustomOpTest = TensorTest;

TEST_F(CustomOpTest, ComputesWhatItsKernelDoes) {
  const Tensor x = f32({0, 1, -2, 100}, {2, 2});
  const Tensor limit = f32({1, 5}, {2});
  const Tensor y = custom_call(kSoftClip, {x, limit});
  EXPECT_EQ(y.type(), (TensorType{DType::f32, {2, 2}}));
  expect_near(y, {0, 5 * std::tanh(0.2), std::tanh(-2), 5});
}

/// Compares the gradient along a direction with the difference of the losses at two points.
TEST_F(CustomOpTest, HasTheGradientOfADirectionalDerivative) {
  const auto f64 = [](const Floats& elements, const Shape& shape) {
    return cast(f32(elements, shape), DType::f64);
  };
  const Tensor x = f64({0.5F, -1, 2, 0.25F, 1.5F, -0.75F}, {3, 2});
  const Tensor limit = f64({1.5F, 2}, {2});
  const Tensor dx = f64({1, -0.5F, 0.25F, 2, -1, 0.75F}, {3, 2});
  const Tensor dlimit = f64({0.5F, -1}, {2});
  const Tensor weights = f64({1, 2, -1, 3, 0.5F, 1}, {3, 2});
  const auto loss = [&](const Tensor& a, const Tensor& b) {
    return sum(weights * custom_call(kSoftClip, {a, b}));
  };
  const std::vector<Tensor> grads = grad(loss(x, limit), std::vector{x, limit});
  const Tensor slope = sum(grads[0] * dx) + sum(grads[1] * dlimit);
  constexpr double kStep = 1e-5;
  const Tensor after = loss(x + kStep * dx, limit + kStep * dlimit);
  const Tensor before = loss(x - kStep * dx, limit - kStep * dlimit);
  const Tensor difference = (after - before) / (2 * kStep) - slope;
  EXPECT_NEAR(difference.item(), 0, 1e-8);
  EXPECT_GT(std::abs(slope.item()), 0.1);
}

TEST_F(CustomOpTest, GivesTheGradientOfTheSameInOrdinaryOps) {
  const Tensor x = f32(numbers(12), {4, 3});
  const Tensor limit = f32({1, 2, 3}, {3});
  const auto custom = grad(sum(custom_call(kSoftClip, {x, limit})), std::vector{x, limit});
  const auto ordinary = grad(sum(soft_clip(x, limit)), std::vector{x, limit});
  for (std::size_t i = 0; i < 2; ++i) {
    const Tensor difference = amax(abs(custom[i] - ordinary[i]));
    EXPECT_LT(difference.item(), 1e-6) << i;
  }
}

/// The vjp uses the op itself, and the second gradient is computed through the ops of the vjp.
TEST_F(CustomOpTest, MayBeMadeOfItselfInItsGradient) {
  const Tensor x = f32({1, 2, 3, 4}, {2, 2});
  const Tensor y = custom_call(kCumsum, {x});
  const Tensor first = grad(sum(y * y), std::vector{x})[0];
  expect_near(first, {8, 6, 20, 14});
  const Tensor again = custom_call(kCumsum, {x});
  const Tensor g = grad(sum(again * again), std::vector{x})[0];
  expect_near(grad(sum(g * g), std::vector{x})[0],
              {2 * (2 * 8 * 2 + 2 * 6), 2 * (2 * 8 + 2 * 6), 2 * (2 * 20 * 2 + 2 * 14),
               2 * (2 * 20 + 2 * 14)});
}

TEST_F(CustomOpTest, TakesScalarsAndGivesOtherTypes) {
  const CustomOp above{.name = "above",
                       .sharding_rule = "b, -> b",
                       .result_type =
                           [](std::span<const TensorType> operands) {
                             return TensorType{DType::pred, operands[0].shape};
                           },
                       .kernel =
                           [](const CustomCall& call) {
                             const float limit = call.operand<float>(1)[0];
                             std::ranges::transform(call.operand<float>(0),
                                                    call.result<bool>().begin(),
                                                    [&](float x) { return x > limit; });
                           }};
  const Tensor x = f32({1, 2, 3}, {3});
  const Tensor some = custom_call(above, {x, full({}, 1.5)});
  expect_near(where(some, x, 0.0), {0, 2, 3});
}

TEST_F(CustomOpTest, LeavesOperandsWithoutAGradientOut) {
  const CustomOp scale{.name = "scale_by_table",
                       .sharding_rule = "b, t -> b",
                       .kernel =
                           [](const CustomCall& call) {
                             const auto index = call.operand<std::int32_t>(1);
                             std::ranges::transform(
                                 call.operand<float>(0), call.result<float>().begin(),
                                 [&](float x) { return x * static_cast<float>(index[1]); });
                           },
                       .vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
                         return {v.cotangent * 3.0, {}};
                       }};
  const Tensor x = f32({1, 2}, {2});
  const Tensor index = testing::i32({2, 3}, {2});
  expect_near(grad(sum(custom_call(scale, {x, index})), std::vector{x})[0], {3, 3});
  // This vjp returns an operand and the cotangent themselves, not results of new ops.
  const CustomOp odd{.name = "odd_gradient",
                     .sharding_rule = "b, b -> b",
                     .kernel =
                         [](const CustomCall& call) {
                           std::ranges::copy(call.operand<float>(0), call.result<float>().begin());
                         },
                     .vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
                       return {v.operands[1], v.cotangent};
                     }};
  const Tensor other = f32({5, 6}, {2});
  expect_near(grad(sum(custom_call(odd, {x, other}) + x), std::vector{x})[0], {6, 7});
}

TEST_F(CustomOpTest, RefusesAnOpThatSaysTooLittle) {
  const Tensor x = f32({1, 2, 3, 4}, {2, 2});
  const auto refuses = [&](std::initializer_list<std::string_view> words, const CustomOp& op) {
    expect_refusal(words, [&](int& line) {
      line = __LINE__ + 1;
      custom_call(op, {x});
    });
  };
  CustomOp op = kCumsum;
  op.name = "";
  refuses({"custom_call: op '': name: is empty"}, op);
  op = kCumsum;
  op.kernel = nullptr;
  refuses({"custom_call: op 'cumsum': kernel: is null; expected a function"}, op);
  op = kCumsum;
  op.sharding_rule = "b s";
  refuses({"op 'cumsum': sharding_rule \"b s\": expected ',' or '->'"}, op);
  op.sharding_rule = "b s, s -> b s";
  refuses({"op 'cumsum': sharding_rule", "is for 2 operands, but 1 are given"}, op);
  op.sharding_rule = "b -> b";
  op.need_replication_factors = {};
  refuses({"operand 0 is f32[2,2], but the rule names 1 dims"}, op);
  op.need_replication_factors = {"s"};
  refuses({"need_replication_factors: \"s\" isn't a factor"}, op);
  op = kRowNorm;
  op.reduction_factors = {"b"};
  refuses({"reduction_factors: \"b\" is a dim of the result"}, op);
  op = kCumsum;
  op.sharding_rule = "b s -> b t";
  refuses({"no operand has the factor t of the result", "result_type"}, op);
  op = kCumsum;
  op.result_type = [](std::span<const TensorType>) { return TensorType{DType::f32, {2, 3}}; };
  refuses({"op 'cumsum': result_type: the result f32[2,3]", "factor s has size 2 in the operands"},
          op);
  op = kCumsum;
  custom_call(op, {x});
  op.sharding_rule = "x s -> x s";
  refuses({"op 'cumsum': name: 'cumsum' is already registered with the sharding_rule \"b s -> b s"},
          op);
  op = kCumsum;
  op.kernel = kRowNorm.kernel;
  refuses({"name: 'cumsum' is already registered with another kernel"}, op);
}

TEST_F(CustomOpTest, RefusesOperandsThatDoNotFit) {
  const Tensor x = f32({1, 2, 3, 4}, {2, 2});
  expect_refusal({"custom_call: op 'soft_clip': sharding_rule \"b s, s -> b s\"",
                  "factor s is 2 in operand 0 f32[2,2] and 3 in operand 1 f32[3]"},
                 [&](int& line) {
                   line = __LINE__ + 1;
                   custom_call(kSoftClip, {x, f32({1, 2, 3}, {3})});
                 });
  expect_refusal({"without a value"}, [&](int& line) {
    line = __LINE__ + 1;
    custom_call(kSoftClip, {x, Tensor()});
  });
  const CustomOp many{
      .name = "many", .sharding_rule = "b, b, b, b, b, b, b, b, b -> b", .kernel = kRowNorm.kernel};
  expect_refusal({"the rule has more than 8 operands"}, [&](int& line) {
    line = __LINE__ + 1;
    custom_call(many, std::vector<Tensor>(9, f32({1}, {1})));
  });
}

TEST_F(CustomOpTest, RefusesAGradientThatThereIsNot) {
  const Tensor x = f32({1, 2, 3, 4}, {2, 2});
  const auto refuses = [&](std::string_view words, const CustomOp& op) {
    const int line = __LINE__ + 1;
    const Tensor loss = sum(custom_call(op, {x}));
    const std::string place = fmt::format("op '{}' (at custom_op_test.cpp:{})", op.name, line);
    testing::expect_error(Errc::invalid_argument, {place, words},
                          [&] { grad(loss, std::vector{x}); });
  };
  CustomOp op{.name = "no_vjp", .sharding_rule = "b s -> b s", .kernel = kCumsum.kernel};
  refuses("has no gradient: give the CustomOp a vjp", op);
  op.name = "two_cotangents";
  op.vjp = [](const CustomVjp& v) -> std::vector<Tensor> { return {v.cotangent, v.cotangent}; };
  refuses("vjp returns 2 tensors for 1 operands", op);
  op.name = "wide_cotangent";
  op.vjp = [](const CustomVjp& v) -> std::vector<Tensor> { return {cat({v.cotangent, v.result})}; };
  refuses("vjp returns f32[4,2] for operand 0, which is f32[2,2]", op);
  op.name = "wrong_vjp";
  op.vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
    return {matmul(v.cotangent, full({3, 3}, 1.0))};
  };
  refuses("vjp: grad: ", op);
}

/// Rounds x by a straight-through estimator: the gradient is unchanged where |x| <= 1, and else 0.
Tensor straight_through(const Tensor& x) {
  return custom_vjp([](const std::vector<Tensor>& operands) { return round(operands[0]); },
                    [](const CustomVjp& v) {
                      const Tensor inside = less_equal(abs(v.operands[0]), 1.0);
                      return std::vector{where(inside, v.cotangent, 0.0)};
                    },
                    {x});
}

TEST_F(CustomOpTest, OfTensorCodeHasTheGradientThatItIsGiven) {
  const Tensor x = f32({0.25F, -0.75F, 2.5F}, {3});
  const Tensor weight = f32({1, 2, 3}, {3});
  const Tensor y = straight_through(x);
  const std::vector<Tensor> grads = grad(sum(y * weight), std::vector{x, weight});
  EXPECT_EQ(y.to_vector(), (Floats{0, -1, 2}));
  EXPECT_EQ(grads[0].to_vector(), (Floats{1, 2, 0}));
  EXPECT_EQ(grads[1].to_vector(), (Floats{0, -1, 2}));
}

TEST_F(CustomOpTest, OfTensorCodeHasSeveralOperandsAndFurtherGradients) {
  const Tensor a = f32({2}, {1});
  const Tensor b = f32({5}, {1});
  const Tensor y = custom_vjp([](const std::vector<Tensor>& x) { return x[0] * x[1]; },
                              [](const CustomVjp& v) -> std::vector<Tensor> {
                                return {v.cotangent * v.operands[0] * v.operands[0] * v.result, {}};
                              },
                              {a, b});
  const Tensor first = grad(sum(y), std::vector{a, b})[0];  // a^2 (a b), from the given vjp
  const Tensor second = grad(sum(first), std::vector{a})[0];
  const Tensor none = grad(sum(y), std::vector{b})[0];
  EXPECT_EQ(first.item(), 40);
  // The derivative of a^2 y by a is 2 a y + a^2 dy/da, where dy/da is the a^2 y that the vjp gives.
  EXPECT_EQ(second.item(), 40 + 160);
  EXPECT_EQ(none.item(), 0);
}

TEST_F(CustomOpTest, OfTensorCodeStandsInScansCheckpointsAndAutocast) {
  const Tensor x = f32({0.5F, 0.25F}, {2});
  const auto twice = [](const Tensor& carry) { return straight_through(carry) + carry; };
  const Tensor kept = checkpoint([&] { return twice(x); });
  const Tensor lowered = autocast(DType::bf16, [&] { return twice(x); });
  const auto body = [](const Tensor& carry, const Tensor& item) {
    return std::pair(straight_through(carry) * 2 + item, item);
  };
  const Tensor looped = scan(body, x, full({1, 2}, 0)).carry;
  std::vector<Tensor> grads;
  for (const Tensor& y : {kept, lowered, looped}) grads.push_back(grad(sum(y), std::vector{x})[0]);
  for (const Tensor& g : grads) EXPECT_EQ(g.to_vector(), (Floats{2, 2}));
}

TEST_F(CustomOpTest, OfTensorCodeRefusesWhatDoesNotFit) {
  const Tensor x = f32({1, 2}, {2});
  const auto itself = [](const std::vector<Tensor>& operands) { return operands[0]; };
  expect_refusal({"custom_vjp: 0 operands", "1 to 8"}, [&](int& line) {
    line = __LINE__ + 1;
    custom_vjp([&](const std::vector<Tensor>&) { return x; },
               [](const CustomVjp&) { return std::vector<Tensor>{}; }, {});
  });
  const Tensor y = custom_vjp(itself, [](const CustomVjp&) { return std::vector<Tensor>{}; }, {x});
  expect_error(Errc::invalid_argument, {"custom_vjp", "0 tensors for 1 operands"},
               [&] { (void)grad(sum(y), std::vector{x}); });
  expect_error(Errc::invalid_argument, {"custom_vjp", "gradient is null"},
               [&] { (void)custom_vjp(itself, nullptr, {x}); });
}

TEST(CustomOp, IsRunOnceForEqualCallsAndNotForNobody) {
  SimulateRuntime runtime(Mesh({1}, {"data"}));
  const RuntimeScope scope(runtime);
  const Tensor x = f32(numbers(4), {2, 2});
  calls = 0;
  const Tensor twice = custom_call(kCounted, {x}) + custom_call(kCounted, {x});
  const auto unused = [&] { return custom_call(kCounted, {x * 2.0}); };
  unused();
  sync();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(count(runtime.plans.front()->program, OpKind::custom_call), 1);
}

TEST(CustomOp, IsComputedAgainInACheckpoint) {
  SimulateRuntime runtime(Mesh({1}, {"data"}));
  const RuntimeScope scope(runtime);
  std::vector<Floats> grads;
  for (const bool again : {false, true}) {
    const Tensor x = f32(numbers(4), {2, 2});
    const auto forward = [&] { return tanh(custom_call(kCounted, {x * 2.0})); };
    const Tensor y = again ? checkpoint(forward) : forward();
    const Tensor g = grad(sum(y * y), std::vector{x})[0];
    calls = 0;
    grads.push_back(g.to_vector());
    EXPECT_EQ(calls, again ? 2 : 1);
  }
  EXPECT_EQ(grads[0], grads[1]);
}

TEST_F(CustomOpTest, IsLeftAloneByAutocast) {
  const Tensor x = f32({1, 2, 3, 4}, {2, 2});
  const CustomOp product{.name = "first_row",
                         .sharding_rule = "b s -> s",
                         .kernel =
                             [](const CustomCall& call) {
                               const auto y = call.result<float>();
                               std::ranges::copy(call.operand<float>(0).first(y.size()), y.begin());
                             },
                         .vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
                           // Autocast is off in a vjp, so this product is f32.
                           return {matmul(full({2, 1}, 1.0), reshape(v.cotangent, {1, 2}))};
                         }};
  autocast(DType::bf16, [&] {
    const Tensor y = custom_call(product, {x});
    EXPECT_EQ(y.type().dtype, DType::f32);
    expect_near(grad(sum(y), std::vector{x})[0], {1, 1, 1, 1});
    return 0;
  });
}

TEST(CustomOp, TakesBf16) {
  SimulateRuntime runtime(Mesh({2}, {"data"}));
  const RuntimeScope scope(runtime);
  const CustomOp twice{
      .name = "twice_bf16", .sharding_rule = "b -> b", .kernel = [](const CustomCall& call) {
        std::ranges::transform(call.operand<Bf16>(0), call.result<Bf16>().begin(),
                               [](Bf16 x) { return Bf16(2 * static_cast<float>(x)); });
      }};
  const Tensor x = cast(f32({1, 2.5F, -3, 4}, {4}), DType::bf16);
  expect_near(cast(custom_call(twice, {x}), DType::f32), {2, 5, -6, 8});
}

TEST(CustomOp, IsFoundByNameInTheCompileCache) {
  SimulateRuntime runtime(Mesh({2}, {"data"}));
  const RuntimeScope scope(runtime);
  CustomOp op = kCounted;
  for (int step = 0; step < 4; ++step) {
    if (step == 3) op.name = "counted_otherwise";
    const Tensor x = f32(numbers(4), {2, 2});
    Tensor y = custom_call(op, {x});
    sync();
    EXPECT_EQ(runtime.plans.size(), step == 3 ? 2U : 1U);
  }
  ASSERT_EQ(runtime.recompiles.size(), 1U);
  EXPECT_NE(runtime.recompiles[0].find("counted f32[2,2] at custom_op_test.cpp:"),
            std::string::npos)
      << runtime.recompiles[0];
}

TEST_F(CustomOpTest, FailsWithWhatTheKernelThrows) {
  const Tensor x = f32({1, 2}, {2});
  const CustomOp op{.name = "throws", .sharding_rule = "b -> b", .kernel = [](const CustomCall&) {
                      throw std::runtime_error("boom");
                    }};
  const int line = __LINE__ + 1;
  const Tensor y = custom_call(op, {x});
  testing::expect_error(
      Errc::loop_failed,
      {fmt::format("custom_call 'throws' at custom_op_test.cpp:{}: the kernel threw: boom", line)},
      [&] { y.to_vector(); });
}

TEST_F(CustomOpTest, NamesTheOperandThatItsKernelReadsWrongly) {
  const CustomOp op{.name = "reads_f64",
                    .sharding_rule = "b -> b",
                    .kernel = [](const CustomCall& call) { call.operand<double>(0); }};
  const Tensor y = custom_call(op, {f32({1, 2}, {2})});
  testing::expect_error(Errc::invalid_argument,
                        {"custom_call 'reads_f64' at custom_op_test.cpp:",
                         "operand 0 is f32[2], but the kernel reads it as f64"},
                        [&] { y.to_vector(); });
}

}  // namespace
}  // namespace weft::custom_op_test
