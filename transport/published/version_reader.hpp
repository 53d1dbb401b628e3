#pragma once
/// VersionReader: lets a process of the user read the versions that a job publishes in shared
/// memory.

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
#include "transport/published/version_source.hpp"

namespace weft {

/// Counts in this process's own memory how often it holds each place. In the ledger, the process
/// has only one bit for each place. If it dies, the bits are cleared by a worker that needs the
/// place, or by the next reader with its number. Invariants: published_format.hpp. Thread-safe.
class VersionReader final : public VersionSource {
 public:
  /// Throws the errors of PublishedMemory::open(), and no_space if kReaderCountMax processes read
  /// already.
  VersionReader(std::string_view job, std::string_view name);
  ~VersionReader() override;
  VersionReader(const VersionReader&) = delete;
  VersionReader& operator=(const VersionReader&) = delete;

  const PublishedMemory& memory() const { return memory_; }
  const std::vector<PublishedTensor>& tensors() const override { return memory_.tensors(); }
  const std::byte* place(std::uint32_t place) const override { return memory_.place(place); }
  std::optional<std::uint64_t> newest() const noexcept override;
  std::optional<Held> hold_newest() noexcept override;
  void hold_again(std::uint32_t place) noexcept override;
  void release(std::uint32_t place) noexcept override;
  std::uint64_t skipped() const noexcept override;
  bool has_job_ended() const override { return memory_.has_job_ended(); }
  std::uint32_t news() const noexcept override;
  void wait_for_news(std::uint32_t seen, std::chrono::nanoseconds at_most) const noexcept override;

 private:
  using Count = std::atomic<std::uint32_t>;

  bool hold(std::uint32_t place, std::uint64_t version) noexcept;
  PlaceRow& row(std::uint32_t place) const { return memory_.header().places[place]; }
  void clear_bit(std::uint32_t place) const noexcept;

  PublishedMemory memory_;
  std::uint32_t number_ = 0;  ///< this reader's number
  std::optional<LifeLock> life_;
  std::array<Count, kVersionCountMax> counts_{};
};

}  // namespace weft
