#pragma once
/// What a step of a plan costs the chip that runs it: arithmetic and bytes, by the types of its
/// values alone. Whatever a kernel does besides is its own affair, so that costs compare kernels
/// with what had to be done.

#include <cstdint>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Of one execution.
struct StepCost {
  /// A multiplication and an addition of a product are 2, an elementwise op is 1 for each element,
  /// whichever op it is. A composite is what its primitives are, attention its products alone. What
  /// converts, moves or makes elements is 0, and so is a custom_call, since nobody knows.
  std::int64_t flops = 0;
  /// Each value once, however often it is used. An op that takes a part reads as much as that has.
  /// Values that lie in no memory (tiles of a loop) aren't counted.
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  std::int64_t traffic_bytes = 0;  ///< of a collective; see traffic_bytes()
  DType dtype = DType::f32;        ///< in which the step multiplies

  std::int64_t bytes() const { return read_bytes + written_bytes; }
  void add(const StepCost& other, std::int64_t times = 1);
  friend bool operator==(const StepCost&, const StepCost&) = default;
};

/// Of each of the plan's steps. Barriers, waits and the ends of loops and branches cost nothing.
std::vector<StepCost> step_costs(const Plan& plan, const Mesh& mesh);

/// How often a run executes each of them: those of a loop as often as it iterates (without length:
/// once), and those of both branches of a cond.
std::vector<std::int64_t> step_counts(const Plan& plan);

/// Of a run: each step's cost, as often as it is executed.
StepCost run_cost(const Plan& plan, const Mesh& mesh);

/// Of one op that runs by itself, on a chip of this mesh.
StepCost op_cost(const Program& program, OpId op, const Mesh& mesh);

/// Bytes that each chip of a group of `group` reads of others or writes for them: of an all_reduce
/// 2 (n - 1) / n of its operand, of the others (n - 1) / n.
double traffic_bytes(OpKind kind, std::int64_t bytes, int group);

}  // namespace weft
