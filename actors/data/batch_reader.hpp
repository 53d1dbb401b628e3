#pragma once
/// BatchReader: threads that read batches of a dataset into the memory of a worker's chips.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <weft/dataset.hpp>
#include <weft/sampler.hpp>

#include "actors/data/row_layout.hpp"

namespace weft {

struct BatchReaderOptions {
  int num_threads = 1;
  int at_a_time = 1;        ///< batches, of those that were begun, that threads work on
  bool has_weight = false;  ///< the layout has one more field than the dataset: 1 or 0 for each row
};

/// The rows of a worker in batches of one shape.
struct BatchRows {
  RowLayout layout;
  std::int64_t rows = 0;  ///< of the global batch
};

/// Batches come out in the order in which they were begun. Called by one thread.
class BatchReader {
 public:
  BatchReader(DatasetPtr dataset, SamplerPtr sampler, std::vector<BatchRows> shapes,
              BatchReaderOptions options);
  /// As drop().
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  /// The threads write to `memory` until the batch is finished or dropped. `shape`: of those that
  /// the constructor got.
  void begin(std::uint64_t batch, std::size_t shape, BatchMemory memory);
  /// Whether finish() would return at once.
  bool is_ready();
  struct Finished {
    std::int64_t num_items = 0;  ///< rows on all workers that have items
    /// Of the packed rows that this worker has read: elements of their segment ids, and those of
    /// padding.
    std::int64_t elements = 0;
    std::int64_t padding = 0;
  };
  /// Waits for the oldest batch. Throws what the dataset threw for its first such row.
  Finished finish();
  /// Gives up all batches; returns when nobody writes any more.
  void drop();

 private:
  struct Filling {
    std::uint64_t batch = 0;
    const BatchRows* shape = nullptr;
    BatchMemory memory{};
    std::size_t claimed = 0;  // rows that threads have taken
    int working = 0;          // threads
    Finished counts{};
    std::int64_t failed_row = 0;
    std::exception_ptr failure{};
  };
  struct Claim {
    std::shared_ptr<Filling> filling{};
    std::size_t begin = 0;  // of the layout's rows
    std::size_t end = 0;
  };
  bool is_filled(const Filling& filling) const;
  Claim claim();
  void work(const std::stop_token& stop);
  void fill(const Claim& claim, ItemBuffer& scratch);
  void fill_row(Filling& filling, const SampleOrder& order, std::int64_t row, ItemBuffer& scratch,
                Finished& counts);
  SampleOrderPtr order_of(std::uint64_t batch);
  std::int64_t count_items(const Filling& filling);

  const DatasetPtr dataset_;
  const SamplerPtr sampler_;
  const std::vector<BatchRows> shapes_;
  const BatchReaderOptions options_;
  std::optional<std::size_t> segment_ids_;  // their field, if the dataset is packed

  std::mutex order_mutex_;
  SampleOrderPtr order_;  // the last one that was needed

  std::mutex mutex_;  // guards what follows, and the counts of each Filling
  std::condition_variable_any has_work_;
  std::condition_variable filled_;
  std::deque<std::shared_ptr<Filling>> fillings_;  // the oldest first
  std::vector<std::jthread> threads_;
};

}  // namespace weft
