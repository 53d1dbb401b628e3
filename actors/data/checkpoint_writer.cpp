#include "actors/data/checkpoint_writer.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/process/failure.hpp"
#include "actors/process/log.hpp"
#include "transport/format/saved_notes.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/part_table.hpp"

namespace weft {
namespace {

/// The limit on a host's threads that write. More threads wouldn't write faster.
constexpr int kThreadsPerHost = 4;

/// Calls `function`. If that throws, only logs the error, because the save doesn't depend on it.
template <typename Function>
void try_to(const char* what, Function function) {
  try {
    function();
  } catch (const Error& e) {
    logger("weft.worker")->warn("can't {}: {}", what, e.what());
  }
}

RetentionPolicy policy_of(const CheckpointConfig& config) {
  using Best = RetentionPolicy::Best;
  const Best rated = config.best_mode == BestMode::max ? Best::max : Best::min;
  return {.max_to_keep = config.max_to_keep,
          .keep_every = static_cast<std::uint64_t>(config.keep_every),
          .best = config.best_by.empty() ? Best::newest : rated};
}

}  // namespace

CheckpointWriter::CheckpointWriter(WorkerLink& link, CheckpointWriterOptions options,
                                   std::function<void(std::uint64_t)> wait_for_run)
    : link_(link), options_(std::move(options)), wait_for_run_(std::move(wait_for_run)) {}

CheckpointWriter::~CheckpointWriter() {
  stop_ = true;
  link_.permits().leave_part();
  hurry();
}

void CheckpointWriter::hurry() {
  if (held_) held_->urgency.raise();
}

void CheckpointWriter::write(PartJob job) {
  hurry();
  if (thread_.joinable()) thread_.join();
  held_ = job.held;
  const std::atomic<bool>& is_dropped = link_.permits().begin_part(job.save);
  thread_ =
      std::jthread([this, job = std::move(job), &is_dropped]() mutable { run(job, is_dropped); });
}

void CheckpointWriter::run(PartJob& job, const std::atomic<bool>& is_dropped) {
  const std::string unfinished =
      unfinished_path(options_.config.path, job.table.step, options_.owner, job.save);
  PartWritten written{.worker = options_.worker,
                      .generation = options_.generation,
                      .step = job.table.step,
                      .save = job.save};
  try {
    write_part_of(job, unfinished, is_dropped);
  } catch (...) {
    const Thrown failure = describe(std::current_exception());
    written.error = static_cast<std::uint8_t>(failure.code);
    written.message = failure.message;
  }
  // Only the loop's thread may free the buffers, and it does so after held->end(). Therefore this
  // thread drops its references before it calls held->end().
  job.shards.clear();
  job.memory.clear();
  job.reads.clear();
  job.held->end();
  if (written.error != 0) {
    try_to("remove the rest of a part",
           [&] { remove_part(*options_.files, unfinished, options_.part, options_.num_parts); });
  }
  if (stop_) return;
  link_.part_written(written);
  if (options_.part == 0) end(job, unfinished);
}

void CheckpointWriter::write_part_of(PartJob& job, const std::string& unfinished,
                                     const std::atomic<bool>& is_dropped) {
  FileSystem& files = *options_.files;
  const std::string& folder = options_.config.path;
  make_folders(folder);
  (void)begin_checkpoint(files, folder, job.table.step, options_.owner, job.save);
  // No other save is in progress, so unfinished checkpoints of earlier saves can be removed.
  if (options_.part == 0) remove_unfinished(files, folder, unfinished);
  wait_for_run_(job.save);
  const PartOptions part{.threads = std::max(1, kThreadsPerHost / options_.num_parts),
                         .file = static_cast<std::uint32_t>(options_.part),
                         .urgency = &job.held->urgency};
  WorkCrew(1, part.urgency).each(job.reads.size(), [&](std::size_t i) { job.reads[i](); });
  const std::string path = unfinished + "/" + part_name(options_.part, options_.num_parts);
  auto stored = write_part(files, path, job.shards, part, is_dropped);
  for (int each = 0; each < options_.num_parts; ++each) {
    job.table.files.push_back(part_name(each, options_.num_parts));
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    job.table.tensors[job.tensors[i]].shards.push_back(std::move(stored[i]));
  }
  write_part_table(files, unfinished, options_.part, options_.num_parts, job.table);
}

/// Waits for the parts of all workers, then joins them to a checkpoint. If a part could not be
/// written, removes all parts. Only the writer of part 0 calls this, after it has written its own
/// part.
void CheckpointWriter::end(const PartJob& job, const std::string& unfinished) {
  const auto drop = [&] {
    try_to("remove an unfinished checkpoint",
           [&] { drop_checkpoint(*options_.files, unfinished); });
  };
  Permits& permits = link_.permits();
  if (!permits.wait_parts(job.save)) {
    if (permits.wait_end(job.save)) drop();  // else others may still write to it
    return;
  }
  const SaveEnded ended = join(job, unfinished);
  if (ended.error != 0) drop();
  link_.save_ended(ended);
  // Before the trainer has confirmed the save, a loop may have to continue from an older
  // checkpoint. Therefore older checkpoints are removed only after that.
  const auto known = permits.wait_end(job.save);
  if (!known) return;
  if (known->error == 0) {
    try_to("remove old checkpoints", [&] { remove_superseded(job.table.step); });
  } else if (ended.error == 0) {
    // The save failed because another host couldn't store its copy.
    try_to("remove a copy", [&] { (void)remove_checkpoint(*options_.files, ended.path); });
  }
}

SaveEnded CheckpointWriter::join(const PartJob& job, const std::string& unfinished) {
  SaveEnded ended{.worker = options_.worker,
                  .generation = options_.generation,
                  .step = job.table.step,
                  .save = job.save};
  try {
    ended.path = join_parts(*options_.files, options_.config.path, unfinished, options_.num_parts);
  } catch (...) {
    const Thrown failure = describe(std::current_exception());
    ended.error = static_cast<std::uint8_t>(failure.code);
    ended.message = failure.message;
  }
  return ended;
}

/// Removes older checkpoints that the checkpoint of this step supersedes. Keeps checkpoints of
/// later steps, which are copies of an interrupted save; the next save of the same step replaces
/// them. A checkpoint that a reader has open stays until the next call.
void CheckpointWriter::remove_superseded(std::uint64_t step) {
  const RetentionPolicy policy = policy_of(options_.config);
  if (policy.max_to_keep == 0) return;
  const std::string& folder = options_.config.path;
  // If a step was saved again, its earlier checkpoint is removed first. Otherwise that one would be
  // listed again once the later one is removed.
  for (const std::string& path : list_replaced_checkpoints(folder)) {
    (void)remove_checkpoint(*options_.files, path);
  }
  std::vector<RatedCheckpoint> rated;
  for (const CheckpointEntry& entry : list_checkpoints(folder)) {
    if (entry.step > step) break;
    rated.push_back({entry.step, entry.path, rating_of(entry.path)});
  }
  for (const RatedCheckpoint& old : superseded(std::move(rated), policy)) {
    if (remove_checkpoint(*options_.files, old.path)) ratings_.erase(old.path);
  }
}

/// Returns the metric of the checkpoint; std::nullopt if the checkpoint can't be read.
std::optional<double> CheckpointWriter::rating_of(const std::string& checkpoint) {
  const std::string& metric = options_.config.best_by;
  if (metric.empty()) return {};
  const auto [known, is_new] = ratings_.try_emplace(checkpoint);
  if (!is_new) return known->second;
  try {
    known->second = weft::rating_of(notes_of(read_manifest(checkpoint)), metric);
  } catch (const Error& e) {
    logger("weft.worker")->warn("{}", e.what());
  }
  return known->second;
}

}  // namespace weft
