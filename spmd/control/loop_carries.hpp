#pragma once
/// Finds the carries of a loop that only accumulate addends, for partition().

#include <cstdint>
#include <span>
#include <vector>

#include "spmd/control/loops.hpp"

namespace weft {

/// An op that adds `addend` to a carry, and whose result is the carry's next value.
struct Accumulation {
  OpId op = 0;
  ValueId addend = kNoId;
};
/// Returns the accumulations of a loop whose carries are zero at first and are read only by the
/// addition and `next`. `use_count` has the number of uses of each value.
std::vector<Accumulation> accumulations(const Program& program, const LoopRange& range,
                                        std::span<const std::uint32_t> use_count);

}  // namespace weft
