#pragma once
/// BatchSource: keeps batches of a dataset ready on a worker's chips.

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weft/data/device_loader.hpp>

#include "actors/data/batch_reader.hpp"
#include "actors/data/batch_shapes.hpp"
#include "actors/data/loader_progress.hpp"
#include "actors/runtime/worker_runtime.hpp"

namespace weft {

class JobLoaders;

/// Only the loop's thread may use it.
class BatchSource {
 public:
  /// The options must be checked, with `options.sampler` set. `place` is the source line at which
  /// the loop makes the loader.
  BatchSource(WorkerRuntime& runtime, JobLoaders& loaders, const Recorder& recorder,
              DatasetPtr dataset, DeviceLoaderOptions options, BatchShapes shapes,
              std::shared_ptr<LoaderProgress> progress, std::string place);

  const DatasetPtr& dataset() const { return dataset_; }
  const DeviceLoaderOptions& options() const { return options_; }
  LoaderProgress& progress() const { return *progress_; }
  std::uint64_t batches_per_epoch() const { return options_.sampler->steps_per_epoch(); }
  /// The result of take(), which waits for batch number `batch`. If other batches were read ahead,
  /// take() drops them. Then it reads ahead, up to batch `end`.
  struct Ready {
    std::vector<BufferPtr> buffers{};
    std::int64_t num_items = 0;
  };
  Ready take(std::uint64_t batch, std::uint64_t end);
  /// Called when the loop that made this source ends. Nothing is written to the chips afterwards,
  /// and take() throws.
  void close();
  bool is_closed() const { return runtime_ == nullptr; }
  /// This function and loaders() throw invalid_argument after close().
  WorkerRuntime& runtime() const;
  JobLoaders& loaders() const;

 private:
  void read_ahead(std::uint64_t end);
  bool is_compared(std::uint64_t batch);
  void compare(std::uint64_t batch, const std::vector<std::uint64_t>& hashes);

  WorkerRuntime* runtime_;  // null: closed
  JobLoaders* const loaders_;
  const Recorder recorder_;
  const DatasetPtr dataset_;
  const std::uint32_t text_;  // the dataset's name in the black box
  const DeviceLoaderOptions options_;
  BatchShapes shapes_;
  const std::shared_ptr<LoaderProgress> progress_;
  const std::string place_;
  std::optional<std::uint64_t> first_;  // the first batch that this loop has begun to read
  std::uint64_t next_ = 0;              // the next batch to read
  struct Begun {
    std::vector<ChipInput> inputs{};  // the memory into which the reader writes
    double padding = 0;
    std::exception_ptr failure{};  // if set, the batch couldn't be begun, and take() throws this
                                   // error
  };
  std::deque<Begun> begun_;  // the batches before next_ that take() hasn't returned
  BatchReader reader_;
};

}  // namespace weft
