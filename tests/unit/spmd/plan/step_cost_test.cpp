#include "spmd/plan/step_cost.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "spmd/ops/builder.hpp"
#include "spmd/program/window_axes.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/chip_plan.hpp"
#include "tests/support/custom_ops.hpp"
#include "tests/support/op_examples.hpp"
#include "tests/support/scheduled.hpp"
#include "tests/support/target.hpp"

namespace weft::step_cost_test {
namespace {

const Mesh kGrid({2, 2}, {"data", "model"});

class StepCosts : public ::testing::Test {
 protected:
  using Dims = std::vector<std::int64_t>;

  ValueId input(const Shape& shape, DType dtype = DType::f32) {
    return program_.add_input({dtype, shape}, InputKind::param,
                              "x" + std::to_string(program_.inputs.size()), Sharding::closed());
  }
  ValueId product(ValueId a, ValueId b) {
    return b_.dot_general(
        a, b, {.lhs_batch = {}, .rhs_batch = {}, .lhs_contracting = {1}, .rhs_contracting = {0}});
  }
  /// Returns the cost of the op that computes `value`.
  StepCost of(ValueId value) const { return op_cost(program_, program_.defining_op(value), kGrid); }
  /// Returns the costs of the steps of a plan that computes these outputs, on a chip of kGrid.
  std::vector<StepCost> of_plan(const std::vector<ValueId>& outputs) {
    for (const ValueId value : outputs) {
      program_.add_output(value, "y" + std::to_string(value), Sharding::closed());
    }
    plan_ =
        testing::chip_plan(program_, kGrid, testing::cpu_target_with({.shared_bytes_min = 512}));
    return step_costs(plan_, kGrid);
  }
  StepCost of_kind(const std::vector<StepCost>& costs, StepKind kind) const {
    StepCost found{.flops = -1};
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (plan_.steps[i].kind == kind) found = costs[i];
    }
    return found;
  }

  Program program_;
  Builder b_{program_};
  Plan plan_;
};

TEST_F(StepCosts, AProductHasTwoForEachPairOfElementsThatMeet) {
  const ValueId y = product(input({32, 64}), input({64, 10}));
  EXPECT_EQ(of(y).flops, 2 * 32 * 64 * 10);
  EXPECT_EQ(of(y).read_bytes, 4 * (32 * 64 + 64 * 10));
  EXPECT_EQ(of(y).written_bytes, 4 * 32 * 10);
  const ValueId batches = b_.dot_general(
      input({3, 5, 7}, DType::bf16), input({3, 5, 9}, DType::bf16),
      {.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contracting = {1}, .rhs_contracting = {1}});
  EXPECT_EQ(of(batches).flops, 2 * 3 * 5 * 7 * 9);
  EXPECT_EQ(of(batches).bytes(), 2 * 3 * (5 * 7 + 5 * 9 + 7 * 9));
  EXPECT_EQ(of(batches).dtype, DType::bf16);
}

TEST_F(StepCosts, WhatIsReadTwiceCountsOnce) {
  const ValueId x = input({8, 8});
  const ValueId y = product(x, x);
  EXPECT_EQ(of(y).read_bytes, 4 * 64);
}

/// Products with elements of the padding, or with the gaps in a gradient's operand, aren't counted.
TEST_F(StepCosts, AConvolutionHasTwoWhereAWindowMeetsAnElement) {
  const ValueId x = input({4, 2, 6, 6});
  const ValueId w = input({5, 2, 3, 3});
  const auto convolve = [&](std::int64_t stride, std::int64_t base_dilation) {
    const WindowDim dim{
        .size = 3, .stride = stride, .low = 1, .high = 1, .base_dilation = base_dilation};
    return b_.convolution(
        x, w,
        {.lhs = {0, 1, 2, 3}, .rhs = {1, 0, 2, 3}, .result = {0, 1, 2, 3}, .window = {dim, dim}});
  };
  for (const auto& [stride, gaps] : {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2)}) {
    const ValueId y = convolve(stride, gaps);
    const OpId op = program_.defining_op(y);
    const Convolution c = convolution_of(program_.op_attrs(op), program_.shape(w));
    const auto axes = window_axes(c, program_.shape(x), program_.shape(w), program_.shape(y));
    const auto met = static_cast<std::int64_t>(meetings(axes).size());
    EXPECT_EQ(of(y).flops, 2 * 4 * 2 * 5 * met) << stride << " " << gaps;
  }
  // Without padding, all elements of every window count.
  const ValueId valid = b_.convolution(x, w,
                                       {.lhs = {0, 1, 2, 3},
                                        .rhs = {1, 0, 2, 3},
                                        .result = {0, 1, 2, 3},
                                        .window = {WindowDim{.size = 3}, WindowDim{.size = 3}}});
  EXPECT_EQ(of(valid).flops, 2 * (4 * 5 * 4 * 4) * (2 * 3 * 3));
}

