// Adds faults to random programs, of the kinds that random tests look for, and expects that
// shrink() reduces a program to the part that shows the fault.

#include "tests/support/shrink.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/control/loops.hpp"
#include "spmd/ops/verify.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/reference/interpret.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/random_program.hpp"

namespace weft::shrink_test {
namespace {

using testing::Fails;
using testing::Random;
using testing::random_program;
using testing::shrink;
using testing::small_integers;

const Mesh kMesh({2, 2}, {"a", "b"});

/// Returns whether any of a few random inputs shows the fault; a single one may hide it.
bool for_some_inputs(const Program& program,
                     const std::function<bool(const std::vector<Elements>&)>& differs) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Random random(seed);
    if (differs(small_integers(program, random))) return true;
  }
  return false;
}

const std::vector<OpKind>& kinds(const Program& program) { return program.op_kinds; }

int num_atoms(const Program& program) {
  int count = 0;
  const auto add = [&](const Sharding& sharding) {
    for (const AtomList atoms : sharding.dims) count += atoms.size();
  };
  for (const ProgramInput& input : program.inputs) add(input.sharding);
  for (const ProgramOutput& output : program.outputs) add(output.sharding);
  for (const Sharding& constraint : program.constraints) add(constraint);
  return count;
}

/// Makes random programs until `count` of them fail, shrinks each of these, and passes it to
/// `expect`.
template <typename Expect>
void for_shrunk(int count, const Fails& fails, const Expect& expect) {
  std::uint32_t most_ops = 0;
  for (std::uint64_t seed = 0; count > 0; ++seed) {
    ASSERT_LT(seed, 100000U) << "too few programs fail";
    Random random(seed);
    const Program program = random_program(kMesh, random);
    if (!fails(program)) continue;
    --count;
    most_ops = std::max(most_ops, program.num_ops());
    const Program left = shrink(program, fails);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, to_text(left, kMesh)));
    verify(left, kMesh);
    EXPECT_TRUE(fails(left));
    ASSERT_NO_FATAL_FAILURE(expect(left));
  }
  EXPECT_GT(most_ops, 15U);
}

bool is_of_range(OpKind kind) {
  return begins_range(kind) || is_border(kind) || is_cond_border(kind);
}

/// Swaps the operands of each subtract, as a wrong evaluator would.
Program with_swapped_subtractions(Program program) {
  for (OpId op = 0; op < program.num_ops(); ++op) {
    const std::uint32_t first = program.operand_begin[op];
    if (program.kind(op) == OpKind::subtract) {
      std::swap(program.operands[first], program.operands[first + 1]);
    }
  }
  return program;
}

TEST(Shrink, LeavesTheOneOpThatIsEvaluatedWrongly) {
  const Fails fails = [](const Program& program) {
    return for_some_inputs(program, [&](const std::vector<Elements>& inputs) {
      return interpret(program, inputs) != interpret(with_swapped_subtractions(program), inputs);
    });
  };
  for_shrunk(50, fails, [](const Program& left) {
    // Ops of loops may remain too, because some faults show only in a second iteration.
    std::vector<OpKind> others = kinds(left);
    std::erase_if(others, is_of_range);
    EXPECT_EQ(others, std::vector{OpKind::subtract});
    EXPECT_EQ(left.outputs.size(), 1U);
    EXPECT_EQ(num_atoms(left), 0);
  });
}

/// Replaces sums of partial results over chips by maxima.
Plan with_maxima_for_sums(Plan plan) {
  for (OpId op = 0; op < plan.program.num_ops(); ++op) {
    const OpKind kind = plan.program.kind(op);
    if (kind != OpKind::all_reduce && kind != OpKind::reduce_scatter) continue;
    plan.program.attrs[plan.program.attr_begin[op] + 1] =
        static_cast<std::int64_t>(ReduceKind::max);
  }
  return plan;
}

TEST(Shrink, LeavesTheShardedSumThatIsPartitionedWrongly) {
  const Fails fails = [](const Program& program) {
    const Plan plan = with_maxima_for_sums(compile(program, kMesh, kCpuTarget));
    return for_some_inputs(program, [&](const std::vector<Elements>& inputs) {
      return simulate(plan.program, kMesh, plan.input_types, plan.output_types, inputs) !=
             interpret(program, inputs);
    });
  };
  for_shrunk(50, fails, [](const Program& left) {
    const auto of_loops = std::ranges::count_if(left.op_kinds, is_of_range);
    EXPECT_LE(left.num_ops() - of_loops, 3);
    EXPECT_GE(num_atoms(left), 1);
  });
}

TEST(Shrink, LeavesTwoOpsWhereOneReadsTheOther) {
  const Fails fails = [](const Program& program) {
    for (OpId op = 0; op < program.num_ops(); ++op) {
      if (program.kind(op) != OpKind::transpose) continue;
      const OpId read = program.defining_op(program.op_operands(op)[0]);
      if (read != kNoId && program.kind(read) == OpKind::reduce) return true;
    }
    return false;
  };
  for_shrunk(20, fails, [](const Program& left) {
    EXPECT_EQ(kinds(left), (std::vector{OpKind::reduce, OpKind::transpose}));
  });
}

TEST(Shrink, LeavesTheAtomsThatAFaultNeeds) {
  const Fails fails = [](const Program& program) {
    return std::ranges::any_of(
        program.inputs, [](const ProgramInput& input) { return input.sharding.used() == 0b110; });
  };
  for_shrunk(20, fails, [](const Program& left) {
    EXPECT_EQ(left.num_ops(), 0U);
    EXPECT_EQ(num_atoms(left), 2);
  });
}

}  // namespace
}  // namespace weft::shrink_test
