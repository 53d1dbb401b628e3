#pragma once
/// BufferPool: places in the arenas of a worker's chips for what outlives a run.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace weft {

/// Blocks have the same offset on all of the worker's chips. A freed block is used again for blocks
/// of its size, oldest first. Used by the thread that made it, the loop's; but blocks may be freed
/// by any thread, as tensors are let go by any: those of others wait until the loop's allocates.
///
/// State, what a job keeps from step to step, has blocks of its own: one that is freed in a step
/// holds a version that the job may still go back to, until every chip has committed the step after
/// (commits.hpp).
///
/// Arrays have the same offset on the chips of all workers, as long as these allocate and free the
/// same arrays in the same order. So they are apart from buffers, which each worker keeps as long
/// as it likes: buffers grow up from the middle of an arena, arrays down from its end.
class BufferPool {
 public:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  /// What a block of so many bytes takes.
  static Range block(std::uint64_t offset, std::int64_t bytes);
  /// Makes a range usable on all of the worker's chips. Throws no_space.
  using Reserve = std::function<void(std::uint64_t offset, std::size_t bytes)>;
  /// Grows from the beginning of `room` on, around what is `taken` already.
  BufferPool(Range room, Reserve reserve, std::vector<Range> taken = {});

  /// For blocks that only devices write.
  static constexpr std::uint64_t kDeviceWrites = ~std::uint64_t{0};
  /// Bytes are rounded up to 64. Devices do runs in order, so a block that a pending run still
  /// reads can be given to a later run. A block that the host writes must have been left by all
  /// runs up to `host_writes_after`, the last that has ended. Throws no_space.
  std::uint64_t allocate(std::int64_t bytes, std::uint64_t host_writes_after);
  /// `last_run`: the last run that reads or writes the block.
  void free(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run);

  /// What is allocated and freed from here on is in `step`.
  void begin_step(std::uint64_t step) { step_ = step; }
  /// A block for state that a device writes, no sooner than every chip has committed this step.
  /// Throws no_space.
  std::uint64_t allocate_state(std::int64_t bytes);
  /// A block for state that the host writes at once, when all chips have committed `committed`.
  std::uint64_t allocate_state_for_host(std::int64_t bytes, std::uint64_t committed,
                                        std::uint64_t host_writes_after);
  void free_state(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run);

  /// The last array's memory is free for all when it ends, another's for arrays of its size. No run
  /// under way may use an array that ends. Throws no_space.
  std::uint64_t allocate_array(std::int64_t bytes);
  void free_array(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run = 0);

 private:
  struct Block {
    std::uint64_t offset = 0;
    std::uint64_t last_run = 0;
    std::uint64_t step = 0;  ///< of state: in which it was freed
  };
  using FreeBlocks = std::map<std::int64_t, std::deque<Block>>;  // by size
  /// The oldest free block of the size, if it satisfies `may_use`.
  /// What free(), free_state() and free_array() are told.
  struct Returned {
    void (BufferPool::*free)(std::uint64_t, std::int64_t, std::uint64_t);
    std::uint64_t offset = 0;
    std::int64_t bytes = 0;
    std::uint64_t last_run = 0;
  };
  /// Whether this is another thread, for which it is kept.
  bool keep_returned(const Returned& block);
  void take_returned();
  template <typename Predicate>
  static std::optional<std::uint64_t> take(FreeBlocks& blocks, std::int64_t size,
                                           Predicate may_use);
  std::uint64_t grow(std::int64_t size);
  [[noreturn]] void fail_no_room(const char* what, std::int64_t bytes) const;

  const Range room_;
  const Reserve reserve_;
  std::uint64_t end_;
  std::uint64_t reserved_;
  std::uint64_t step_ = 0;
  std::vector<Range> gaps_;  // between what was taken, in order
  FreeBlocks free_;
  FreeBlocks free_state_;
  std::uint64_t arrays_;  // where the last begins
  std::map<std::int64_t, std::deque<std::uint64_t>> free_arrays_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::mutex returned_mutex_;
  std::vector<Returned> returned_;         // by other threads
  std::atomic<bool> has_returned_{false};  // a hint: what there is, is found under the mutex
};

}  // namespace weft
