#include "transport/published/row_reader.hpp"

#include <cstring>

#include <weft/tensor/error.hpp>

#include "transport/memory/wait.hpp"

namespace weft {

/// Returns the chunk that has the row. The row must be before the end of the last of `chunks`
/// chunks.
RowChunk RowReader::find(std::uint64_t row, std::uint64_t chunks) const {
  std::uint64_t low = memory_->header().released.load(std::memory_order_acquire);
  if (low >= chunks || memory_->chunk(low).first_row > row) {
    fail(Errc::not_found,
         "row {} is kept no more, because all chips have committed the step that used it, or it is "
         "before the first row of this job: read experience in its order, in one pass, and keep "
         "the state of two versions (FailureConfig::state_versions)",
         row);
  }
  // Chunk `low` begins at or before `row`, the chunks from `high` on begin after it.
  std::uint64_t high = chunks;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (memory_->chunk(middle).first_row <= row ? low : high) = middle;
  }
  const RowChunk chunk = memory_->chunk(low);
  if (row - chunk.first_row < chunk.rows && chunk.block < memory_->block_count()) return chunk;
  fail(Errc::corrupt, "segment {}: chunk {} has {} rows from row {} on, in block {}",
       memory_->segment().name(), low, chunk.rows, chunk.first_row, chunk.block);
}

bool RowReader::read(std::uint64_t row, ItemMemory out) const {
  const std::uint64_t chunks = memory_->header().chunks.load(std::memory_order_acquire);
  if (chunks == 0) {
    want(row);
    return false;
  }
  const RowChunk last = memory_->chunk(chunks - 1);
  if (row >= last.first_row + last.rows) {
    want(row);
    return false;
  }
  const RowChunk chunk = find(row, chunks);
  const auto in_chunk = static_cast<std::uint32_t>(row - chunk.first_row);
  const std::uint32_t block = block_of(chunk, in_chunk);
  const std::byte* from = memory_->row(block, in_chunk % memory_->rows_per_block());
  for (std::size_t field = 0; field < out.size(); ++field) {
    std::memcpy(out[field].data(), from + memory_->fields()[field].offset, out[field].size());
  }
  return true;
}

/// Returns the block that has row `row` of the chunk.
std::uint32_t RowReader::block_of(const RowChunk& chunk, std::uint32_t row) const {
  const std::uint32_t number = row / memory_->rows_per_block();
  const std::lock_guard lock(mutex_);
  if (last_.first_row != chunk.first_row || last_.number > number) {
    last_ = {.first_row = chunk.first_row, .number = 0, .block = chunk.block};
  }
  for (; last_.number < number; ++last_.number) last_.block = memory_->next_of(last_.block);
  return last_.block;
}

void RowReader::want(std::uint64_t row) const {
  RowHeader& header = memory_->header();
  std::uint64_t none = kNoRow;
  bool is_new =
      worker_ == 0 && header.base.compare_exchange_strong(none, row, std::memory_order_seq_cst);
  std::uint64_t before = header.wanted.load(std::memory_order_relaxed);
  while (before < row + 1) {
    if (!header.wanted.compare_exchange_weak(before, row + 1, std::memory_order_seq_cst)) continue;
    is_new = true;
    break;
  }
  if (is_new) memory_->call_worker_0();
}

std::uint32_t RowReader::news() const noexcept {
  return memory_->header().news.load(std::memory_order_seq_cst);
}

void RowReader::wait_for_news(std::uint32_t seen, std::chrono::nanoseconds at_most) const noexcept {
  sleep_on(memory_->header().news, seen, at_most);
}

}  // namespace weft
