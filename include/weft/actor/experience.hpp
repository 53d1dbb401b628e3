#pragma once
/// experience(): a dataset of the rows that actors or other processes write for a running loop
/// (ExperienceWriter).
///
///   weft::DeviceLoader batches(weft::experience(ctx, "steps", fields, {.max_lag = 4}),
///                              {.batch_size = 512, .device_prefetch_size = 1});
///   for (const weft::Batch& batch : batches) ...

#include <cstdint>
#include <optional>
#include <source_location>
#include <string_view>
#include <vector>

#include <weft/data/dataset.hpp>
#include <weft/train/train_context.hpp>

namespace weft {

struct ExperienceOptions {
  /// The number of rows for which there is memory: rows that wait, and rows that the loop has read
  /// in steps that some chips haven't committed yet. Use at least six times the batch size.
  std::int64_t capacity = 65'536;
  /// The largest allowed age of a row: the loop's step minus the row's version, when the loader
  /// takes the row. Older rows are dropped, and counted by the metric ExperienceDropped. A loader
  /// takes rows ahead of the loop: for device_prefetch_size + loader_prefetch_size batches.
  /// Default: no row is dropped.
  std::optional<std::uint64_t> max_lag{};
};

/// Returns a dataset that never ends: item n is the n-th row that arrived and wasn't dropped.
/// Reading an item waits for its row. All workers read the same rows in the same order. Rows are
/// kept until all chips have committed the step that used them, so a loop that continues after the
/// loss of a worker gets the same bytes again; this needs FailureConfig::state_versions of 2 or
/// more.
///
/// Give the dataset to only one DeviceLoader, without shuffle and with one thread, and use only one
/// `for` over the loader. All workers must call the function at the same line, once for each name.
/// Throws invalid_argument; unavailable if the job has no mesh; and no_space.
DatasetPtr experience(TrainContext& ctx, std::string_view name, std::vector<Field> fields,
                      const ExperienceOptions& options = {},
                      std::source_location where = std::source_location::current());

}  // namespace weft
