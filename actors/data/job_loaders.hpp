#pragma once
/// JobLoaders: the DeviceLoaders of a worker's loop, in one generation.

#include <cstdint>
#include <memory>
#include <source_location>
#include <vector>

#include "actors/data/batch_source.hpp"
#include "transport/format/checkpoint_manifest.hpp"

namespace weft {

/// Used by the loop's thread.
class JobLoaders {
 public:
  /// `seed`: the job's. `stored`: the loaders in the checkpoint from which the loop goes on.
  JobLoaders(WorkerRuntime& runtime, const Recorder& recorder, std::uint64_t seed,
             std::vector<StoredLoader> stored)
      : runtime_(runtime), recorder_(recorder), seed_(seed), stored_(std::move(stored)) {}
  /// Closes those that are open.
  ~JobLoaders();
  JobLoaders(const JobLoaders&) = delete;
  JobLoaders& operator=(const JobLoaders&) = delete;

  /// See DeviceLoader's constructor.
  std::shared_ptr<BatchSource> open(DatasetPtr dataset, DeviceLoaderOptions options,
                                    const std::source_location& where);
  /// Those that this loop has made, for a checkpoint.
  const std::vector<StoredLoader>& made() const { return made_; }

 private:
  void compare(const StoredLoader& made, const std::source_location& where) const;

  WorkerRuntime& runtime_;
  const Recorder recorder_;
  const std::uint64_t seed_;
  const std::vector<StoredLoader> stored_;
  std::vector<StoredLoader> made_;
  std::vector<std::weak_ptr<BatchSource>> sources_;
};

}  // namespace weft
