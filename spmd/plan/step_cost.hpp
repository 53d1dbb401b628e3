#pragma once
/// Computes the cost of a plan's step for the chip that runs it: arithmetic and bytes, derived only
/// from the types of its values. The cost doesn't include additional work that a kernel may do, so
/// it is a lower bound to which kernels are compared.

#include <cstdint>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// The cost of one execution.
struct StepCost {
  /// A multiplication and an addition in a product count as 2. An elementwise op counts 1 for each
  /// element. A composite counts as its primitives, and attention as its products alone. Ops that
  /// convert, move or make elements count 0. So does a custom_call, because its work is unknown.
  std::int64_t flops = 0;
  /// Each value counts once, however often it is used. An op that reads a part of a value counts
  /// only the part. Values without memory (tiles of a loop) aren't counted.
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  std::int64_t traffic_bytes = 0;  ///< the traffic of a collective; see traffic_bytes()
  std::int64_t dcn_bytes = 0;      ///< the bytes that the chip's host sends to other hosts
  DType dtype = DType::f32;        ///< the dtype in which the step multiplies

  std::int64_t bytes() const { return read_bytes + written_bytes; }
  void add(const StepCost& other, std::int64_t times = 1);
  friend bool operator==(const StepCost&, const StepCost&) = default;
};

/// Returns the cost of each step. Barriers, waits and the ends of loops and branches cost nothing.
std::vector<StepCost> step_costs(const Plan& plan, const Mesh& mesh);

/// Returns how often a run executes each step. Steps of a loop run once per iteration (once in all
/// if its length is unknown), and both branches of a cond count as run.
std::vector<std::int64_t> step_counts(const Plan& plan);

/// Returns the cost of a run: the sum of each step's cost times its number of executions.
StepCost run_cost(const Plan& plan, const Mesh& mesh);

/// Returns the cost of one op that runs alone, on a chip of this mesh.
StepCost op_cost(const Program& program, OpId op, const Mesh& mesh);

/// Returns the bytes that each chip of a group of n = `group` chips reads from or writes for
/// others: 2 (n - 1) / n of an all_reduce's operand, and (n - 1) / n for other collectives.
double traffic_bytes(OpKind kind, std::int64_t bytes, int group);

}  // namespace weft
