#pragma once
/// Finds the elementwise ops of a plan that run in one loop, in one pass over memory.

#include <cstdint>
#include <span>
#include <vector>

#include "spmd/program/program.hpp"
#include "spmd/target/target.hpp"

namespace weft {

/// Ops `first` .. `first + count - 1` of a chip's program: elementwise ops with equal numbers of
/// elements, and fills and spreads (spread.hpp) between them. They run as one loop. A value that
/// only its own loop reads isn't stored in memory. The loop runs in one of two ways: as compiled
/// code that does all ops on a few elements at a time, or tile by tile, with all ops on one tile
/// before the next tile.
struct FusedLoop {
  OpId first = 0;
  std::uint32_t count = 0;
};

/// Divides all elementwise ops of the program into loops that are as long as the order of ops
/// allows. A loop ends before each op in `borders`, which is sorted. Returns no loops if the target
/// doesn't have loops.
std::vector<FusedLoop> fused_loops(const Program& chip_program, const Target& target,
                                   std::span<const OpId> borders = {});

/// Returns for each value whether it needs no place in memory. Such a value isn't an output of the
/// program, and is one of these: an elementwise op's result that only its own loop reads; a fill,
/// spread or view that only loops read; a view that other ops read in place. If the target has no
/// loops, all values need a place.
std::vector<bool> tiled_values(const Program& chip_program, const Target& target,
                               std::span<const OpId> borders = {});

/// Assigns the `tiled` values of each loop to buffers of one tile each, numbered from 0.
class TileBuffers {
 public:
  /// The program and `tiled` must outlive this object.
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
  /// Returns the buffers of the tiled values that the loop makes or reads, sorted by value. Values
  /// that live at the same time get different buffers. A fill or a spread never shares its buffer,
  /// because it is needed for every tile.
  std::vector<Entry> of(const FusedLoop& loop);

 private:
  const Program& program_;
  const std::vector<bool>& tiled_;
  std::vector<std::uint32_t> buffer_of_;  // by value: buffer in the current loop
  std::vector<OpId> last_read_;           // indexed by value; kNoId outside of of()
};

}  // namespace weft
