#include <weft/spmd/tensor/custom_op.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include <weft/spmd/tensor/autocast.hpp>
#include <weft/spmd/tensor/checkpoint.hpp>
#include <weft/spmd/tensor/module.hpp>
#include <weft/tests/support/simulate_runtime.hpp>
#include <weft/tests/unit/spmd/tensor/tensor_fixture.hpp>

namespace weft {
namespace {

using testing::expect_near;
using testing::expect_refusal;
using testing::f32;
using testing::SimulateRuntime;
using testing::TensorTest;
using Floats = std::vector<float>;

/// In f32 or f64.
template <typename T>
void soft_clip(const CustomCall& call) {
  const auto x = call.operand<T>(0);
  const auto limit = call.operand<T>(1);
  const auto y = call.result<T>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const T most = limit[i % limit.size()];
    y[i] = most * std::tanh(x[i] / most);
  }
}

const CustomOp kSoftClip{.name = "soft_clip",
                         .sharding_rule = "b s, s -> b s",
                         .kernel =
                             [](const CustomCall& call) {
                               call.operand_type(0).dtype == DType::f64 ? soft_clip<double>(call)
                                                                        : soft_clip<float>(call);
                             },
                         .vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
                           const Tensor ratio = v.result / v.operands[1];
                           const Tensor slope = 1.0 - ratio * ratio;
                           const Tensor of_limit = ratio - v.operands[0] / v.operands[1] * slope;
                           return {v.cotangent * slope, sum(v.cotangent * of_limit, {0})};
                         }};

/// The same of ordinary ops.
Tensor soft_clip(const Tensor& x, const Tensor& limit) { return limit * tanh(x / limit); }

/// y[b] = sum over s of x[b,s] * x[b,s]: by parts of a row.
const CustomOp kRowNorm{.name = "row_norm",
                        .sharding_rule = "b s -> b",
                        .reduction_factors = {"s"},
                        .kernel =
                            [](const CustomCall& call) {
                              const auto x = call.operand<float>(0);
                              const auto y = call.result<float>();
                              std::ranges::fill(y, 0.0F);
                              for (std::size_t i = 0; i < x.size(); ++i) {
                                y[i / (x.size() / y.size())] += x[i] * x[i];
                              }
                            },
                        .vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
                          const Tensor& x = v.operands[0];
                          return {2.0 * x * reshape(v.cotangent, {x.dim(0), 1})};
                        }};

/// The sums of a row's elements up to each.
const CustomOp kCumsum{.name = "cumsum",
                       .sharding_rule = "b s -> b s",
                       .need_replication_factors = {"s"},
                       .kernel =
                           [](const CustomCall& call) {
                             const auto x = call.operand<float>(0);
                             const auto y = call.result<float>();
                             const auto size =
                                 static_cast<std::size_t>(call.result_type().shape[1]);
                             for (std::size_t i = 0; i < y.size(); ++i) {
                               y[i] = x[i] + (i % size == 0 ? 0.0F : y[i - 1]);
                             }
                           },
                       .vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
                         return {flip(custom_call(kCumsum, {flip(v.cotangent, {1})}), {1})};
                       }};

Floats numbers(std::size_t count) {
  Floats elements;
  for (std::size_t i = 0; i < count; ++i)
    elements.push_back(static_cast<float>(i * 5 % 13) / 4 - 1);
  return elements;
}

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

/// By the difference of the losses at two points along a direction.
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

/// The second gradient is that of the ops which the vjp is made of.
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
  // An input of the program as it is.
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
  refuses({"need_replication_factors: \"s\" is no factor"}, op);
  op = kRowNorm;
  op.reduction_factors = {"b"};
  refuses({"reduction_factors: \"b\" is a dim of the result"}, op);
  op = kCumsum;
  op.sharding_rule = "b s -> b t";
  refuses({"no operand has the factor t of the result", "result_type"}, op);
  op = kCumsum;
  op.result_type = [](std::span<const TensorType>) { return TensorType{DType::f32, {2, 3}}; };
  refuses({"op 'cumsum': result_type: the result f32[2,3]", "factor s is 2 in the operands"}, op);
  op = kCumsum;
  custom_call(op, {x});
  op.sharding_rule = "x s -> x s";
  refuses({"op 'cumsum': name: 'cumsum' is registered with the sharding_rule \"b s -> b s"}, op);
  op = kCumsum;
  op.kernel = kRowNorm.kernel;
  refuses({"name: 'cumsum' is registered with another kernel"}, op);
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
  expect_refusal({"has 9 operands; it takes 1 to 8"}, [&](int& line) {
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
  refuses("vjp gives 2 tensors for 1 operands", op);
  op.name = "wide_cotangent";
  op.vjp = [](const CustomVjp& v) -> std::vector<Tensor> { return {cat({v.cotangent, v.result})}; };
  refuses("vjp gives f32[4,2] for operand 0, which is f32[2,2]", op);
  op.name = "wrong_vjp";
  op.vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
    return {matmul(v.cotangent, full({3, 3}, 1.0))};
  };
  refuses("vjp: grad: ", op);
}

