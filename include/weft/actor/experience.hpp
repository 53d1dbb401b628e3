#pragma once
/// experience(): the rows that actors, or other processes, write for a running loop
/// (ExperienceWriter), as a dataset.
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
  /// The rows for which there is memory: those that wait, and those that steps have used which not
  /// all chips have committed. Use the rows of six batches or more.
  std::int64_t capacity = 65'536;
  /// The largest difference between the loop's step and the version of a row, at the time when the
  /// loader takes the row. Older rows are dropped, and counted by the metric ExperienceDropped. A
  /// loader takes rows for device_prefetch_size + loader_prefetch_size batches ahead. Default: no
  /// row is dropped.
  std::optional<std::uint64_t> max_lag{};
};

/// Returns a dataset that never ends: row n is the n-th row that has arrived and wasn't dropped.
/// Reading a row waits for it. All workers read the same rows in the same order. Rows are kept
/// until all chips have committed the step that used them, so a loop that continues after the loss
/// of a worker gets the same bytes again; this needs FailureConfig::state_versions of 2 or more.
///
/// Give the dataset to one DeviceLoader, without shuffle and with one thread, and read it in one
/// `for`. All workers must call the function at the same line, once for each name. Throws
/// invalid_argument; unavailable if the job has no mesh; and no_space.
DatasetPtr experience(TrainContext& ctx, std::string_view name, std::vector<Field> fields,
                      const ExperienceOptions& options = {},
                      std::source_location where = std::source_location::current());

}  // namespace weft
