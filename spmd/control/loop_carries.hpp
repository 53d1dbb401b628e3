#pragma once
/// Questions that partition() asks about the carries of a loop.

#include <cstdint>
#include <span>
#include <vector>

#include "spmd/control/loops.hpp"

namespace weft {

/// An addition whose result is the next value of a carry, and what it adds to that.
struct Accumulation {
  OpId op = 0;
  ValueId addend = kNoId;
};
/// The carries of a loop that are sums: they begin as zeros, and only the addition reads them.
/// `use_count`: by value.
std::vector<Accumulation> accumulations(const Program& program, const LoopRange& range,
                                        std::span<const std::uint32_t> use_count);

}  // namespace weft