TEST_F(StepCosts, AttentionIsItsProductsOverPairsThatSeeEachOther) {
  const ValueId q = input({2, 3, 6, 8});
  const ValueId k = input({2, 3, 9, 8});
  const ValueId v = input({2, 3, 9, 8});
  const ValueId all = b_.attention(q, k, v, {.causal = false});
  EXPECT_EQ(of(all).flops, 2 * (2 * 3 * 6 * 9) * (8 + 8));
  EXPECT_EQ(of(all).bytes(), 4 * (2 * 3 * 8) * (6 + 9 + 9 + 6));
  const ValueId causal = b_.attention(q, k, v, {.causal = true});
  EXPECT_EQ(of(causal).flops, 2 * (2 * 3 * 21) * (8 + 8)) << "1 + 2 + .. + 6 pairs";
  const ValueId grad = b_.attention_grad(q, k, v, causal, causal, {.causal = true});
  EXPECT_EQ(of(grad).flops, 2 * (2 * 3 * 21) * 5 * 8);
  const ValueId more_queries = b_.attention(k, q, q, {.causal = true});
  EXPECT_EQ(of(more_queries).flops, 2 * (2 * 3 * (21 + 3 * 6)) * (8 + 8));
}

/// The two chips along "data" have 3 queries each, which see 1 + 2 + 3 or 4 + 5 + 6 keys.
TEST_F(StepCosts, OfChipsThatShareQueriesItIsTheMean) {
  const auto data = static_cast<std::int64_t>(kGrid.axis_atoms(0).bits());
  const std::vector<ValueId> operands{input({1, 1, 3, 8}), input({1, 1, 6, 8}),
                                      input({1, 1, 6, 8})};
  std::vector<std::int64_t> attrs = to_attrs(AttentionForm{.causal = true});
  attrs.push_back(data);
  const ValueId y = program_.add_op(OpKind::attention, operands, attrs, {DType::f32, {1, 1, 3, 8}});
  EXPECT_EQ(of(y).flops, 2 * 10 * (8 + 8)) << "half of 21";
}

TEST_F(StepCosts, AChainReadsAndWritesOnlyWhatLiesInMemory) {
  const ValueId x = input({16, 64});
  const ValueId bias = input({64});
  const ValueId rows = b_.broadcast_in_dim(bias, {16, 64}, Dims{1});
  const ValueId half = b_.constant(0.5, {DType::f32, {16, 64}});
  const ValueId sum = b_.binary(OpKind::add, x, rows);
  const ValueId scaled = b_.binary(OpKind::multiply, sum, half);
  const ValueId y = b_.unary(OpKind::tanh, b_.binary(OpKind::multiply, scaled, x));
  const std::vector<StepCost> costs = of_plan({y});
  ASSERT_EQ(plan_.steps.size(), 1U);
  EXPECT_EQ(costs[0].flops, 4 * 16 * 64);
  EXPECT_EQ(costs[0].read_bytes, 4 * (16 * 64 + 64)) << "x once, the row as it lies";
  EXPECT_EQ(costs[0].written_bytes, 4 * 16 * 64);
}

TEST_F(StepCosts, AReductionHasOneForEachElement) {
  const ValueId x = input({16, 64});
  const ValueId sum = b_.reduce(ReduceKind::add, x, Dims{1});
  EXPECT_EQ(of(sum), (StepCost{.flops = 1024, .read_bytes = 4096, .written_bytes = 64}));
  const WindowDim pool{.size = 2, .stride = 2};
  const WindowReduction pools{.kind = ReduceKind::max, .dims = {WindowDim{}, pool}};
  const ValueId y = b_.reduce_window(x, pools);
  EXPECT_EQ(of(y).flops, 16 * 32 * 2);
  EXPECT_EQ(of(b_.select_and_scatter(x, y, pools)).flops, 16 * 32 * (2 + 1));
}

TEST_F(StepCosts, ACompositeIsWhatItsPrimitivesAre) {
  const ValueId x = input({16, 64});
  EXPECT_EQ(of(b_.softmax(x)).flops, 5 * 1024) << "max, subtract, exponential, sum, divide";
  EXPECT_EQ(of(b_.softmax(x)).bytes(), 2 * 4096);
}

