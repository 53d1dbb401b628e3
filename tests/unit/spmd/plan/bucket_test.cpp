#include "spmd/plan/bucket.hpp"

#include <gtest/gtest.h>

#include "spmd/ops/builder.hpp"
#include "spmd/plan/plan.hpp"
#include "tests/support/chip_plan.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::bucket_test {
namespace {

const Mesh kMesh({4, 2}, {"data", "model"});

/// A chip's program that negates inputs and sums them over chips, as gradients are summed.
struct Reductions {
  Program program;
  Builder build{program};

  ValueId gradient(std::int64_t size, DType dtype = DType::f32) {
    return build.unary(OpKind::negate,
                       program.add_input({dtype, {size}}, InputKind::data, "x", {}));
  }
  ValueId sum(ValueId value, int axis = 0, ReduceKind kind = ReduceKind::add) {
    return build.all_reduce(kMesh, value, kMesh.axis_atoms(axis), kind);
  }
  void output(ValueId value) { program.add_output(value, "y", {}); }
  Plan plan() const { return testing::chip_plan(program, kMesh); }
};

std::vector<OpId> counts(const Program& program) {
  std::vector<OpId> counts;
  for (const Bucket& bucket : buckets(program)) counts.push_back(bucket.count);
  return counts;
}

TEST(Bucket, BringsTogetherWhatIsReadLater) {
  Reductions step;
  std::vector<ValueId> sums;
  for (int i = 0; i < 3; ++i) sums.push_back(step.sum(step.gradient(5)));
  for (const ValueId sum : sums) step.output(step.build.unary(OpKind::negate, sum));
  EXPECT_EQ(counts(step.program), (std::vector<OpId>{1, 1, 1}));
  EXPECT_EQ(counts(fill_buckets(step.program)), (std::vector<OpId>{3}));
}

/// Each sum is computed and read before the next one, as in updates of parameters.
TEST(Bucket, BringsForwardWhatNeedsNoSumOfTheBucket) {
  Reductions step;
  for (int i = 0; i < 3; ++i) {
    step.output(step.build.unary(OpKind::negate, step.sum(step.gradient(5))));
  }
  EXPECT_EQ(counts(fill_buckets(step.program)), (std::vector<OpId>{3}));
}

/// Each operand is a large product, which would have to be stored until the bucket is reduced.
TEST(Bucket, ComputesNothingLargeBeforeItsTurn) {
  Reductions step;
  for (int i = 0; i < 3; ++i) {
    const ValueId x = step.gradient(5);
    const ValueId product = step.build.dot_general(
        x, x, {.lhs_batch = {}, .rhs_batch = {}, .lhs_contracting = {}, .rhs_contracting = {}});
    step.output(step.build.unary(OpKind::negate, step.sum(product)));
  }
  EXPECT_EQ(counts(fill_buckets(step.program)), (std::vector<OpId>{1, 1, 1}));
}

TEST(Bucket, EndsWhereAResultIsRead) {
  Reductions step;
  const ValueId first = step.sum(step.gradient(5));
  const ValueId second = step.sum(step.build.unary(OpKind::negate, first));
  step.output(second);
  EXPECT_EQ(counts(fill_buckets(step.program)), (std::vector<OpId>{1, 1}));
}

/// The outer loop stacks a value before its inner loop begins, as in gradients of gradients.
TEST(Bucket, ReducesWhatAnInnerLoopMakesBeforeTheOuterOneEnds) {
  Reductions step;
  Builder& b = step.build;
  const ValueId first = step.gradient(5);
  const ValueId outer = b.loop(2, false);
  const ValueId carry = b.border(OpKind::carry, {outer, first});
  step.output(b.border(OpKind::stack, {outer, b.unary(OpKind::negate, carry)}));
  const ValueId inner = b.loop(3, false);
  const ValueId inner_carry = b.border(OpKind::carry, {inner, carry});
  const ValueId made =
      b.border(OpKind::next, {inner, inner_carry, b.unary(OpKind::tanh, inner_carry)});
  const ValueId sum = b.unary(OpKind::negate, step.sum(made));
  step.output(b.border(OpKind::next, {outer, carry, sum}));
  const Program filled = fill_buckets(step.program);
  EXPECT_EQ(counts(filled), (std::vector<OpId>{1}));
  EXPECT_EQ(filled.num_ops(), step.program.num_ops());
}

TEST(Bucket, EndsWhenItIsFull) {
  Reductions step;
  for (int i = 0; i < 5; ++i) step.output(step.sum(step.gradient(kBucketBytes / 8)));
  EXPECT_EQ(counts(fill_buckets(step.program)), (std::vector<OpId>{2, 2, 1}));
}

TEST(Bucket, HasOneKindOneDtypeAndOneGroup) {
  Reductions step;
  step.output(step.sum(step.gradient(5)));
  step.output(step.sum(step.gradient(5), 1));
  step.output(step.sum(step.gradient(5), 0, ReduceKind::max));
  step.output(step.sum(step.gradient(5, DType::i32)));
  step.output(step.sum(step.gradient(5)));
  EXPECT_EQ(counts(fill_buckets(step.program)), (std::vector<OpId>{2, 1, 1, 1}));
}

TEST(Bucket, LeavesOutAValueThatIsReducedTwice) {
  Reductions step;
  const ValueId shared = step.gradient(5);
  step.output(step.sum(shared));
  step.output(step.sum(shared, 0, ReduceKind::max));
  step.output(step.sum(step.gradient(5)));
  EXPECT_EQ(counts(fill_buckets(step.program)), (std::vector<OpId>{1, 1, 1}));
}

TEST(Bucket, LiesInOneRange) {
  Reductions step;
  for (const std::int64_t size : {5, 40, 1}) {
    step.output(step.build.unary(OpKind::negate, step.sum(step.gradient(size))));
  }
  const Plan plan = step.plan();
  ASSERT_EQ(counts(plan.program), (std::vector<OpId>{3}));
  const OpId first = buckets(plan.program)[0].first;
  const auto offset = [&](ValueId value) { return plan.slots[value].offset; };
  const auto operand = [&](OpId op) { return plan.program.op_operands(op)[0]; };
  const std::uint64_t operands = offset(operand(first));
  const std::uint64_t results = offset(plan.program.result(first));
  EXPECT_EQ(offset(operand(first + 1)), operands + 64);
  EXPECT_EQ(offset(operand(first + 2)), operands + 256);
  EXPECT_EQ(offset(plan.program.result(first + 1)), results + 64);
  EXPECT_EQ(offset(plan.program.result(first + 2)), results + 256);
  EXPECT_EQ(collectives(plan, kMesh).size(), 1U);
  EXPECT_EQ(collectives(plan, kMesh)[0].bytes, 4 * 46);
}

TEST(Bucket, IsRefusedIfItIsScattered) {
  Reductions step;
  for (int i = 0; i < 2; ++i) {
    step.output(step.build.unary(OpKind::negate, step.sum(step.gradient(5))));
  }
  Plan plan = step.plan();
  const OpId second = buckets(plan.program)[0].first + 1;
  plan.slots[plan.program.result(second)].offset = plan.temp_bytes;
  plan.temp_bytes += 64;
  testing::expect_error(Errc::corrupt, {"directly after", "reduced"}, [&] { verify(plan, kMesh); });
}

}  // namespace
}  // namespace weft::bucket_test
