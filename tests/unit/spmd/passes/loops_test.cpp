// Tests loops of a program: what verify() requires, and what passes and plans do with them.

#include <gtest/gtest.h>

#include <algorithm>

#include "spmd/control/loops.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/ops/verify.hpp"
#include "spmd/passes/canonicalize.hpp"
#include "spmd/passes/propagate.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/target.hpp"

namespace weft::loops_test {
namespace {

const Mesh kMesh({2, 2}, {"data", "model"});

Program parsed(std::string_view ops, std::string_view result) {
  return parse_program(
      fmt::format("program(%0: f32[4,8] data \"x\" [{{?}}, {{?}}],\n"
                  "%1: f32[8,8] param \"w\" [{{?}}, {{?}}]) {{\n{}\nreturn {} \"y\" [{{?}}, "
                  "{{?}}]\n}}",
                  ops, result),
      kMesh);
}

/// Computes h = tanh(h w) in each of three iterations.
constexpr std::string_view kRecurrence =
    "%2 = loop {length = 3} : i32[]\n%3 = carry %2, %0 : f32[4,8]\n"
    "%4 = dot_general %3, %1 {contracting = [1] x [0]} : f32[4,8]\n%5 = tanh %4 : f32[4,8]\n"
    "%6 = next %2, %3, %5 : f32[4,8]";

std::vector<OpKind> kinds(const Program& program) { return program.op_kinds; }

std::vector<StepKind> steps_of(std::string_view ops, std::string_view result) {
  std::vector<StepKind> kinds;
  for (const PlanStep& step : compile(parsed(ops, result), kMesh, kCpuTarget).steps)
    kinds.push_back(step.kind);
  return kinds;
}

TEST(Loops, AreRangesOfTheTable) {
  const Program program = parsed(
      "%2 = loop {length = 4} : i32[]\n%3 = item %2, %0 : f32[8]\n"
      "%4 = loop {length = 2} : i32[]\n%5 = carry %4, %3 : f32[8]\n%6 = tanh %5 : f32[8]\n"
      "%7 = next %4, %5, %6 : f32[8]\n%8 = negate %7 : f32[8]\n"
      "%9 = stack %2, %8 {length = 4} : f32[4,8]\n%10 = negate %9 : f32[4,8]",
      "%10");
  const Loops loops(program);
  ASSERT_EQ(loops.ranges().size(), 2U);
  EXPECT_EQ(loops[0].begin, 0U);
  EXPECT_EQ(loops[0].end, 8U);
  EXPECT_EQ(loops[1].begin, 2U);
  EXPECT_EQ(loops[1].end, 6U);
  EXPECT_EQ(loops[1].outer, 0U);
  EXPECT_EQ(loops[1].depth, 2U);
  EXPECT_EQ(loops.of_op(6), 0U);
  EXPECT_EQ(loops.of_op(8), kNoId);
  EXPECT_EQ(loops.of_value(7), 0U);     // the result of the inner loop
  EXPECT_EQ(loops.of_value(9), kNoId);  // the result of the outer loop
  EXPECT_TRUE(loops.contains(0, 1));
  EXPECT_FALSE(loops.contains(1, 0));
}

TEST(Loops, AreVerified) {
  const auto refuses = [](std::string_view ops, std::string_view result, std::string_view word) {
    testing::expect_error(Errc::invalid_argument, {word}, [&] { parsed(ops, result); });
  };
  refuses("%2 = loop {length = 3} : i32[]\n%3 = negate %0 : f32[4,8]", "%3",
          "the loop has no border ops");
  refuses(
      "%2 = loop {length = 3} : i32[]\n%3 = carry %2, %0 : f32[4,8]\n"
      "%4 = stack %2, %0 {length = 3} : f32[3,4,8]\n%5 = negate %0 : f32[4,8]",
      "%5", "has no next");
  refuses(
      "%2 = loop {length = 3} : i32[]\n%3 = item %2, %0 : f32[8]\n"
      "%4 = stack %2, %3 {length = 3} : f32[3,8]",
      "%4", "has 4 parts, but the loop's length is 3");
  refuses(
      "%2 = loop {length = 4} : i32[]\n%3 = item %2, %0 : f32[8]\n"
      "%4 = stack %2, %3 {length = 5} : f32[5,8]",
      "%4", "has 5 parts, but the loop's length is 4");
  refuses(
      "%2 = loop {length = 3} : i32[]\n%3 = carry %2, %0 : f32[4,8]\n%4 = tanh %3 : f32[4,8]\n"
      "%5 = next %2, %3, %4 : f32[4,8]\n%6 = negate %4 : f32[4,8]",
      "%6", "reads %4, which only ops of the range at op 0 may read");
  refuses(
      "%2 = loop {length = 3} : i32[]\n%3 = carry %2, %0 : f32[4,8]\n%4 = tanh %3 : f32[4,8]\n"
      "%5 = next %2, %3, %4 : f32[4,8]",
      "%4", "output \"y\" is %4, which only ops of a loop or branch may read");
  refuses(
      "%2 = loop {length = 3} : i32[]\n%3 = carry %2, %0 : f32[4,8]\n"
      "%4 = next %2, %3, %3 : f32[4,8]\n%5 = next %2, %3, %3 : f32[4,8]",
      "%5", "%3 has two nexts");
  refuses(
      "%2 = loop {length = 3} : i32[]\n%3 = tanh %0 : f32[4,8]\n"
      "%4 = next %2, %3, %3 : f32[4,8]",
      "%4", "%3 isn't a carry of its loop");
  refuses(
      "%2 = loop {length = 3} : i32[]\n%3 = tanh %0 : f32[4,8]\n%4 = carry %2, %3 : f32[4,8]\n"
      "%5 = next %2, %4, %3 : f32[4,8]",
      "%5", "reads %3, which only ops of the range at op 0 may read");
  refuses(
      "%2 = constant {value = 0} : i32[]\n%3 = item %2, %0 : f32[8]\n"
      "%4 = negate %0 : f32[4,8]",
      "%4", "operand %2 isn't a loop");
  refuses(
      "%2 = loop {length = 4} : i32[]\n%3 = loop {length = 4} : i32[]\n"
      "%4 = stack %2, %0 {length = 4} : f32[4,4,8]\n"
      "%5 = stack %3, %0 {length = 4} : f32[4,4,8]\n%6 = negate %0 : f32[4,8]",
      "%6", "is in another loop than its own");
  refuses("%2 = loop : i32[]\n%3 = negate %0 : f32[4,8]", "%3", "the loop has no border ops");
}

/// These programs are a while loop of three iterations, and a cond with two branches.
constexpr std::string_view kWhile =
    "%2 = loop : i32[]\n%3 = carry %2, %0 : f32[4,8]\n%4 = constant {value = 3} : i32[]\n"
    "%5 = compare %2, %4 {direction = lt} : pred[]\n%6 = test %2, %5 : pred[]\n"
    "%7 = tanh %3 : f32[4,8]\n%8 = next %2, %3, %7 : f32[4,8]";
constexpr std::string_view kBranches =
    "%2 = reduce %0 {kind = max, dims = [0, 1]} : f32[]\n"
    "%3 = compare %2, %2 {direction = eq} : pred[]\n%4 = cond %3 : pred[]\n"
    "%5 = tanh %0 : f32[4,8]\n%6 = otherwise %4 : pred[]\n%7 = tanh %0 : f32[4,8]\n"
    "%8 = negate %7 : f32[4,8]\n%9 = merge %4, %5, %8 : f32[4,8]";

TEST(Branches, AreRangesOfTheTable) {
  const Program program = parsed(kBranches, "%9");
  const Loops loops(program);
  ASSERT_EQ(loops.ranges().size(), 2U);
  EXPECT_EQ(loops[0].begin, 2U);
  EXPECT_EQ(loops[0].end, 4U);
  EXPECT_EQ(loops[1].begin, 4U);
  EXPECT_EQ(loops[1].body_end(), 7U);
  EXPECT_EQ(loops[1].end, 8U);
  EXPECT_EQ(loops[0].other, 1U);
  EXPECT_EQ(loops.of_value(5), 0U);
  EXPECT_EQ(loops.of_value(9), kNoId);
  EXPECT_TRUE(loops.always_runs(1));
  EXPECT_FALSE(loops.always_runs(3));
}

TEST(Branches, AndTestsAreVerified) {
  const auto refuses = [](std::string_view ops, std::string_view result, std::string_view word) {
    testing::expect_error(Errc::invalid_argument, {word}, [&] { parsed(ops, result); });
  };
  const std::string begin =
      "%2 = constant {value = 1} : pred[]\n%3 = cond %2 : pred[]\n%4 = tanh %0 : f32[4,8]\n";
  const std::string second = begin + "%5 = otherwise %3 : pred[]\n%6 = negate %0 : f32[4,8]\n";
  refuses(begin + "%5 = negate %0 : f32[4,8]", "%5", "has no otherwise");
  refuses(second + "%7 = negate %0 : f32[4,8]", "%7", "no merge ends the branch");
  refuses(second + "%7 = merge %3, %6, %4 : f32[4,8]", "%7", "reads %6, which only ops");
  refuses(begin +
              "%5 = otherwise %3 : pred[]\n%6 = negate %4 : f32[4,8]\n"
              "%7 = merge %3, %4, %6 : f32[4,8]",
          "%7", "reads %4, which only ops");
  refuses(second +
              "%7 = merge %3, %4, %6 : f32[4,8]\n%8 = negate %7 : f32[4,8]\n"
              "%9 = merge %3, %4, %6 : f32[4,8]",
          "%8", "its merges aren't next to each other");
  refuses(second + "%7 = merge %2, %4, %6 : f32[4,8]", "%7", "operand %2 isn't a cond");
  refuses(second + "%7 = merge %3, %4, %6 : f32[4,8]\n%8 = negate %4 : f32[4,8]", "%8",
          "reads %4, which only ops");
  refuses("%2 = loop : i32[]\n%3 = carry %2, %0 : f32[4,8]\n%4 = next %2, %3, %3 : f32[4,8]", "%4",
          "a loop without length needs a test");
  refuses("%2 = loop : i32[]\n%3 = item %2, %0 : f32[8]\n%4 = negate %0 : f32[4,8]", "%4",
          "has no length, so it can't have items");
  const std::string test =
      "%2 = loop {length = 3} : i32[]\n%3 = carry %2, %0 : f32[4,8]\n"
      "%4 = constant {value = 1} : pred[]\n%5 = test %2, %4 : pred[]\n"
      "%6 = next %2, %3, %3 : f32[4,8]";
  refuses(test, "%6", "a loop with a length can't have a test");
}

TEST(Branches, KeepTheirOps) {
  using enum OpKind;
  // The branches keep their own tanh, and the program keeps its own: none of these replaces
  // another.
  const Program program = parsed(
      std::string(kBranches) + "\n%10 = tanh %0 : f32[4,8]\n%11 = add %9, %10 : f32[4,8]", "%11");
  const Program made = canonicalize(program, true);
  verify(made, kMesh);
  EXPECT_EQ(kinds(made),
            (std::vector{reduce, compare, cond, tanh, otherwise, tanh, negate, merge, tanh, add}));
  Program without = program;
  without.outputs[0].value = 10;
  EXPECT_EQ(kinds(canonicalize(without, true)), (std::vector{tanh}));
}

TEST(Branches, HaveStepsThatGoOnElsewhere) {
  using enum StepKind;
  EXPECT_EQ(steps_of(kBranches, "%9"),
            (std::vector{compute, loop, branch, loop, branch, loop, join, compute}));
  EXPECT_EQ(steps_of(kWhile, "%8"),
            (std::vector{begin, loop, test, loop, compute, repeat, compute}));
}

TEST(Branches, RefuseAPlanThatRunsThemOtherwise) {
  const auto refuses = [](std::string_view ops, std::string_view result, std::string_view word,
                          auto edit) {
    Plan plan = compile(parsed(ops, result), kMesh, kCpuTarget);
    edit(plan);
    testing::expect_error(Errc::corrupt, {word}, [&] { verify(plan, kMesh); });
  };
  refuses(kBranches, "%9", "runs outside of its loop or branch",
          [](Plan& p) { p.steps.erase(p.steps.begin() + 6); });
  refuses(kBranches, "%9", "ends the branch", [](Plan& p) { std::swap(p.steps[5], p.steps[6]); });
  refuses(kBranches, "%9", "op 2 runs outside of its loop or branch",
          [](Plan& p) { p.steps[2].kind = StepKind::compute; });
  refuses(kBranches, "%9", "waits in a loop or a branch", [](Plan& p) {
    p.steps.insert(p.steps.begin() + 3, {StepKind::update_wait, 0, 0});
  });
  refuses(kWhile, "%8", "which begins or ends a loop or a branch",
          [](Plan& p) { p.steps[2].kind = StepKind::compute; });
  refuses(kWhile, "%8", "begins a branch with op",
          [](Plan& p) { p.steps[2].kind = StepKind::branch; });
}

TEST(Loops, LoseWhatNobodyNeeds) {
  // Other than by its own `next`, the first carry is read by the `next` of the second carry, and
  // the third isn't read at all.
  const Program program = parsed(
      "%2 = loop {length = 3} : i32[]\n%3 = carry %2, %0 : f32[4,8]\n%4 = carry %2, %0 : f32[4,8]\n"
      "%5 = carry %2, %0 : f32[4,8]\n%6 = negate %3 : f32[4,8]\n%7 = add %4, %3 : f32[4,8]\n"
      "%8 = tanh %5 : f32[4,8]\n%9 = next %2, %3, %6 : f32[4,8]\n%10 = next %2, %4, %7 : f32[4,8]\n"
      "%11 = next %2, %5, %8 : f32[4,8]\n%12 = stack %2, %7 {length = 3} : f32[3,4,8]",
      "%10");
  using enum OpKind;
  EXPECT_EQ(kinds(canonicalize(program, true)),
            (std::vector{loop, carry, carry, negate, add, next, next}));
  Program without = program;
  without.outputs[0].value = 1;
  EXPECT_EQ(canonicalize(without, true).num_ops(), 0U);
}

TEST(Loops, HaveTheirCarriesFirstTheirNextsLastAndNothingThatStaysTheSame) {
  const Program program = parsed(
      "%2 = loop {length = 4} : i32[]\n%3 = item %2, %0 : f32[8]\n%4 = negate %1 : f32[8,8]\n"
      "%5 = loop {length = 2} : i32[]\n%6 = carry %5, %3 : f32[8]\n%7 = tanh %4 : f32[8,8]\n"
      "%8 = dot_general %6, %7 {contracting = [0] x [0]} : f32[8]\n"
      "%9 = next %5, %6, %8 : f32[8]\n%10 = carry %2, %0 : f32[4,8]\n"
      "%11 = next %2, %10, %10 : f32[4,8]\n%12 = stack %2, %9 {length = 4} : f32[4,8]\n"
      "%13 = add %11, %12 : f32[4,8]",
      "%13");
  using enum OpKind;
  const Program made = canonicalize(program, true);
  verify(made, kMesh);
  EXPECT_EQ(kinds(made), (std::vector{negate, tanh, loop, carry, item, loop, carry, dot_general,
                                      next, stack, next, add}));
}

TEST(Loops, DontLendValuesToWhatFollows) {
  // The second transpose equals the first, which is moved before the loop, so one of them is
  // enough.
  const Program program = parsed(
      "%2 = loop {length = 3} : i32[]\n%3 = carry %2, %0 : f32[4,8]\n"
      "%4 = transpose %1 {perm = [1, 0]} : f32[8,8]\n"
      "%5 = dot_general %3, %4 {contracting = [1] x [0]} : f32[4,8]\n"
      "%6 = next %2, %3, %5 : f32[4,8]\n%7 = transpose %1 {perm = [1, 0]} : f32[8,8]\n"
      "%8 = dot_general %6, %7 {contracting = [1] x [0]} : f32[4,8]",
      "%8");
  const Program made = canonicalize(program, true);
  verify(made, kMesh);
  EXPECT_EQ(std::ranges::count(made.op_kinds, OpKind::transpose), 1);
  EXPECT_EQ(made.kind(0), OpKind::transpose);
}

TEST(Loops, AreShardedAlikeFromTheFirstCarryToTheLast) {
  Sharding rows = Sharding::closed();
  rows.dims[0] = kMesh.axis_atoms(0);
  for (const bool from_the_end : {false, true}) {
    Program program = parsed(kRecurrence, "%6");
    (from_the_end ? program.outputs[0].sharding : program.inputs[0].sharding) = rows;
    const std::vector<Sharding> homes = propagate(program, kMesh);
    for (const ValueId value : {0U, 3U, 4U, 5U, 6U}) {
      EXPECT_EQ(homes[value].dims[0], kMesh.axis_atoms(0)) << "%" << value;
    }
  }
}

/// Returns the kinds of the plan's steps.
std::vector<StepKind> steps(const Plan& plan) {
  std::vector<StepKind> kinds;
  for (const PlanStep& step : plan.steps) kinds.push_back(step.kind);
  return kinds;
}

TEST(Loops, ReshardWhatStaysTheSameOnce) {
  Program program = parsed(kRecurrence, "%6");
  program.inputs[0].sharding = Sharding::closed();
  program.inputs[0].sharding.dims[0] = kMesh.axis_atoms(0);
  program.inputs[1].sharding = Sharding::closed();
  program.inputs[1].sharding.dims[0] = kMesh.axis_atoms(0);
  const Plan plan = compile(program, kMesh, kCpuTarget);
  const auto loop = std::ranges::find(plan.program.op_kinds, OpKind::loop);
  const auto gather = std::ranges::find(plan.program.op_kinds, OpKind::all_gather);
  EXPECT_LT(gather, loop);
  EXPECT_EQ(std::ranges::count(plan.program.op_kinds, OpKind::all_gather), 1);
}

TEST(Loops, KeepACarryInOnePlace) {
  const Plan plan = compile(parsed(kRecurrence, "%6"), kMesh, kCpuTarget);
  using enum StepKind;
  EXPECT_EQ(steps(plan), (std::vector{begin, compute, loop, compute, repeat, compute}));
  ValueId carry = kNoId;
  ValueId next = kNoId;
  for (OpId op = 0; op < plan.program.num_ops(); ++op) {
    if (plan.program.kind(op) == OpKind::carry) carry = plan.program.result(op);
    if (plan.program.kind(op) == OpKind::next) next = plan.program.result(op);
  }
  EXPECT_EQ(plan.slots[carry].offset, plan.slots[next].offset);
  // The temporaries are the carry, the product and tanh's result. tanh may not overwrite its
  // operand, because `next` copies the result.
  EXPECT_EQ(plan.temp_bytes, 64U + 3 * 128U);
}

TEST(Loops, RefuseAPlanThatRunsThemOtherwise) {
  const auto refuses = [](std::string_view word, auto edit) {
    Plan plan = compile(parsed(kRecurrence, "%6"), kMesh, kCpuTarget);
    edit(plan);
    testing::expect_error(Errc::corrupt, {word}, [&] { verify(plan, kMesh); });
  };
  refuses("step 4: op 5 runs outside of its loop or branch",
          [](Plan& p) { p.steps.erase(p.steps.begin() + 4); });
  refuses("step 3 repeats the loop at op 0 before op 4",
          [](Plan& p) { std::swap(p.steps[3], p.steps[4]); });
  refuses("step 4 repeats the loop at op 1", [](Plan& p) { p.steps[4].first = 1; });
  refuses("begins a loop of 1 carries with 1 ops", [](Plan& p) { p.steps[0].count = 1; });
  refuses("step 1 begins op 2, which isn't a loop",
          [](Plan& p) { p.steps[1].kind = StepKind::begin; });
  refuses("isn't where its carry", [](Plan& p) { p.slots[p.program.result(4)].offset += 64; });
  refuses("step 0: op 0 runs outside of its loop", [](Plan& p) {
    p.steps[0] = {StepKind::compute, 0, 1};
  });
}

TEST(Loops, ShareNoGatheredValues) {
  // Each iteration gathers the weights that it uses.
  Program program = parsed(
      "%2 = loop {length = 4} : i32[]\n%3 = item %2, %0 : f32[8]\n%4 = tanh %3 : f32[8]\n"
      "%5 = sharding_constraint %4 {sharding = [{}]} : f32[8]\n"
      "%6 = dot_general %5, %1 {contracting = [0] x [0]} : f32[8]\n"
      "%7 = stack %2, %6 {length = 4} : f32[4,8]",
      "%7");
  program.inputs[0].sharding = Sharding::closed();
  program.inputs[0].sharding.dims[1] = kMesh.axis_atoms(0);
  const Plan plan = compile(program, kMesh, testing::cpu_target_with({.shared_bytes_min = 0}));
  const Loops loops(plan.program);
  int gathers = 0;
  for (OpId op = 0; op < plan.program.num_ops(); ++op) {
    if (plan.program.kind(op) != OpKind::all_gather) continue;
    gathers += loops.of_op(op) != kNoId ? 1 : 0;
    EXPECT_EQ(plan.slots[plan.program.result(op)].place, Place::temp);
  }
  EXPECT_EQ(gathers, 1);
}

}  // namespace
}  // namespace weft::loops_test
