#pragma once
/// BufferPool: allocates blocks in the arenas of a worker's chips, for data that outlives a run.

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

/// Blocks have the same offset on all of the worker's chips. A freed block is reused for blocks of
/// its size, oldest first. The loop's thread makes and uses the pool. Other threads may also free
/// blocks, because any thread may drop a tensor; such blocks can be used when the loop's thread
/// next allocates.
///
/// State (the tensors that a job keeps from step to step) has its own free lists. A freed block
/// holds a version to which the job may still return. It is reused when every chip has committed
/// the step after the one in which it was freed (commits.hpp).
///
/// Arrays have the same offset on the chips of all workers, as long as all workers allocate and
/// free the same arrays in the same order. Each worker frees its buffers at other times, so buffers
/// have a separate place: they grow up from the middle of an arena, and arrays grow down from its
/// end.
class BufferPool {
 public:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  /// Returns the range of a block for this number of bytes.
  static Range block(std::uint64_t offset, std::int64_t bytes);
  /// A function that makes a range usable on all of the worker's chips. Throws no_space.
  using Reserve = std::function<void(std::uint64_t offset, std::size_t bytes)>;
  /// A function that is called when no memory is free. Returns whether it may have freed blocks.
  using MakeRoom = std::function<bool()>;
  void on_no_room(MakeRoom make_room) { make_room_ = std::move(make_room); }
  /// Makes a pool that allocates from the beginning of `room`, around the ranges already `taken`.
  BufferPool(Range room, Reserve reserve, std::vector<Range> taken = {});

  /// The value of `host_writes_after` for blocks that only devices write.
  static constexpr std::uint64_t kDeviceWrites = ~std::uint64_t{0};
  /// Allocates a block; rounds `bytes` up to a multiple of 64. Devices execute runs in order, so a
  /// later run may get a block that a pending run still reads. If the host writes the block, all
  /// runs that used the block must have ended: for this, `host_writes_after` is the last run that
  /// has ended. Throws no_space.
  std::uint64_t allocate(std::int64_t bytes, std::uint64_t host_writes_after);
  /// Frees a block. `last_run` is the last run that reads or writes it.
  void free(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run);

  /// Sets the step in which blocks are allocated and freed from now on.
  void begin_step(std::uint64_t step) { step_ = step; }
  /// Allocates a block for state. A device may write it only after every chip has committed this
  /// step. Throws no_space.
  std::uint64_t allocate_state(std::int64_t bytes);
  /// Allocates a block for state that the host writes at once. All chips have committed
  /// `committed`. Throws no_space.
  std::uint64_t allocate_state_for_host(std::int64_t bytes, std::uint64_t committed,
                                        std::uint64_t host_writes_after);
  void free_state(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run);
  /// Frees the block of a version to which the job can't return since the earlier step `step`; a
  /// reader has kept the block until now. On a thread other than the loop's, does the same as
  /// free_state().
  void free_old_state(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run,
                      std::uint64_t step);

  /// Allocates an array. If the array at the lowest offset is freed, its memory is free for all
  /// uses; the memory of any other array is kept for arrays of the same size. An array must not be
  /// freed while a run uses it. Throws no_space.
  std::uint64_t allocate_array(std::int64_t bytes);
  void free_array(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run = 0);

 private:
  struct Block {
    std::uint64_t offset = 0;
    std::uint64_t last_run = 0;
    std::uint64_t step = 0;  ///< for a state block: the step in which it was freed
  };
  using FreeBlocks = std::map<std::int64_t, std::deque<Block>>;  // by size
  /// The arguments of a free(), free_state() or free_array() that another thread has called.
  struct Returned {
    void (BufferPool::*free)(std::uint64_t, std::int64_t, std::uint64_t);
    std::uint64_t offset = 0;
    std::int64_t bytes = 0;
    std::uint64_t last_run = 0;
  };
  /// If the caller isn't the loop's thread, queues the block and returns true.
  bool keep_returned(const Returned& block);
  void take_returned();
  template <typename Predicate>
  static std::optional<std::uint64_t> take(FreeBlocks& blocks, std::int64_t size,
                                           Predicate may_use);
  template <typename Predicate>
  std::uint64_t take_or_grow(FreeBlocks& blocks, std::int64_t bytes, Predicate may_use);
  std::optional<std::uint64_t> grow(std::int64_t size);
  [[noreturn]] void fail_no_room(const char* what, std::int64_t bytes) const;

  const Range room_;
  const Reserve reserve_;
  MakeRoom make_room_;
  std::uint64_t end_;
  std::uint64_t reserved_;
  std::uint64_t step_ = 0;
  std::vector<Range> gaps_;  // between the taken ranges, in order
  FreeBlocks free_;
  FreeBlocks free_state_;
  std::uint64_t arrays_;  // where the array with the lowest offset begins
  std::map<std::int64_t, std::deque<std::uint64_t>> free_arrays_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::mutex returned_mutex_;
  std::vector<Returned> returned_;         // queued by other threads
  std::atomic<bool> has_returned_{false};  // lets the loop's thread skip the mutex
};

}  // namespace weft
