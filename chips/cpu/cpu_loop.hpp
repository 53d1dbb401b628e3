#pragma once
/// The loops over elementwise ops of a plan, as a chip that is a CPU thread runs them.

#include <functional>

#include "chips/cpu/cpu_plan.hpp"

namespace weft {

/// What load_loop() has to know of the plan that is loaded.
struct LoopSource {
  const Plan& plan;
  std::function<CpuPlan::Operand(ValueId)> operand{};  ///< where the chip finds a value
  /// Those of a reduce_scatter's result that loops add, in their order.
  std::function<std::vector<CpuPlan::Operand>(ValueId)> addends{};
  std::function<CpuPlan::Step(OpId)> step{};  ///< an op with its kernel
  bool checks = false;                        ///< kernels look at their values
  bool compiles = false;                      ///< ops become machine code together
};

/// The fused loop of the plan's step number `step`.
CpuPlan::Loop load_loop(const LoopSource& source, std::size_t step);

}  // namespace weft
