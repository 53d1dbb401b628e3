#include <gtest/gtest.h>

#include "spmd/fusion/fuse.hpp"
#include "spmd/passes/recompute.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/reference/interpret.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/target.hpp"

namespace weft::recompute_test {
namespace {

const Mesh kMesh({1}, {"data"});

Program parsed(const std::string& body) {
  return parse_program(R"(program(%0: f32[64] data "x" [{}], %1: f32[64] param "p" [{}]) {
  %2 = reverse %0 {dims = [0]} : f32[64]
)" + body + "\n}",
                       kMesh);
}

/// Returns how many ops of the kind the program has after the pass. Expects that the program still
/// computes the same.
std::ptrdiff_t count_after(const Program& program, OpKind kind, std::int64_t bytes_min = 0) {
  const Program after =
      recompute_in_loops(program, testing::cpu_target_with({.recomputed_bytes_min = bytes_min}))
          .value_or(program);
  std::vector<Elements> inputs(program.inputs.size(), Elements(64));
  for (std::size_t i = 0; i < 64; ++i) {
    inputs[0][i] = static_cast<double>(i % 7) - 3;
    inputs[1][i] = static_cast<double>(i % 5);
  }
  EXPECT_EQ(interpret(after, inputs), interpret(program, inputs));
  return std::ranges::count(after.op_kinds, kind);
}

// In this program one loop makes %3 and another loop reads it.
constexpr const char* kSquare = R"(  %3 = multiply %2, %2 : f32[64]
  %4 = add %3, %2 : f32[64]
  %5 = reverse %4 {dims = [0]} : f32[64]
  %6 = multiply %3, %5 : f32[64]
  return %6 "y" [{}])";

TEST(Recompute, AValueThatAnotherLoopReads) {
  const Program program = parsed(kSquare);
  EXPECT_EQ(count_after(program, OpKind::multiply), 3);
  EXPECT_EQ(count_after(program, OpKind::multiply, 64 * 4 + 1), 2) << "too small";
}

TEST(Recompute, SavesTheMemoryOfAValue) {
  const Program program = parsed(kSquare);
  const Plan stored =
      compile(program, kMesh, testing::cpu_target_with({.recomputed_bytes_min = 1 << 20}));
  const Plan again = compile(program, kMesh, testing::cpu_target_with({.recomputed_bytes_min = 0}));
  const auto temporaries = [](const Plan& plan) {
    return std::ranges::count(plan.slots, Place::temp, &Slot::place);
  };
  EXPECT_EQ(temporaries(again), temporaries(stored) - 1);
}

TEST(Recompute, LeavesNoOpThatNobodyReads) {
  EXPECT_EQ(count_after(parsed(R"(  %3 = multiply %2, %2 : f32[64]
  %4 = reverse %2 {dims = [0]} : f32[64]
  %5 = add %3, %4 : f32[64]
  return %5 "y" [{}])"),
                        OpKind::multiply),
            1);
}

TEST(Recompute, NotWhatKeepsMoreMemoryThanItFrees) {
  // If the sum were recomputed, both of its operands would have to be stored for the last loop.
  EXPECT_EQ(count_after(parsed(R"(  %3 = reverse %2 {dims = [0]} : f32[64]
  %4 = add %2, %3 : f32[64]
  %5 = maximum %4, %1 : f32[64]
  %6 = reverse %5 {dims = [0]} : f32[64]
  %7 = reverse %6 {dims = [0]} : f32[64]
  %8 = multiply %4, %7 : f32[64]
  return %8 "y" [{}])"),
                        OpKind::add),
            1);
}

TEST(Recompute, ItsOperandsToo) {
  EXPECT_EQ(count_after(parsed(R"(  %3 = multiply %2, %2 : f32[64]
  %4 = add %3, %2 : f32[64]
  %5 = reverse %4 {dims = [0]} : f32[64]
  %6 = negate %3 : f32[64]
  %7 = add %6, %4 : f32[64]
  %8 = reverse %7 {dims = [0]} : f32[64]
  %9 = multiply %6, %2 : f32[64]
  %10 = add %9, %8 : f32[64]
  return %10 "y" [{}])"),
                        OpKind::multiply),
            4);
}

TEST(Recompute, NotWhatCostsMoreThanItsMemory) {
  // Storing and loading %3 takes a byte each per element; recomputing it would load four bytes.
  EXPECT_EQ(count_after(parsed(R"(  %3 = compare %2, %1 {direction = lt} : pred[64]
  %4 = select %3, %2, %1 : f32[64]
  %5 = reverse %4 {dims = [0]} : f32[64]
  %6 = select %3, %5, %5 : f32[64]
  return %6 "y" [{}])"),
                        OpKind::compare),
            1);
  const auto of_kind = [](const std::string& kind) {
    return parsed("  %3 = " + kind + " %2, %2 : f32[64]\n" + R"(  %4 = add %3, %2 : f32[64]
  %5 = reverse %4 {dims = [0]} : f32[64]
  %6 = multiply %3, %5 : f32[64]
  return %6 "y" [{}])");
  };
  EXPECT_EQ(count_after(of_kind("maximum"), OpKind::maximum), 2);
  EXPECT_EQ(count_after(of_kind("atan2"), OpKind::atan2), 1) << "isn't compiled";
}

TEST(Recompute, NotWhatIsInMemoryAnyway) {
  EXPECT_EQ(count_after(parsed(R"(  %3 = multiply %2, %2 : f32[64]
  %4 = reverse %3 {dims = [0]} : f32[64]
  %5 = multiply %3, %4 : f32[64]
  return %5 "y" [{}])"),
                        OpKind::multiply),
            2);
}

TEST(Recompute, NotFromAStateThatHasBeenUpdated) {
  const auto program = [](const char* last) {
    return parsed(std::string(R"(  %3 = add %1, %1 : f32[64]
  %4 = add %3, %2 : f32[64]
  %5 = reverse %4 {dims = [0]} : f32[64]
)") + last);
  };
  EXPECT_EQ(count_after(program(R"(  %6 = multiply %3, %5 : f32[64]
  %7 = reverse %6 {dims = [0]} : f32[64]
  %8 = negate %7 : f32[64]
  return %7 "y" [{}], %8 "p" [{}] updates 1)"),
                        OpKind::add),
            3);
  EXPECT_EQ(count_after(program(R"(  %6 = negate %5 : f32[64]
  %7 = reverse %6 {dims = [0]} : f32[64]
  %8 = multiply %3, %7 : f32[64]
  return %8 "y" [{}], %6 "p" [{}] updates 1)"),
                        OpKind::add),
            2);
}

}  // namespace
}  // namespace weft::recompute_test
