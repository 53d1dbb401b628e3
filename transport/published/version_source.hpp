#pragma once
/// VersionSource: the interface through which a process reads the versions published under a name.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "transport/published/tensor_table.hpp"

namespace weft {

class VersionSource {
 public:
  struct Held {
    std::uint64_t version = 0;
    std::uint32_t place = 0;
  };

  virtual ~VersionSource() = default;
  virtual const std::vector<PublishedTensor>& tensors() const = 0;
  /// Returns the bytes of the version in place `place`.
  virtual const std::byte* place(std::uint32_t place) const = 0;
  /// Returns the newest version without holding it, or nothing if there is none.
  virtual std::optional<std::uint64_t> newest() const noexcept = 0;
  /// Holds the newest version: its bytes don't change until release(). Returns nothing if no
  /// version has been published.
  virtual std::optional<Held> hold_newest() noexcept = 0;
  /// Holds once more a place that this process holds already.
  virtual void hold_again(std::uint32_t place) noexcept = 0;
  virtual void release(std::uint32_t place) noexcept = 0;
  /// Returns how many versions weren't published because all places were held.
  virtual std::uint64_t skipped() const noexcept = 0;
  virtual bool has_job_ended() const = 0;

  /// Returns a count of the published versions. wait_for_news() waits until the count differs from
  /// `seen` or `at_most` has passed. It may return early.
  virtual std::uint32_t news() const noexcept = 0;
  virtual void wait_for_news(std::uint32_t seen,
                             std::chrono::nanoseconds at_most) const noexcept = 0;
};

}  // namespace weft
