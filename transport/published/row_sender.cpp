#include "transport/published/row_sender.hpp"

#include <unistd.h>

#include <ctime>

#include <weft/tensor/error.hpp>

#include "transport/blackbox/box_clock.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

/// Stores `value` if it is greater than the word.
void raise_to(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  std::uint64_t before = word.load(std::memory_order_relaxed);
  while (before < value && !word.compare_exchange_weak(before, value, std::memory_order_seq_cst)) {
  }
}

}  // namespace

RowSender::RowSender(std::string_view job, std::string_view name)
    : memory_(RowMemory::open(job, name)) {
  for (; number_ < kSenderCountMax; ++number_) {
    life_ = LifeLock::take(memory_.segment(), number_);
    // A dead sender with this number may have left blocks, which would count as this sender's. Then
    // this tries another number, and worker 0 frees the blocks.
    if (life_ && !has_blocks()) {
      RowSenderRow& its = memory_.header().senders[number_];
      its.sent_ns.store(0, std::memory_order_relaxed);
      its.pid.store(::getpid(), std::memory_order_relaxed);
      return;
    }
    life_.reset();
  }
  memory_.call_worker_0();
  fail(Errc::no_space,
       "experience \"{}\" of job {} has {} processes that write to it, or have died with rows that "
       "are still to be freed; that is the most that there can be",
       name, job, kSenderCountMax);
}

bool RowSender::has_blocks() const {
  for (std::uint32_t block = 0; block < memory_.block_count(); ++block) {
    if (memory_.block(block).owner.load(std::memory_order_acquire) == number_ + 1) return true;
  }
  return false;
}

std::optional<std::vector<std::uint32_t>> RowSender::take(std::uint64_t rows) {
  const std::uint64_t needed = (rows + memory_.rows_per_block() - 1) / memory_.rows_per_block();
  const std::uint32_t count = memory_.block_count();
  std::vector<std::uint32_t> blocks;
  std::uint32_t at = next_.load(std::memory_order_relaxed);
  for (std::uint32_t looks = 0; looks < count && blocks.size() < needed; ++looks) {
    at = at + 1 < count ? at + 1 : 0;
    std::uint64_t free = 0;
    auto& owner = memory_.block(at).owner;
    if (owner.load(std::memory_order_relaxed) == 0 &&
        owner.compare_exchange_strong(free, number_ + 1, std::memory_order_acq_rel)) {
      blocks.push_back(at);
    }
  }
  next_.store(at, std::memory_order_relaxed);
  if (blocks.size() == needed) return blocks;
  give_back(blocks);
  memory_.header().sender_waits.fetch_add(1, std::memory_order_relaxed);
  memory_.call_worker_0();  // worker 0 then frees the blocks of dead senders
  return std::nullopt;
}

void RowSender::give_back(std::span<const std::uint32_t> blocks) noexcept {
  if (blocks.empty()) return;
  for (const std::uint32_t block : blocks) {
    memory_.block(block).owner.store(0, std::memory_order_release);
  }
  memory_.tell_news();
}

void RowSender::send(std::span<const std::uint32_t> blocks, std::uint64_t rows,
                     std::uint64_t version) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::uint32_t next = i + 1 < blocks.size() ? blocks[i + 1] + 1 : 0;
    memory_.block(blocks[i]).next.store(next, std::memory_order_relaxed);
  }
  RowBlock& first = memory_.block(blocks.front());
  first.rows.store(static_cast<std::uint32_t>(rows), std::memory_order_relaxed);
  first.version.store(version, std::memory_order_relaxed);
  RowHeader& header = memory_.header();
  header.sent_rows.fetch_add(rows, std::memory_order_relaxed);
  std::uint64_t number = header.tail.load(std::memory_order_acquire) + 1;
  for (;; ++number) {
    std::atomic<std::uint64_t>& word = memory_.arrival(number);
    std::uint64_t before = word.load(std::memory_order_acquire);
    if (ArrivalWord::of(before).number >= number) continue;
    const ArrivalWord arrived{.number = number, .block = blocks.front()};
    if (word.compare_exchange_strong(before, arrived.word(), std::memory_order_acq_rel)) break;
  }
  raise_to(header.tail, number);
  header.senders[number_].sent_ns.store(clock_ns(CLOCK_MONOTONIC), std::memory_order_relaxed);
  memory_.call_worker_0();
}

std::uint32_t RowSender::news() const noexcept {
  return memory_.header().news.load(std::memory_order_seq_cst);
}

void RowSender::wait_for_news(std::uint32_t seen, std::chrono::nanoseconds at_most) const noexcept {
  sleep_on(memory_.header().news, seen, at_most);
}

}  // namespace weft