TEST_F(StepCosts, ThatMovesOrConvertsIsNoArithmetic) {
  const ValueId x = input({16, 64});
  for (const ValueId y : {b_.transpose(x, Dims{1, 0}), b_.copy(x), b_.reverse(x, Dims{0})}) {
    EXPECT_EQ(of(y), (StepCost{.flops = 0, .read_bytes = 4096, .written_bytes = 4096}));
  }
  EXPECT_EQ(of(b_.convert(x, DType::bf16)),
            (StepCost{.flops = 0, .read_bytes = 4096, .written_bytes = 2048}));
}

TEST_F(StepCosts, APartIsReadAsAPart) {
  const ValueId x = input({16, 64});
  EXPECT_EQ(of(b_.slice(x, Dims{0, 0}, Dims{4, 64}, Dims{1, 1})).read_bytes, 1024);
  const ValueId rows = b_.gather(x, input({3}, DType::i32));
  EXPECT_EQ(of(rows), (StepCost{.flops = 0, .read_bytes = 3 * 256 + 12, .written_bytes = 3 * 256}));
}

TEST_F(StepCosts, ACollectiveReadsItsOperandAndWritesItsResult) {
  const AtomList data = kGrid.axis_atoms(0);
  const ValueId x = input({16, 8});
  const ValueId sum = b_.all_reduce(kGrid, b_.reverse(x, Dims{0}), data, ReduceKind::add);
  const StepCost cost = of_kind(of_plan({sum}), StepKind::collective);
  EXPECT_EQ(cost.flops, 64) << "each of two chips adds its half";
  EXPECT_EQ(cost.read_bytes, 512);
  EXPECT_EQ(cost.written_bytes, 512);
  EXPECT_EQ(cost.traffic_bytes, 512);
}

TEST_F(StepCosts, ABucketIsTheSumOfItsCollectives) {
  const AtomList data = kGrid.axis_atoms(0);
  std::vector<ValueId> sums;
  const ValueId small = b_.reverse(input({4, 8}), Dims{0});
  const ValueId large = b_.reverse(input({12, 8}), Dims{0});
  for (const ValueId x : {small, large}) {
    sums.push_back(b_.all_reduce(kGrid, x, data, ReduceKind::add));
  }
  const StepCost cost = of_kind(of_plan(sums), StepKind::collective);
  EXPECT_EQ(cost.read_bytes, 512);
  EXPECT_EQ(cost.traffic_bytes, 512);
  EXPECT_EQ(cost.flops, 64);
}

TEST_F(StepCosts, OfAResultThatChipsShareEachStoresItsPart) {
  const AtomList data = kGrid.axis_atoms(0);
  const ValueId x = b_.reverse(input({16, 8}), Dims{0});
  const ValueId whole = b_.all_gather(kGrid, x, data, 1);
  const ValueId y = b_.reduce(ReduceKind::add, whole, Dims{0});
  const StepCost cost = of_kind(of_plan({y}), StepKind::collective);
  ASSERT_GT(plan_.shared_bytes, 0U);
  EXPECT_EQ(cost.read_bytes, 512);
  EXPECT_EQ(cost.written_bytes, 512);
  EXPECT_EQ(cost.traffic_bytes, 512);
}

TEST_F(StepCosts, OfWhatIsGatheredInPlaceIsThatOfTheOpThatWritesIt) {
  const ValueId x = b_.reverse(input({16, 8}), Dims{0});
  const ValueId whole = b_.all_gather(kGrid, x, kGrid.axis_atoms(0), 0);
  const std::vector<StepCost> costs = of_plan({b_.reduce(ReduceKind::add, whole, Dims{0})});
  const StepCost cost = of_kind(costs, StepKind::collective);
  EXPECT_EQ(cost.read_bytes, 0);
  EXPECT_EQ(cost.written_bytes, 0);
  EXPECT_EQ(cost.traffic_bytes, 512);
  EXPECT_EQ(costs.front().written_bytes, 512);
}

TEST_F(StepCosts, OfASumThatALoopAddsAreInTheLoop) {
  const ValueId x = b_.reverse(input({32, 8}), Dims{0});
  const ValueId sum = b_.reduce_scatter(kGrid, x, kGrid.axis_atoms(0), ReduceKind::add, 0);
  const std::vector<StepCost> costs = of_plan({b_.unary(OpKind::tanh, sum)});
  const StepCost meeting = of_kind(costs, StepKind::collective);
  EXPECT_EQ(meeting.flops, 0);
  EXPECT_EQ(meeting.read_bytes, 0);
  EXPECT_EQ(meeting.traffic_bytes, 512);
  const StepCost loop = of_kind(costs, StepKind::loop);
  EXPECT_EQ(loop.flops, 2 * 128);  // 128 for the sum, 128 for the tanh
  EXPECT_EQ(loop.read_bytes, 1024);
  EXPECT_EQ(loop.written_bytes, 512);
}

