#pragma once
/// CpuPlan: a plan prepared for a chip that is a CPU thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "chips/cpu/cpu_target.hpp"
#include "chips/cpu/jit/chain_code.hpp"
#include "chips/cpu/loops/kernel.hpp"
#include "chips/engine/engine.hpp"
#include "spmd/fusion/spread.hpp"
#include "transport/collectives/communicator.hpp"

namespace weft {

struct CpuPlan final : LoadedPlan {
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  /// The location of a value. A tile is in the executor's scratch memory; all other values are in
  /// the arena of chip number `chip` of the job's memory.
  struct Operand {
    Place place = Place::temp;
    int chip = 0;
    std::uint64_t offset = 0;      ///< offset in this memory; for an input or output, its number
    std::uint64_t within = 0;      ///< for an input or output: offset in its buffer
    std::uint64_t tile_bytes = 0;  ///< in a fused loop: distance between tiles; 0 for a tile buffer
  };
  struct Step {
    kernels::Kernel kernel{};
    std::array<Operand, kOperandCountMax> operands{};
    std::array<bool, kOperandCountMax> is_fill{};  ///< as in KernelArgs; only in a fused loop
    int num_operands = 0;
    Operand result{};
    std::int32_t chain = -1;  ///< in a fused loop: index in its `chains`; -1: runs the kernel
    std::int32_t call = -1;   ///< index in `calls`
    bool goes_on = false;     ///< the call runs on during the next steps, up to its wait
    bool waits = false;       ///< the step waits for an earlier call that `goes_on`
    std::int32_t loop = -1;   ///< index in `loops`
    /// Index in `ranges` of a loop of the program, or -1. The loop begins with this step, or ends
    /// with it if `repeats`. If `call`, `loop` and `range` are all -1, the step runs its kernel.
    std::int32_t range = -1;
    bool repeats = false;
    /// The step with which to continue if the kernel's result, of type pred[], is false. kNever:
    /// always continue with the next step.
    std::size_t unless_holds = kNever;
    std::uint32_t text = 0;  ///< number of the step's text in the black box
  };
  /// Several ops of a fused loop, compiled to machine code.
  struct Chain {
    std::shared_ptr<const jit::ChainCode> code{};
    std::vector<Operand> streams{};
  };
  /// A spread (spread.hpp). The fused loop writes each tile of it before the steps that read it.
  struct SpreadTile {
    Spread spread{};
    std::size_t element_bytes = 0;
    Operand from{};
    Operand to{};
  };
  /// A reduce_scatter's result. The fused loop computes each tile of it before the steps that read
  /// it.
  struct AddedTile {
    DType dtype = DType::f32;
    std::vector<Operand> addends{};
    Operand to{};
  };
  /// A fused loop. It writes one tile of each fill that kernels read, then runs its steps tile by
  /// tile. If it consists of one chain, it may run over all elements at once.
  struct FusedLoop {
    std::vector<Chain> chains;
    std::vector<Step> fills;
    std::vector<Step> steps;
    std::vector<SpreadTile> spreads;
    std::vector<AddedTile> sums;
    std::int64_t num_elements = 0;
    std::int64_t columns = 0;       ///< row size if it runs over all elements at once, else 0
    std::size_t scratch_bytes = 0;  ///< bytes for all tiles of the loop
  };
  /// A loop of the program, such as a scan.
  struct Range {
    Operand number{};         ///< i32 number of the iteration
    std::int64_t length = 1;  ///< number of iterations; 0 if a test ends the loop
    bool reversed = false;
    std::size_t body = 0;  ///< the first step of an iteration
  };
  /// The number of elements in a tile.
  static constexpr std::int64_t kTileSize = kCpuTarget.tile_elements;

  /// An output in Plan::held. It is in the executor's memory until the update_wait.
  struct Held {
    std::size_t output = 0;
    std::size_t offset = 0;  ///< offset in the executor's memory
    std::size_t bytes = 0;
  };
  std::vector<Step> steps;
  std::vector<PreparedCall> calls;
  /// Indexed by call: whether the chip meets its twins on all other hosts in the call. Empty if
  /// there are no other hosts.
  std::vector<bool> meets_hosts;
  std::vector<FusedLoop> loops;
  std::vector<Range> ranges;
  std::size_t scratch_bytes = 0;
  std::vector<int> shared_in;  ///< chips in whose arenas this chip stores shared values
  /// The index of the step after the plan's update_wait. It is the number of steps if the
  /// update_wait is the last step, and kNever if the plan has no update_wait.
  std::size_t first_update = kNever;
  std::vector<Held> held;
  std::size_t num_inputs = 0;
  std::size_t num_outputs = 0;
  mutable std::uint64_t runs = 0;  ///< number of begun runs, counted on the chip's thread
};

/// Prepares `plan`. With `checks`, kernels check for NaN and infinity. `shared_begin` is the offset
/// of the region of shared values in every arena. The texts of the steps are added to `events`.
/// Throws mesh_mismatch if the plan is for another mesh, corrupt if verify() refuses it,
/// unavailable for an op without a kernel, and the errors of Communicator::prepare().
CpuPlan load_plan(const Plan& plan, const kernels::ChipContext& chip, Communicator& communicator,
                  std::uint64_t shared_begin, const EventWriter& events, bool checks = false);

}  // namespace weft
