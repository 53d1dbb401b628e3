#pragma once
/// BufferPool: places in the arenas of a worker's chips for what outlives a run.

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include <weft/transport/job_memory.hpp>

namespace weft {

/// Blocks have the same offset on all of the worker's chips. A freed block is used again for blocks
/// of its size, oldest first. Used by the loop's thread.
class BufferPool {
 public:
  /// Grows from memory.buffers_offset() on.
  BufferPool(JobMemory& memory, std::vector<int> chips);

  /// Bytes are rounded up to 64. Devices do runs in order, so a block that a pending run still
  /// reads can be given to a later run; the host may write only to what run `completed` and those
  /// before it have left: `host_writes_after` is that run, or kDeviceWrites. Throws no_space.
  std::uint64_t allocate(std::int64_t bytes, std::uint64_t host_writes_after);
  static constexpr std::uint64_t kDeviceWrites = ~std::uint64_t{0};
  /// `last_run`: the last run that reads or writes the block.
  void free(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run);

 private:
  struct Block {
    std::uint64_t offset = 0;
    std::uint64_t last_run = 0;
  };
  JobMemory& memory_;
  std::vector<int> chips_;
  std::uint64_t begin_;
  std::uint64_t end_;
  std::uint64_t reserved_;
  std::map<std::int64_t, std::deque<Block>> free_;  // by size
};

}  // namespace weft
