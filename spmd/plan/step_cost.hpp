#pragma once
/// Computes the cost of a plan's step for the chip that runs it: arithmetic and bytes, derived only
/// from the types of its values. The cost doesn't include additional work that a kernel may do, so
/// it is a lower bound for kernels.

#include <cstdint>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// The cost of one execution of a step.
struct StepCost {
  /// A multiply-add of a product counts 2, and an elementwise op counts 1 for each element. A
  /// composite counts as much as its primitives, but attention only as much as its products. Ops
  /// that convert, move or make elements count 0, and so does a custom_call, because its work is
  /// unknown.
  std::int64_t flops = 0;
  /// Each value counts once, however often it is used. If an op reads only a part of a value, only
  /// that part counts. Values without memory (tiles of a loop) aren't counted.
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

/// Returns how often each step runs in a run of the plan. A loop of unknown length counts as one
/// iteration, and both branches of a cond count as run.
std::vector<std::int64_t> step_counts(const Plan& plan);

/// Returns the cost of a run: the sum of each step's cost times its number of executions.
StepCost run_cost(const Plan& plan, const Mesh& mesh);

/// Returns the cost of one op that runs alone, on a chip of this mesh.
StepCost op_cost(const Program& program, OpId op, const Mesh& mesh);

/// Returns the bytes that each chip of a group of n = `group` chips reads from or writes for
/// others: `bytes` times 2 (n - 1) / n for an all_reduce, and times (n - 1) / n for other
/// collectives.
double traffic_bytes(OpKind kind, std::int64_t bytes, int group);

}  // namespace weft
