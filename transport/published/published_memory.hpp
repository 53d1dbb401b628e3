#pragma once
/// PublishedMemory: the shared memory in which a job publishes versions of tensors.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/memory/segment.hpp"
#include "transport/published/published_format.hpp"
#include "transport/published/tensor_table.hpp"

namespace weft {

/// Maps both segments. Movable. JobMemory::remove() removes their names at the job's end.
class PublishedMemory {
 public:
  /// Makes the segments, without memory for any place. `tensors` come from lay_out(). Throws io if
  /// the segments exist already, and no_space.
  static PublishedMemory create(std::string_view job, std::string_view name,
                                const std::vector<PublishedTensor>& tensors, int worker_count);
  /// Opens the segments. Throws not_found, version, or corrupt for an invalid table. With
  /// `only_reads`, the values are mapped read-only.
  static PublishedMemory open(std::string_view job, std::string_view name, bool only_reads);
  /// Returns the name of the segment with the ledger.
  static std::string ledger_name(std::string_view job, std::string_view name);
  /// Removes the names of both segments. Processes that have mapped them keep their mappings.
  static void remove(std::string_view job, std::string_view name) noexcept;
  /// Returns the names under which the job publishes.
  static std::vector<std::string> names(std::string_view job);

  PublishedHeader& header() const { return *reinterpret_cast<PublishedHeader*>(ledger_.data()); }
  const Segment& ledger() const { return ledger_; }
  const std::vector<PublishedTensor>& tensors() const { return tensors_; }
  std::uint32_t worker_count() const { return worker_count_; }
  std::size_t version_bytes() const { return version_bytes_; }
  std::byte* place(std::uint32_t place) const { return values_.data() + place * version_bytes_; }
  /// Reserves the memory of a place. Throws no_space.
  void reserve(std::uint32_t place);
  /// Returns whether the job has ended, so that it publishes nothing more.
  bool has_job_ended() const;

 private:
  PublishedMemory(std::string_view job, Segment ledger, Segment values);

  std::string job_;
  std::string control_root_;
  Segment ledger_;
  Segment values_;
  std::vector<PublishedTensor> tensors_;
  std::uint32_t worker_count_ = 0;
  std::size_t version_bytes_ = 0;
};

/// Returns whether the job that made `segment` has ended. `control_root` is the folder with the
/// job's lock.
bool has_publishing_job_ended(const Segment& segment, const std::string& control_root,
                              const std::string& job);

}  // namespace weft
