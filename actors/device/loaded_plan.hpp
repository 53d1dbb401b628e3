#pragma once
/// LoadedPlan: a plan made ready for one chip.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <weft/actors/device/executor.hpp>
#include <weft/actors/device/kernels/kernel.hpp>

namespace weft {

struct LoadedPlan {
  /// Where a chip finds a value: in the arena of `chip`, a number in the job's memory.
  struct Operand {
    Place place = Place::temp;
    int chip = 0;
    std::uint64_t offset = 0;  ///< in the arena; of an input or output, its number
  };
  struct Step {
    kernels::Kernel kernel{};
    std::array<Operand, kernels::kOperandCountMax> operands{};
    int num_operands = 0;
    Operand result{};
    std::int32_t call = -1;  ///< index in `calls`; -1: the kernel is run
  };

  std::vector<Step> steps;
  std::vector<PreparedCall> calls;
  std::size_t scratch_bytes = 0;
  std::vector<int> shared_in;    ///< chips to whose arenas this one stores what it shares
  std::size_t first_update = 0;  ///< the first step that writes what updates an input
  std::size_t num_inputs = 0;
  std::size_t num_outputs = 0;
};

/// `shared_begin`: where the region of shared values begins in every arena. Throws mesh_mismatch
/// where the plan is for another mesh, corrupt where it doesn't verify,
/// unavailable for an op without a kernel; and what Communicator::prepare() throws.
LoadedPlan load_plan(const Plan& plan, const kernels::ChipContext& chip, Communicator& communicator,
                     std::uint64_t shared_begin);

}  // namespace weft
