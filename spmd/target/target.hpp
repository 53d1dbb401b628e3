#pragma once
/// Target: the properties of a kind of chip that the compiler needs. Each kind defines its own
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

/// The time to compute one element in a fused loop, given as the number of bytes that the chip can
/// move to or from memory in this time. If it is negative, such elements are never computed again.
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

/// The properties of a kind of chip. All fields are required, so that none is forgotten for a new
/// kind of chip.
struct Target {
  /// A threshold with this value is never reached, because no value has so many bytes.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// Identifies the target. The names of stored plans contain it.
  std::string_view name;
  /// The number of elements in a tile of a loop that runs several elementwise ops. If it is 0, the
  /// chip has no such loops: each op runs alone and stores its result in memory.
  std::int64_t tile_elements;
  /// The dtypes for which loops of elementwise ops are compiled to machine code. Values of other
  /// dtypes aren't computed again.
  DTypeSet compiled_dtypes;
  ElementCosts element_costs;
  /// A loop computes a value of another loop again instead of reading it if the value has at least
  /// this many bytes and computing it costs less than reading it (recompute.hpp).
  std::int64_t recomputed_bytes_min;
  /// True if convolutions and pools are faster with their features in the last dim
  /// (channels_last.hpp).
  bool features_last;
  /// An all_gather's result of at least this many bytes is shared: each chip stores its part once
  /// for all chips. A reduce_scatter's operand of at least this many bytes is read in place
  /// (shared.hpp), and optimizer state of at least this many bytes is sharded. Smaller values are
  /// copied, because that costs less than the barrier that sharing needs. kNever: chips can't
  /// address each other's memory.
  std::int64_t shared_bytes_min;
  /// A collective between hosts runs during the steps up to its first reader if the work of these
  /// steps (bytes that they read and write, plus flops) is at least this. For less work, starting
  /// another thread takes more time than is saved. kNever: no step runs during a collective.
  std::int64_t overlap_work_min;
  /// Collectives between hosts that run at once keep at most so many bytes of operands and results,
  /// unless a single one has more. The time of a line for so many bytes is longer than what is
  /// gained by more.
  std::int64_t overlap_bytes_max;
  /// True if the host can address the chip's memory (Engine::host_address()).
  bool has_host_address;
  /// Says whether committed versions of the state survive the process that drives the chip, because
  /// they are in the arena. Otherwise a job can't continue after a worker has died, and can't be
  /// rescued.
  bool keeps_memory;
};

}  // namespace weft
