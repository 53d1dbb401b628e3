#pragma once
/// VersionReader: reads the versions that a job publishes, as one process of the user.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "transport/memory/life_lock.hpp"
#include "transport/published/published_memory.hpp"

namespace weft {

/// Counts in memory of its own how often this process holds each place. In the ledger, it has one
/// bit for each place. If the process dies, the bits are cleared by who needs the place or becomes
/// the next reader with this number. Invariants: published_format.hpp. Thread-safe.
class VersionReader {
 public:
  struct Held {
    std::uint64_t version = 0;
    std::uint32_t place = 0;
  };

  /// Throws as PublishedMemory::open(), and no_space if kReaderCountMax processes read already.
  VersionReader(std::string_view job, std::string_view name);
  ~VersionReader();
  VersionReader(const VersionReader&) = delete;
  VersionReader& operator=(const VersionReader&) = delete;

  const PublishedMemory& memory() const { return memory_; }
  /// Returns the newest version, without holding it; nothing if there is none.
  std::optional<std::uint64_t> newest() const noexcept;

  /// Holds the newest version: its bytes don't change until release(). Returns nothing if no
  /// version has been published.
  std::optional<Held> hold_newest() noexcept;
  /// Holds a place once more, which this process must hold already.
  void hold_again(std::uint32_t place) noexcept;
  void release(std::uint32_t place) noexcept;

  /// Counts the published versions. wait_for_news() returns when this is no longer `seen`, or
  /// `at_most` has passed; it may return early.
  std::uint32_t news() const noexcept;
  void wait_for_news(std::uint32_t seen, std::chrono::nanoseconds at_most) const noexcept;

 private:
  using Count = std::atomic<std::uint32_t>;

  bool hold(std::uint32_t place, std::uint64_t version) noexcept;
  PlaceRow& row(std::uint32_t place) const { return memory_.header().places[place]; }
  void clear_bit(std::uint32_t place) const noexcept;

  PublishedMemory memory_;
  std::uint32_t number_ = 0;  ///< of this reader
  std::optional<LifeLock> life_;
  std::array<Count, kVersionCountMax> counts_{};
};

}  // namespace weft
