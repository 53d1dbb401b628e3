#pragma once
/// VersionWriter: one worker's part in publishing versions.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "transport/published/published_memory.hpp"

namespace weft {

/// All workers pass the same publications in the same order. Publication numbers grow, even from
/// one generation of the job to the next. Only one publication is copied at a time. In each worker
/// one thread uses these functions. Invariants: published_format.hpp.
class VersionWriter {
 public:
  /// `memory` must outlive the object.
  VersionWriter(PublishedMemory& memory, int worker);

  /// Worker 0 chooses a place for a version, or decides to skip it, because this version or a later
  /// one was published before, or because readers hold all places. The publication before must be
  /// published or skipped, unless its generation has ended.
  void decide(std::uint64_t publication, std::uint64_t version);
  /// Returns whether worker 0 has decided on the publication.
  bool is_decided(std::uint64_t publication) const;
  /// Returns the memory to which this worker has to copy its part, or null if the version is
  /// skipped. Worker 0 must have decided on the publication. Throws program_divergence if worker 0
  /// publishes another version.
  std::byte* destination(std::uint64_t publication, std::uint64_t version) const;
  /// Reports that this worker has copied its part.
  void copied(std::uint64_t publication);
  /// Worker 0 makes the version the newest one if all workers have copied their parts. Returns
  /// whether they have.
  bool publish(std::uint64_t publication, std::uint64_t version);

  /// wait_for_news() sleeps, for at most `at_most`, until is_decided() or publish() may return
  /// something else than when turns() returned `seen`.
  std::uint32_t turns() const;
  void wait_for_news(std::uint32_t seen, std::chrono::nanoseconds at_most) const;

 private:
  std::optional<std::uint32_t> choose_place();
  std::optional<std::uint32_t> find_free();
  void release_dead_readers();
  void count_turn();

  PublishedMemory* memory_;
  PublishedHeader* header_;
  std::uint32_t worker_;
};

}  // namespace weft