std::atomic<int> calls{0};
const CustomOp kCounted{
    .name = "counted",
    .sharding_rule = "b s -> b s",
    .kernel =
        [](const CustomCall& call) {
          ++calls;
          std::ranges::copy(call.operand<float>(0), call.result<float>().begin());
        },
    .vjp = [](const CustomVjp& v) -> std::vector<Tensor> { return {v.cotangent * v.result}; }};

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
                           // In f32 here: autocast is off.
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

struct Trained {
  Floats w;
  Floats limit;
  double loss = 0;
  std::vector<CollectiveSummary> met;
};

/// Two steps of a net with every kind of factor, in custom or in ordinary ops. `spec`: of w[6,5].
Trained train(bool custom, const Mesh& mesh, const PartitionSpec& spec, bool shards_data) {
  SimulateRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  Parameter w = make_parameter("w", numbers(30), {6, 5});
  Parameter limit = make_parameter("limit", Floats{1, 2, 3, 4, 5}, {5});
  mark_sharding(w, mesh, spec);
  Trained trained;
  for (int step = 0; step < 2; ++step) {
    const Tensor x = f32(numbers(48), {8, 6});
    if (shards_data) mark_sharding(x, mesh, {{"data"}, {}});
    const Tensor hidden = matmul(x, w);
    const Tensor clipped =
        custom ? custom_call(kSoftClip, {hidden, limit}) : soft_clip(hidden, limit);
    const Tensor norms = custom ? custom_call(kRowNorm, {clipped}) : sum(clipped * clipped, {1});
    Tensor loss = mean(norms);
    const std::vector<Tensor> grads = grad(loss, std::vector<Tensor>{w, limit});
    w.assign(w - 0.01 * grads[0]);
    limit.assign(limit - 0.01 * grads[1]);
    sync();
    trained.loss = loss.item();
  }
  trained.w = w.to_vector();
  trained.limit = limit.to_vector();
  trained.met = collectives(*runtime.plans.front(), mesh);
  return trained;
}

/// 5 columns over 2 or 4 chips are padded: the op gets what there is of them, whole.
TEST(CustomOp, TrainsAsOrdinaryOpsDoUnderEverySharding) {
  const Mesh mesh({2, 2}, {"data", "model"});
  const Trained expected = train(false, mesh, {{}, {}}, false);
  const auto close = [](const Floats& a, const Floats& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
  };
  for (const PartitionSpec& spec : std::vector<PartitionSpec>{{{}, {}},
                                                              {{"data"}, {}},
                                                              {{}, {"model"}},
                                                              {{"model"}, {"data"}},
                                                              {{}, {"data", "model"}},
                                                              {{"data", "model"}, {}}}) {
    for (const bool shards_data : {false, true}) {
      const Trained trained = train(true, mesh, spec, shards_data);
      close(trained.w, expected.w);
      close(trained.limit, expected.limit);
      EXPECT_NEAR(trained.loss, expected.loss, 1e-5);
    }
  }
}

/// What `op` of x[4,8] meets, x sharded by `spec`.
std::vector<OpKind> met(const CustomOp& op, const PartitionSpec& spec) {
  const Mesh mesh({2, 2}, {"data", "model"});
  SimulateRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  const Tensor x = f32(numbers(32), {4, 8});
  mark_sharding(x, mesh, spec);
  const Tensor y = custom_call(op, {x});
  sync();
  std::vector<OpKind> kinds;
  for (const CollectiveSummary& call : collectives(*runtime.plans.front(), mesh)) {
    kinds.push_back(call.kind);
  }
  return kinds;
}

TEST(CustomOp, MeetsOthersAsItsRuleSays) {
  EXPECT_EQ(met(kCounted, {{"data"}, {"model"}}), (std::vector<OpKind>{}));
  EXPECT_EQ(met(kCumsum, {{"data"}, {}}), (std::vector<OpKind>{}));
  EXPECT_EQ(met(kCumsum, {{"data"}, {"model"}}), (std::vector<OpKind>{OpKind::all_gather}));
  EXPECT_EQ(met(kRowNorm, {{"data"}, {"model"}}), (std::vector<OpKind>{OpKind::all_reduce}));
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
                         "operand 0 is f32[2], but the kernel takes it as f64"},
                        [&] { y.to_vector(); });
}

}  // namespace
}  // namespace weft
