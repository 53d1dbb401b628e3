#pragma once
/// LoadedPlan: a plan made ready for one chip.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <weft/actors/device/executor.hpp>
#include <weft/actors/device/kernels/kernel.hpp>

namespace weft {

/// Movable only: the calls refer to the names.
class LoadedPlan {
 public:
  LoadedPlan() = default;
  LoadedPlan(LoadedPlan&&) = default;

  struct Step {
    kernels::Kernel kernel{};
    std::array<Slot, kernels::kOperandCountMax> operands{};
    int num_operands = 0;
    Slot result{};
    std::int32_t call = -1;  ///< index in `calls`; -1: the kernel is run
  };

  std::vector<Step> steps;
  std::vector<CollectiveCall> calls;  ///< their names lie in `names`
  std::vector<std::string> names;
  std::size_t scratch_bytes = 0;
  std::size_t num_inputs = 0;
  std::size_t num_outputs = 0;
};

/// Throws mesh_mismatch where the plan is for another mesh, corrupt where it doesn't verify,
/// unavailable for an op without a kernel.
LoadedPlan load_plan(const Plan& plan, const kernels::ChipContext& chip);

}  // namespace weft
