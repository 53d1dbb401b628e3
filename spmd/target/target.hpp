#pragma once
/// Target: what the compiler must know about a kind of chip. Each kind defines its own, the CPU in
/// chips/cpu/cpu_target.hpp; the registry of kinds (chips/registry) has them all.

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

/// The time for one element in a fused loop, in bytes: as many as the chip moves between memory and
/// the loop in that time. Negative: a loop computes no such element again.
struct ElementCosts {
  double simple = 0;
  double division = 0;
  double function = 0;
  double long_function = 0;
  double half_result = 0;  ///< is added if the result is bf16 or f16, for the rounding

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

/// All fields are required: a new kind of chip answers every question.
struct Target {
  /// A number of bytes that no value has: what a threshold turns on is never done.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// Identifies the target, among others in the names of stored plans.
  std::string_view name;
  /// Elements of a tile of a loop that runs several elementwise ops. 0: the chip has no such loops,
  /// each op runs by itself, and its result lies in memory.
  std::int64_t tile_elements;
  /// The dtypes that those loops compute as machine code. Others aren't computed again.
  DTypeSet compiled_dtypes;
  ElementCosts element_costs;
  /// A loop computes again what another one has made if it is at least this many bytes and that
  /// costs less (recompute.hpp).
  std::int64_t recomputed_bytes_min;
  /// Whether convolutions and pools are faster with their features in the last dim
  /// (channels_last.hpp).
  bool features_last;
  /// An all_gather's result of at least this many bytes is shared: every chip stores its part once,
  /// instead of once for each chip. A reduce_scatter's operand of at least this many is read where
  /// it lies (shared.hpp), and optimizer state is sharded from there on. Copying less costs less
  /// than a final barrier. kNever: chips can't address each other's memory.
  std::int64_t shared_bytes_min;
  /// Whether the host can address the chip's memory (Engine::host_address()).
  bool has_host_address;
  /// Whether the chip's memory stays when the process that drives the chip ends. Without it a job
  /// can't continue after a loss, and can't be rescued.
  bool keeps_memory;
};

}  // namespace weft
