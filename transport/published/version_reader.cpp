#include "transport/published/version_reader.hpp"

#include <unistd.h>

#include <weft/tensor/error.hpp>

#include "transport/memory/wait.hpp"

namespace weft {
namespace {

/// Set in a count while a thread changes the count between 0 and 1 and sets or clears the ledger's
/// bit.
constexpr std::uint32_t kHoldChanging = 1U << 31U;

std::uint64_t reader_bit(std::uint32_t reader) { return std::uint64_t{1} << (reader % 64); }

}  // namespace

VersionReader::VersionReader(std::string_view job, std::string_view name)
    : memory_(PublishedMemory::open(job, name, true)) {
  for (; number_ < kReaderCountMax && !life_; ++number_) {
    life_ = LifeLock::take(memory_.ledger(), number_);
  }
  if (!life_) {
    fail(Errc::no_space,
         "\"{}\" of job {} has {} processes that read it, which is the most that there can be",
         name, job, kReaderCountMax);
  }
  --number_;
  for (std::uint32_t place = 0; place < kVersionCountMax; ++place) clear_bit(place);
  memory_.header().reader_pids[number_].store(::getpid(), std::memory_order_relaxed);
}

VersionReader::~VersionReader() {
  for (std::uint32_t place = 0; place < kVersionCountMax; ++place) clear_bit(place);
}

void VersionReader::clear_bit(std::uint32_t place) const noexcept {
  row(place).holders[number_ / 64].fetch_and(~reader_bit(number_), std::memory_order_seq_cst);
}

std::optional<std::uint64_t> VersionReader::newest() const noexcept {
  const std::uint64_t word = memory_.header().newest.load(std::memory_order_acquire);
  if (word == 0) return std::nullopt;
  return NewestVersion::of(word).version;
}

std::optional<VersionReader::Held> VersionReader::hold_newest() noexcept {
  for (;;) {
    const std::uint64_t word = memory_.header().newest.load(std::memory_order_acquire);
    if (word == 0) return std::nullopt;
    const NewestVersion newest = NewestVersion::of(word);
    if (hold(newest.place, newest.version)) {
      return Held{.version = newest.version, .place = newest.place};
    }
    // By invariant 1 the newest version keeps its place. So something else has changed this memory.
    if (memory_.header().newest.load(std::memory_order_acquire) == word) return std::nullopt;
  }
}

/// Holds a place. Returns false, and holds nothing, if the place no longer has the version.
bool VersionReader::hold(std::uint32_t place, std::uint64_t version) noexcept {
  Count& count = counts_[place];
  std::uint32_t before = count.load(std::memory_order_relaxed);
  for (;;) {
    if ((before & kHoldChanging) != 0) {
      pause_cpu();
      before = count.load(std::memory_order_relaxed);
    } else if (count.compare_exchange_weak(before, before == 0 ? kHoldChanging : before + 1,
                                           std::memory_order_acquire)) {
      break;
    }
  }
  PlaceRow& its = row(place);
  if (before == 0) {
    its.holders[number_ / 64].fetch_or(reader_bit(number_), std::memory_order_seq_cst);
    count.store(1, std::memory_order_release);
  }
  if (its.version.load(std::memory_order_seq_cst) == version + 1) return true;
  release(place);
  return false;
}

void VersionReader::hold_again(std::uint32_t place) noexcept {
  counts_[place].fetch_add(1, std::memory_order_relaxed);
}

void VersionReader::release(std::uint32_t place) noexcept {
  Count& count = counts_[place];
  std::uint32_t before = count.load(std::memory_order_relaxed);
  // This is the only thread that can change the count between 0 and 1, since the caller holds the
  // place.
  while (!count.compare_exchange_weak(before, before == 1 ? kHoldChanging : before - 1,
                                      std::memory_order_acq_rel)) {
  }
  if (before != 1) return;
  clear_bit(place);
  count.store(0, std::memory_order_release);
}

std::uint64_t VersionReader::skipped() const noexcept {
  return memory_.header().skipped.load(std::memory_order_relaxed);
}

std::uint32_t VersionReader::news() const noexcept {
  return memory_.header().news.load(std::memory_order_seq_cst);
}

void VersionReader::wait_for_news(std::uint32_t seen,
                                  std::chrono::nanoseconds at_most) const noexcept {
  sleep_on(memory_.header().news, seen, at_most);
}

}  // namespace weft
