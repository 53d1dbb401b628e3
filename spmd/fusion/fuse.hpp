#pragma once
/// Loops that run several elementwise ops of a plan in one pass over memory.

#include <cstdint>
#include <vector>

#include "spmd/program/program.hpp"
#include "spmd/target/target.hpp"

namespace weft {

/// Ops `first` .. `first + count - 1` of a chip's program: elementwise ops with equal numbers of
/// elements, and fills and spreads (spread.hpp) between them. They run as one loop, whose values
/// that nothing else reads have no place in memory: as code that does all ops on a few elements, or
/// over tiles, all ops on one tile, then all on the next.
struct FusedLoop {
  OpId first = 0;
  std::uint32_t count = 0;
};

/// All elementwise ops of the program, in the longest loops that the order of ops allows. None if
/// the target has no such loops.
std::vector<FusedLoop> fused_loops(const Program& chip_program, const Target& target);

/// By value: whether it needs no place in memory. Such a value is no output, and is either an
/// elementwise op's result that only its own loop reads, or a fill, spread or view that only loops
/// read, which make it for themselves; or a view that other ops read where it lies. All values need
/// one if the target has no loops.
std::vector<bool> tiled_values(const Program& chip_program, const Target& target);

/// Assigns the `tiled` values of each loop to buffers of one tile each, numbered from 0.
class TileBuffers {
 public:
  /// Both arguments must outlive this object.
  TileBuffers(const Program& chip_program, const std::vector<bool>& tiled)
      : program_(chip_program),
        tiled_(tiled),
        buffer_of_(chip_program.num_values()),
        last_read_(chip_program.num_values(), kNoId) {}

  struct Entry {
    ValueId value = 0;
    std::uint32_t buffer = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  /// Buffers of the tiled values that the loop makes or reads, sorted by value. Values that live at
  /// once get different buffers. A fill's buffer is its own, since every tile reads it; a spread's
  /// too.
  std::vector<Entry> of(const FusedLoop& loop);

 private:
  const Program& program_;
  const std::vector<bool>& tiled_;
  std::vector<std::uint32_t> buffer_of_;  // by value, for the current loop
  std::vector<OpId> last_read_;           // by value; kNoId outside of of()
};

}  // namespace weft
