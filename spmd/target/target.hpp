#pragma once
/// Target: the facts about a kind of chip that the compiler needs. Each kind defines its own
/// target; the CPU's is in chips/cpu/cpu_target.hpp. The registry of kinds (chips/registry) lists
/// all targets.

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>

#include <weft/tensor/type.hpp>

#include "spmd/target/cost.hpp"

namespace weft {

/// A set of dtypes.
class DTypeSet {
 public:
  constexpr DTypeSet(std::initializer_list<DType> dtypes) {
    for (const DType dtype : dtypes) bits_ |= bit(dtype);
  }
  constexpr bool has(DType dtype) const { return (bits_ & bit(dtype)) != 0; }

 private:
  static constexpr std::uint32_t bit(DType dtype) { return 1U << static_cast<unsigned>(dtype); }
  std::uint32_t bits_ = 0;
};

/// The time to compute one element in a fused loop, expressed as the bytes that the chip can move
/// to or from memory in that time. If it is negative, no loop computes such an element again.
struct ElementCosts {
  double simple;
  double division;
  double function;
  double long_function;
  double half_result;  ///< added if the result is bf16 or f16, for the rounding

  constexpr double of(Work work) const {
    switch (work) {
      case Work::simple: return simple;
      case Work::division: return division;
      case Work::function: return function;
      case Work::long_function: return long_function;
    }
    return -1;
  }
};

/// The facts about a kind of chip. All fields are required, so that no fact about a new kind of
/// chip is forgotten.
struct Target {
  /// A number of bytes that no value has. A threshold with this value is never reached.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// Identifies the target. The names of stored plans contain it.
  std::string_view name;
  /// The number of elements in a tile of a loop that runs several elementwise ops. With 0, the chip
  /// has no such loops: each op runs alone, and its result is in memory.
  std::int64_t tile_elements;
  /// The dtypes for which loops of elementwise ops are compiled to machine code. Values of other
  /// dtypes aren't computed again.
  DTypeSet compiled_dtypes;
  ElementCosts element_costs;
  /// A loop computes a value of another loop again instead of reading it, if the value has at least
  /// this many bytes and if the computation costs less than the reading (recompute.hpp).
  std::int64_t recomputed_bytes_min;
  /// Says whether convolutions and pools are faster with their features in the last dim
  /// (channels_last.hpp).
  bool features_last;
  /// An all_gather's result of at least this many bytes is shared: each chip stores its part once
  /// for all chips. A reduce_scatter's operand of at least this many bytes is read in place
  /// (shared.hpp). Optimizer state of at least this size is sharded. For fewer bytes, copying costs
  /// less than the barrier at the end. kNever: chips can't address each other's memory.
  std::int64_t shared_bytes_min;
  /// A collective between hosts goes on beside the steps up to its first reader if their work, the
  /// bytes that they read and write plus their flops, is at least this. For less work, the start of
  /// another thread costs more than it gains. kNever: the chip waits for each collective at once.
  std::int64_t overlap_work_min;
  /// Says whether the host can address the chip's memory (Engine::host_address()).
  bool has_host_address;
  /// Says whether the chip's memory survives the process that drives the chip. Otherwise a job
  /// can't continue after a worker has died, and can't be rescued.
  bool keeps_memory;
};

}  // namespace weft
