#include <weft/actors/worker/buffer_pool.hpp>

#include <algorithm>
#include <utility>

#include <weft/spmd/error.hpp>
#include <weft/transport/huge_pages.hpp>

namespace weft {
namespace {

/// Memory is reserved in pieces, to keep system calls out of the steps: of a huge page, save where
/// that would be most of what a small job takes.
std::uint64_t piece_bytes(std::uint64_t bytes) {
  return bytes <= kHugePageBytes / 2 ? kHugePageBytes / 2 : kHugePageBytes;
}

std::int64_t rounded(std::int64_t bytes) {
  return (std::max<std::int64_t>(bytes, 1) + 63) / 64 * 64;
}

}  // namespace

BufferPool::BufferPool(JobMemory& memory, std::vector<int> chips)
    : memory_(memory),
      chips_(std::move(chips)),
      begin_(memory.buffers_offset()),
      end_(begin_),
      reserved_(begin_),
      arrays_(memory.arena_capacity()) {}

std::uint64_t BufferPool::allocate(std::int64_t bytes, std::uint64_t host_writes_after) {
  const std::int64_t size = rounded(bytes);
  auto& blocks = free_[size];
  if (!blocks.empty() && blocks.front().last_run <= host_writes_after) {
    const std::uint64_t offset = blocks.front().offset;
    blocks.pop_front();
    return offset;
  }
  const std::uint64_t end = end_ + static_cast<std::uint64_t>(size);
  if (end > arrays_) fail_no_room("a buffer", size);
  if (end > reserved_) {
    const std::uint64_t piece = piece_bytes(end - begin_);
    const std::uint64_t grown = std::min<std::uint64_t>((end + piece - 1) / piece * piece, arrays_);
    for (const int chip : chips_) memory_.reserve(chip, reserved_, grown - reserved_);
    reserved_ = grown;
  }
  return std::exchange(end_, end);
}

void BufferPool::free(std::uint64_t offset, std::int64_t bytes, std::uint64_t last_run) {
  free_[rounded(bytes)].push_back({offset, last_run});
}

std::uint64_t BufferPool::allocate_array(std::int64_t bytes) {
  const std::int64_t size = rounded(bytes);
  auto& blocks = free_arrays_[size];
  if (!blocks.empty()) {
    const std::uint64_t offset = blocks.front();
    blocks.pop_front();
    return offset;
  }
  if (static_cast<std::uint64_t>(size) > arrays_ - end_) fail_no_room("an array", size);
  const std::uint64_t offset = arrays_ - static_cast<std::uint64_t>(size);
  for (const int chip : chips_) memory_.reserve(chip, offset, static_cast<std::size_t>(size));
  reserved_ = std::min(reserved_, offset);
  return arrays_ = offset;
}

void BufferPool::free_array(std::uint64_t offset, std::int64_t bytes) {
  const std::int64_t size = rounded(bytes);
  if (offset == arrays_) {
    arrays_ += static_cast<std::uint64_t>(size);
  } else {
    free_arrays_[size].push_back(offset);
  }
}

void BufferPool::fail_no_room(const char* what, std::int64_t bytes) const {
  fail(Errc::no_space,
       "{} of {} bytes doesn't fit: a chip's arena has {} bytes for buffers and arrays, {} are "
       "taken; use more chips, or smaller batches",
       what, bytes, memory_.arena_capacity() - begin_,
       end_ - begin_ + memory_.arena_capacity() - arrays_);
}

}  // namespace weft
