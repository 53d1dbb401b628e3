#pragma once
/// BatchReader: reads batches of a dataset, on threads of its own, into the memory of a worker's
/// chips.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <weft/data/dataset.hpp>
#include <weft/data/sampler.hpp>

#include "actors/data/row_layout.hpp"

namespace weft {

struct BatchReaderOptions {
  int num_threads = 1;
  int at_a_time = 1;        ///< the limit on batches that the threads work on at the same time
  bool has_weight = false;  ///< the layout has a field after those of the dataset: the weight of
                            ///< each row, 1 or 0
};

/// The layout of this worker's rows in batches of one shape.
struct BatchRows {
  RowLayout layout;
  std::int64_t rows = 0;  ///< number of rows in the global batch
};

/// An item that a thread was still reading at the second of two checks by finish().
struct SlowItem {
  std::int64_t index = 0;
  int tid = 0;
  std::int64_t since_ns = 0;  ///< when the first check saw this read, by CLOCK_BOOTTIME
};

/// Reads batches, and returns them in the order of the begin() calls. Only one thread may use it.
class BatchReader {
 public:
  BatchReader(DatasetPtr dataset, SamplerPtr sampler, std::vector<BatchRows> shapes,
              BatchReaderOptions options);
  /// Calls drop().
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  /// Starts to read a batch. The threads write to `memory` until finish() returns the batch or
  /// drop() drops it. `shape` is an index into the constructor's shapes. If `is_compared`, the
  /// first item of the global batch is read and hashed too.
  void begin(std::uint64_t batch, std::size_t shape, BatchMemory memory, bool is_compared = false);
  /// Returns whether the next finish() would return at once.
  bool is_ready();
  struct Finished {
    std::int64_t num_items = 0;  ///< number of rows with items in the global batch
    /// The elements of the packed rows that this worker has read, and how many of these are
    /// padding.
    std::int64_t elements = 0;
    std::int64_t padding = 0;
    std::vector<std::uint64_t> first_hashes{};  ///< hashes of the first item, by field; empty
                                                ///< if the batch isn't compared
  };
  /// Waits for the oldest batch and removes it. Meanwhile calls `on_slow` each second with the item
  /// whose read takes longest. If reads of rows threw exceptions, rethrows the exception of the
  /// first such row.
  Finished finish(const std::function<void(const SlowItem&)>& on_slow = {});
  /// Drops all batches. Waits until no thread writes to their memory any more.
  void drop();

 private:
  struct Filling {
    std::uint64_t batch = 0;
    const BatchRows* shape = nullptr;
    BatchMemory memory{};
    bool is_compared = false;
    std::size_t claimed = 0;  // how many rows threads have taken
    int working = 0;          // number of threads that read rows of this batch
    Finished counts{};
    std::int64_t failed_row = 0;
    std::exception_ptr failure{};
  };
  struct Claim {
    std::shared_ptr<Filling> filling{};
    std::size_t begin = 0;  // range of the layout's rows
    std::size_t end = 0;
  };
  /// The item that a thread is reading. `begun` counts the thread's reads, which distinguishes two
  /// reads of the same item.
  struct Reading {
    std::atomic<int> tid{0};
    std::atomic<std::int64_t> index{-1};
    std::atomic<std::uint64_t> begun{0};
  };
  /// The read of a thread that finish() saw at its last check.
  struct Seen {
    std::uint64_t begun = 0;
    std::int64_t since_ns = 0;
  };
  std::optional<SlowItem> look(std::vector<Seen>& seen) const;
  bool is_filled(const Filling& filling) const;
  Claim claim();
  void work(const std::stop_token& stop, Reading& reading);
  void fill(const Claim& claim, ItemBuffer& scratch, Reading& reading);
  void read_item(const Item& item, ItemMemory places, Reading& reading);
  void hash_first(const Filling& filling, const SampleOrder& order, ItemBuffer& scratch,
                  Reading& reading, Finished& counts);
  void fill_row(Filling& filling, const SampleOrder& order, std::int64_t row, ItemBuffer& scratch,
                Reading& reading, Finished& counts);
  SampleOrderPtr order_of(std::uint64_t batch);
  std::int64_t count_items(const Filling& filling);

  const DatasetPtr dataset_;
  const SamplerPtr sampler_;
  const std::vector<BatchRows> shapes_;
  const BatchReaderOptions options_;
  std::optional<std::size_t> segment_ids_;  // the field of segment ids, if the dataset is packed

  std::mutex order_mutex_;
  SampleOrderPtr order_;  // the order that was used last

  std::mutex mutex_;  // guards the following members, and the counts of each Filling
  std::condition_variable_any has_work_;
  std::condition_variable filled_;
  std::deque<std::shared_ptr<Filling>> fillings_;  // oldest first
  std::vector<Reading> readings_;                  // by thread
  std::atomic<bool> is_dropping_{false};           // set while drop() waits: the threads may stop
                                                   // reading early
  std::vector<std::jthread> threads_;
};

}  // namespace weft