TEST_F(StepCosts, AnIterationReadsItsItemAndWritesItsPart) {
  const ValueId items = input({6, 64});
  const ValueId first = input({64});
  const ValueId loop = b_.loop(6, false);
  const ValueId carry = b_.border(OpKind::carry, {loop, first});
  const ValueId item = b_.border(OpKind::item, {loop, items});
  const ValueId sum = b_.binary(OpKind::add, carry, item);
  const ValueId stack = b_.border(OpKind::stack, {loop, sum});
  const ValueId next = b_.border(OpKind::next, {loop, carry, sum});
  EXPECT_EQ(of(item).read_bytes, 256 + 4) << "and the number of the iteration";
  EXPECT_EQ(of(item).written_bytes, 256);
  EXPECT_EQ(of(stack).written_bytes, 256);
  EXPECT_EQ(of(next).bytes(), 512);
  const ValueId unchanged = b_.border(OpKind::next, {loop, carry, carry});
  EXPECT_EQ(of(unchanged).bytes(), 0);
}

TEST_F(StepCosts, ARunHasAStepAsOftenAsItsLoopIterates) {
  const ValueId first = input({8, 8});
  const ValueId loop = b_.loop(6, false);
  const ValueId carry = b_.border(OpKind::carry, {loop, first});
  const ValueId square = product(carry, carry);
  const ValueId next = b_.border(OpKind::next, {loop, carry, square});
  of_plan({next});
  EXPECT_EQ(run_cost(plan_, kGrid).flops, 6 * 2 * 8 * 8 * 8);
  const std::vector<std::int64_t> counts = step_counts(plan_);
  ASSERT_EQ(plan_.steps.front().kind, StepKind::begin);
  EXPECT_EQ(counts.front(), 1) << "its carries are set once";
  EXPECT_EQ(counts[1], 6);
  EXPECT_EQ(counts.back(), 1) << "what comes behind the loop";
}

/// Every op must have arithmetic or be in this list, so a new op can't be forgotten.
TEST(StepCostsOfEveryOp, AreArithmeticUnlessTheOpOnlyMovesOrMakesElements) {
  using enum OpKind;
  const std::set<OpKind> none{constant,
                              iota,
                              rng_bit_generator,
                              convert,
                              reshape,
                              transpose,
                              reverse,
                              broadcast_in_dim,
                              slice,
                              pad,
                              concatenate,
                              gather,
                              dynamic_slice,
                              take_along,
                              dynamic_update_slice,
                              custom_call,
                              copy,
                              check_index,
                              all_gather,
                              optimization_barrier,
                              all_to_all,
                              all_slice,
                              ppermute,
                              enter,
                              collective_permute,
                              leave,
                              vary,
                              loop,
                              carry,
                              sharding_constraint,
                              item,
                              stack,
                              next,
                              test,
                              stop_gradient,
                              custom_gradient,
                              cond,
                              otherwise,
                              merge};
  testing::custom_target(testing::CustomKind::affine, 2);
  for (const testing::OpExample& example : testing::op_examples()) {
    const Program program = parse_program(testing::text_of(example), kGrid);
    for (OpId op = 0; op < program.num_ops(); ++op) {
      if (program.kind(op) != example.kind) continue;
      const StepCost cost = op_cost(program, op, kGrid);
      EXPECT_EQ(cost.flops > 0, !none.contains(example.kind)) << to_string(example.kind);
      EXPECT_GE(cost.read_bytes, 0) << to_string(example.kind);
      EXPECT_GE(cost.written_bytes, 0) << to_string(example.kind);
    }
  }
}

TEST(Traffic, GrowsWithTheGroup) {
  EXPECT_EQ(traffic_bytes(OpKind::all_reduce, 64, 1), 0);
  EXPECT_EQ(traffic_bytes(OpKind::all_reduce, 64, 2), 64);
  EXPECT_EQ(traffic_bytes(OpKind::all_reduce, 64, 4), 96);
  EXPECT_EQ(traffic_bytes(OpKind::all_gather, 64, 4), 48);
}

}  // namespace
}  // namespace weft::step_cost_test
