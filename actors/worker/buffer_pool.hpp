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
///
/// Arrays have the same offset on the chips of all workers, as long as these allocate and free the
/// same arrays in the same order. So they are apart from buffers, which each worker keeps as long
/// as it likes: buffers grow up from the middle of an arena, arrays down from its end.
class BufferPool {
 public:
  /// Grows from memory.buffers_offset() on.
  BufferPool(JobMemory& memory, std::vector<int> chips);

  /// For blocks that only devices write.
  static constexpr std::uint64_t kDeviceWrites = ~std::uint64_t{0};
  /// Bytes are rounded up to 64. Devices do runs in order, so a block that a pending run still
  /// reads can be given to a later run. A block that the host writes must have been left by all
  /// runs up to `host_writes_after`, the last that has ended. Throws no_space.
  std::uint64_t allocate(std::int64_t bytes, std::uint64_t host_writes_after);
  /// `last_run`: the last run that reads or writes the block.
  void free(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run);

  /// The last array's memory is free for all when it ends, another's for arrays of its size. No run
  /// under way may use an array that ends. Throws no_space.
  std::uint64_t allocate_array(std::int64_t bytes);
  void free_array(std::uint64_t offset, std::int64_t bytes);

 private:
  struct Block {
    std::uint64_t offset = 0;
    std::uint64_t last_run = 0;
  };
  [[noreturn]] void fail_no_room(const char* what, std::int64_t bytes) const;

  JobMemory& memory_;
  std::vector<int> chips_;
  std::uint64_t begin_;
  std::uint64_t end_;
  std::uint64_t reserved_;
  std::map<std::int64_t, std::deque<Block>> free_;  // by size
  std::uint64_t arrays_;                            // where the last begins
  std::map<std::int64_t, std::deque<std::uint64_t>> free_arrays_;
};

}  // namespace weft
