#pragma once
/// RowSender: gives rows from one process of the user to a job, through shared memory.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "transport/memory/life_lock.hpp"
#include "transport/published/row_memory.hpp"
#include "transport/published/row_sink.hpp"

namespace weft {

/// If the process dies, the blocks that it took are freed, except those of arrived chunks.
/// Thread-safe. Invariants: row_format.hpp.
class RowSender final : public RowSink {
 public:
  /// Throws the errors of RowMemory::open(), and no_space if kSenderCountMax processes send
  /// already.
  RowSender(std::string_view job, std::string_view name);

  const RowMemory& memory() const { return memory_; }
  const std::vector<PublishedTensor>& fields() const override { return memory_.fields(); }
  std::uint64_t capacity() const override {
    return std::uint64_t{memory_.block_count()} * memory_.rows_per_block();
  }
  std::optional<std::vector<std::uint32_t>> take(std::uint64_t rows) override;
  std::byte* row(std::span<const std::uint32_t> blocks, std::uint64_t row) const override {
    return memory_.row(blocks[row / memory_.rows_per_block()],
                       static_cast<std::uint32_t>(row % memory_.rows_per_block()));
  }
  void give_back(std::span<const std::uint32_t> blocks) noexcept override;
  void send(std::span<const std::uint32_t> blocks, std::uint64_t rows,
            std::uint64_t version) override;
  bool has_job_ended() const override { return memory_.has_job_ended(); }
  std::uint32_t news() const noexcept override;
  void wait_for_news(std::uint32_t seen, std::chrono::nanoseconds at_most) const noexcept override;

 private:
  bool has_blocks() const;

  RowMemory memory_;
  std::uint32_t number_ = 0;  ///< this sender's number
  std::optional<LifeLock> life_;
  std::atomic<std::uint32_t> next_{0};  ///< where the next search for free blocks begins
};

}  // namespace weft
