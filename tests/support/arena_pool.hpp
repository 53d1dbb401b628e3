#pragma once
/// A BufferPool that allocates in the arenas of some chips.

#include <utility>
#include <vector>

#include "actors/runtime/buffer_pool.hpp"
#include "transport/job/job_memory.hpp"

namespace weft::testing {

struct ArenaPool : BufferPool {
  ArenaPool(JobMemory& memory, std::vector<int> chips, std::vector<Range> taken = {})
      : BufferPool(
            {memory.buffers_offset(), memory.arena_capacity()},
            [&memory, chips = std::move(chips)](std::uint64_t offset, std::size_t bytes) {
              for (const int chip : chips) memory.reserve(chip, offset, bytes);
            },
            std::move(taken)) {}
};

}  // namespace weft::testing
