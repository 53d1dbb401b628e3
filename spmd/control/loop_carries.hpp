#pragma once
/// Answers questions of partition() about the carries of a loop.

#include <cstdint>
#include <span>
#include <vector>

#include "spmd/control/loops.hpp"

namespace weft {

/// An addition `op` that adds `addend` to a carry. Its result is the next value of the carry.
struct Accumulation {
  OpId op = 0;
  ValueId addend = kNoId;
};
/// Returns the accumulations of a loop. Their carries begin as zeros, and only the addition and
/// `next` read them. `use_count` has the number of uses of each value.
std::vector<Accumulation> accumulations(const Program& program, const LoopRange& range,
                                        std::span<const std::uint32_t> use_count);

}  // namespace weft
