#include "actors/runtime/buffer_pool.hpp"

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/memory/huge_pages.hpp"

namespace weft {
namespace {

/// Returns the size of the pieces in which a pool of `bytes` bytes reserves memory. It is a huge
/// page, so that most steps make no system call. A small pool reserves half a huge page at a time,
/// because a complete one would be most of its memory.
std::uint64_t piece_bytes(std::uint64_t bytes) {
  return bytes <= kHugePageBytes / 2 ? kHugePageBytes / 2 : kHugePageBytes;
}

std::int64_t rounded(std::int64_t bytes) {
  return (std::max<std::int64_t>(bytes, 1) + 63) / 64 * 64;
}

}  // namespace

BufferPool::BufferPool(Range room, Reserve reserve, std::vector<Range> taken)
    : room_(room), reserve_(std::move(reserve)), end_(room.begin), arrays_(room.end) {
  std::ranges::sort(taken, {}, &Range::begin);
  for (const Range& range : taken) {
    if (range.begin > end_) gaps_.push_back({end_, range.begin});
    end_ = std::max(end_, range.end);
  }
  reserved_ = end_;
}

BufferPool::Range BufferPool::block(std::uint64_t offset, std::int64_t bytes) {
  return {offset, offset + static_cast<std::uint64_t>(rounded(bytes))};
}

template <typename Predicate>
std::optional<std::uint64_t> BufferPool::take(FreeBlocks& free, std::int64_t size,
                                              Predicate may_use) {
  auto& blocks = free[size];
  if (blocks.empty() || !may_use(blocks.front())) return {};
  const std::uint64_t offset = blocks.front().offset;
  blocks.pop_front();
  return offset;
}

bool BufferPool::keep_returned(const Returned& block) {
  if (std::this_thread::get_id() == owner_) return false;
  const std::lock_guard lock(returned_mutex_);
  returned_.push_back(block);
  has_returned_.store(true, std::memory_order_relaxed);
  return true;
}

void BufferPool::take_returned() {
  if (!has_returned_.load(std::memory_order_relaxed)) return;
  std::vector<Returned> returned;
  {
    const std::lock_guard lock(returned_mutex_);
    returned.swap(returned_);
    has_returned_.store(false, std::memory_order_relaxed);
  }
  for (const Returned& block : returned) {
    (this->*block.free)(block.offset, block.bytes, block.last_run);
  }
}

std::uint64_t BufferPool::allocate(std::int64_t bytes, std::uint64_t host_writes_after) {
  return take_or_grow(free_, bytes,
                      [&](const Block& block) { return block.last_run <= host_writes_after; });
}

std::uint64_t BufferPool::allocate_state(std::int64_t bytes) {
  return take_or_grow(free_state_, bytes, [&](const Block& block) { return block.step < step_; });
}

std::uint64_t BufferPool::allocate_state_for_host(std::int64_t bytes, std::uint64_t committed,
                                                  std::uint64_t host_writes_after) {
  return take_or_grow(free_state_, bytes, [&](const Block& block) {
    return block.step < committed && block.last_run <= host_writes_after;
  });
}

template <typename Predicate>
std::uint64_t BufferPool::take_or_grow(FreeBlocks& blocks, std::int64_t bytes, Predicate may_use) {
  const std::int64_t size = rounded(bytes);
  do {
    take_returned();
    if (const auto offset = take(blocks, size, may_use)) return *offset;
    if (const auto offset = grow(size)) return *offset;
  } while (make_room_ && make_room_());
  fail_no_room("a buffer", size);
}

/// Takes unused memory from the first gap that is large enough, or after all blocks. Returns
/// nothing if there is no room.
std::optional<std::uint64_t> BufferPool::grow(std::int64_t bytes) {
  const auto size = static_cast<std::uint64_t>(bytes);
  for (Range& gap : gaps_) {
    if (gap.end - gap.begin < size) continue;
    reserve_(gap.begin, size);
    return std::exchange(gap.begin, gap.begin + size);
  }
  const std::uint64_t end = end_ + size;
  if (end > arrays_) return {};
  if (end > reserved_) {
    const std::uint64_t piece = piece_bytes(end - room_.begin);
    const std::uint64_t grown = std::min<std::uint64_t>((end + piece - 1) / piece * piece, arrays_);
    reserve_(reserved_, grown - reserved_);
    reserved_ = grown;
  }
  return std::exchange(end_, end);
}

void BufferPool::free_state(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run) {
  if (keep_returned({&BufferPool::free_state, offset, bytes, last_run})) return;
  free_state_[rounded(bytes)].push_back({offset, last_run, step_});
}

void BufferPool::free_old_state(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run,
                                std::uint64_t step) {
  if (keep_returned({&BufferPool::free_state, offset, bytes, last_run})) return;
  free_state_[rounded(bytes)].push_front({offset, last_run, step});
}

void BufferPool::free(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run) {
  if (keep_returned({&BufferPool::free, offset, bytes, last_run})) return;
  free_[rounded(bytes)].push_back({.offset = offset, .last_run = last_run});
}

std::uint64_t BufferPool::allocate_array(std::int64_t bytes) {
  take_returned();
  const std::int64_t size = rounded(bytes);
  auto& blocks = free_arrays_[size];
  if (!blocks.empty()) {
    const std::uint64_t offset = blocks.front();
    blocks.pop_front();
    return offset;
  }
  if (static_cast<std::uint64_t>(size) > arrays_ - end_) fail_no_room("an array", size);
  const std::uint64_t offset = arrays_ - static_cast<std::uint64_t>(size);
  reserve_(offset, static_cast<std::size_t>(size));
  reserved_ = std::min(reserved_, offset);
  return arrays_ = offset;
}

void BufferPool::free_array(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run) {
  if (keep_returned({&BufferPool::free_array, offset, bytes, last_run})) return;
  const std::int64_t size = rounded(bytes);
  if (offset == arrays_) {
    arrays_ += static_cast<std::uint64_t>(size);
  } else {
    free_arrays_[size].push_back(offset);
  }
}

void BufferPool::fail_no_room(const char* what, std::int64_t bytes) const {
  fail(Errc::no_space,
       "{} of {} bytes doesn't fit: a chip's arena has {} bytes for buffers and arrays, and {} "
       "of them are in use; use more chips, or smaller batches",
       what, bytes, room_.end - room_.begin, end_ - room_.begin + room_.end - arrays_);
}

}  // namespace weft
