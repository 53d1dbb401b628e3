#pragma once
/// Loops over several elementwise ops of a plan, that go over memory once.

#include <cstdint>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft {

/// Ops `first` .. `first + count - 1` of a chip's program: elementwise ones, of equally many
/// elements, with fills between them. They run as one loop over tiles of their elements: each op on
/// one tile, then each on the next. What only they read stays in the cache, and has no place in
/// memory.
struct FusedLoop {
  OpId first = 0;
  std::uint32_t count = 0;
};

/// All elementwise ops of the program, in the longest loops that its order allows.
std::vector<FusedLoop> fused_loops(const Program& chip_program);

/// By value: whether it needs no place in memory. An elementwise op's result that only its own loop
/// reads; a fill (Program::is_fill) that only elementwise ops read: each loop makes it for itself.
std::vector<bool> tiled_values(const Program& chip_program);

/// Buffers of one tile each, numbered from 0 in each loop, for the loops' values among `tiled`.
class TileBuffers {
 public:
  /// Both must outlive it.
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
  /// Of the values that the loop makes or reads, ascending: none for two at once. A fill has its
  /// own, as each tile reads it again.
  std::vector<Entry> of(const FusedLoop& loop);

 private:
  const Program& program_;
  const std::vector<bool>& tiled_;
  std::vector<std::uint32_t> buffer_of_;  // by value, of the loop that is at hand
  std::vector<OpId> last_read_;           // by value, kNoId before and after
};

}  // namespace weft
