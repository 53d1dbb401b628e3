#pragma once
/// CheckpointWriter: writes a worker's parts of checkpoints on a thread of its own. Of the workers
/// that store to the same folder, the first one's writer also joins all their parts.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <weft/job/config.hpp>

#include "actors/runtime/held_buffers.hpp"
#include "actors/runtime/worker_link.hpp"
#include "data/files/file_system.hpp"
#include "transport/format/checkpoint_manifest.hpp"
#include "transport/format/saved_notes.hpp"
#include "transport/storage/part_writer.hpp"

namespace weft {

/// A worker's part of one checkpoint.
struct PartJob {
  std::uint64_t save = 0;      ///< the run number that the workers agreed on for this save
  CheckpointManifest table{};  ///< all tensors, with empty lists of shards
  std::vector<SourceShard> shards{};
  std::vector<std::size_t> tensors{};  ///< for each shard, the index of its tensor in
                                       ///< `table.tensors`
  std::vector<std::shared_ptr<const std::byte>> memory{};  ///< the memory that holds each shard
  std::vector<std::function<void()>> reads{};  ///< functions that read shards from a file into
                                               ///< their memory
  std::shared_ptr<HeldBuffers> held{};
};

struct CheckpointWriterOptions {
  int worker = 0;
  int part = 0;  ///< number of the worker's part among those in its folder; the writer of part 0
                 ///< joins them
  int num_parts = 1;
  std::uint64_t generation = 1;
  std::string owner{};  ///< part of the names of unfinished checkpoints, different in each job
  CheckpointConfig config{};
  FileSystem* files = &posix_file_system();
};

/// Only the loop's thread may use it.
class CheckpointWriter {
 public:
  /// The writer's thread calls `wait_for_run`. That function must return when run number `run` has
  /// written the elements of all shards.
  CheckpointWriter(WorkerLink& link, CheckpointWriterOptions options,
                   std::function<void(std::uint64_t run)> wait_for_run);
  /// Drops a save in progress.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Waits for the previous part, then begins to write this one. Tells the trainer when the part is
  /// durable, or why it isn't. The writer of part 0 also tells the trainer when the checkpoint is
  /// durable. A save that failed leaves no files.
  void write(PartJob job);
  /// Called when the loop waits for the part. From then on the part is written at normal priority.
  void hurry();

 private:
  void run(PartJob& job, const std::atomic<bool>& is_dropped);
  void write_part_of(PartJob& job, const std::string& unfinished,
                     const std::atomic<bool>& is_dropped);
  SaveEnded join(const PartJob& job, const std::string& unfinished);
  void end(const PartJob& job, const std::string& unfinished);
  void remove_superseded(std::uint64_t step);
  std::optional<double> rating_of(const std::string& checkpoint);

  WorkerLink& link_;
  const CheckpointWriterOptions options_;
  const std::function<void(std::uint64_t)> wait_for_run_;
  std::map<std::string, std::optional<double>> ratings_;  // by path
  std::shared_ptr<HeldBuffers> held_;                     // the buffers of the last part
  std::atomic<bool> stop_{false};
  std::jthread thread_;
};

}  // namespace weft
