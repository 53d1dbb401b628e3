#pragma once
/// Prepares a plan's fused loops of elementwise ops, for a chip that is a CPU thread.

#include <functional>

#include "chips/cpu/cpu_plan.hpp"

namespace weft {

/// The plan, as load_loop() reads it.
struct LoopSource {
  const Plan& plan;
  std::function<CpuPlan::Operand(ValueId)> operand{};  ///< returns the place of a value on the chip
  /// Returns the operands that a loop adds up, in this order, to get the result of a
  /// reduce_scatter.
  std::function<std::vector<CpuPlan::Operand>(ValueId)> addends{};
  std::function<CpuPlan::Step(OpId)> step{};  ///< returns an op with its kernel
  bool checks = false;                        ///< whether kernels check for NaN and infinity
  bool compiles = false;                      ///< whether ops are compiled together to machine code
};

/// Returns the fused loop of the plan's step number `step`.
CpuPlan::FusedLoop load_loop(const LoopSource& source, std::size_t step);

}  // namespace weft
