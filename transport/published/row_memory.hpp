#pragma once
/// RowMemory: the shared memory in which processes of the user give rows to a job.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/memory/segment.hpp"
#include "transport/published/row_format.hpp"
#include "transport/published/tensor_table.hpp"

namespace weft {

struct RowMemoryOptions {
  std::vector<PublishedTensor> fields{};  ///< fields of a row, from lay_out()
  std::uint64_t capacity = 0;             ///< rows that fit even in chunks of one row
  std::uint64_t max_lag = kNoLagLimit;
  int worker_count = 1;
};

/// Maps the segment. Movable. JobMemory::remove() removes the segment's name at the job's end.
class RowMemory {
 public:
  /// Makes the segment. Throws io if it exists already, and no_space.
  static RowMemory create(std::string_view job, std::string_view name,
                          const RowMemoryOptions& options);
  /// Opens the segment. Throws not_found, version or corrupt.
  static RowMemory open(std::string_view job, std::string_view name);
  static std::string segment_name(std::string_view job, std::string_view name);
  static void remove(std::string_view job, std::string_view name) noexcept;
  /// Returns the names under which the job takes rows.
  static std::vector<std::string> names(std::string_view job);

  RowHeader& header() const { return *reinterpret_cast<RowHeader*>(segment_.data()); }
  const Segment& segment() const { return segment_; }
  const std::vector<PublishedTensor>& fields() const { return fields_; }
  std::uint32_t rows_per_block() const { return rows_per_block_; }
  std::uint32_t block_count() const { return block_count_; }
  std::uint64_t max_lag() const { return max_lag_; }
  std::uint32_t worker_count() const { return worker_count_; }
  RowBlock& block(std::uint32_t block) const { return part<RowBlock>(blocks_at_, block); }
  std::atomic<std::uint64_t>& arrival(std::uint64_t number) const {
    return part<std::atomic<std::uint64_t>>(arrivals_at_, (number - 1) % block_count_);
  }
  RowChunk& chunk(std::uint64_t chunk) const {
    return part<RowChunk>(chunks_at_, chunk % block_count_);
  }
  std::byte* row(std::uint32_t block, std::uint32_t row) const {
    return segment_.data() + data_at_ + (std::size_t{block} * rows_per_block_ + row) * row_bytes_;
  }
  /// Returns the block that follows `block` in its chunk. Throws corrupt if there is none.
  std::uint32_t next_of(std::uint32_t block) const;
  bool has_job_ended() const;

  void call_worker_0() const;
  void tell_news() const;

 private:
  RowMemory(std::string_view job, Segment segment);
  template <typename T>
  T& part(std::size_t at, std::uint64_t index) const {
    return reinterpret_cast<T*>(segment_.data() + at)[index];
  }

  std::string job_;
  std::string control_root_;
  Segment segment_;
  std::vector<PublishedTensor> fields_;
  std::uint64_t max_lag_ = 0;
  std::size_t row_bytes_ = 0;
  std::uint32_t rows_per_block_ = 0;
  std::uint32_t block_count_ = 0;
  std::uint32_t worker_count_ = 0;
  std::size_t blocks_at_ = 0, arrivals_at_ = 0, chunks_at_ = 0, data_at_ = 0;
};

/// Returns the name of the dataset of the rows, "experience(steps)", as errors and the board have
/// it.
std::string experience_name(std::string_view name);

}  // namespace weft
