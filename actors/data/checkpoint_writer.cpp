#include "actors/data/checkpoint_writer.hpp"

#include <sched.h>

#include <exception>
#include <utility>

#include <nlohmann/json.hpp>

#include <weft/error.hpp>

#include "actors/process/failure.hpp"
#include "actors/process/log.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/part_table.hpp"

namespace weft {
namespace {

/// Threads that the calling one starts inherit it.
void take_idle_priority() {
  const sched_param none{};
  (void)::sched_setscheduler(0, SCHED_IDLE, &none);  // a wish: without it the save is no less right
}

RetentionPolicy policy_of(const CheckpointConfig& config) {
  using Best = RetentionPolicy::Best;
  const Best rated = config.best_mode == "max" ? Best::max : Best::min;
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
  link_.permits().wake();
}

void CheckpointWriter::write(PartJob job) {
  if (thread_.joinable()) thread_.join();
  thread_ = std::jthread([this, job = std::move(job)]() mutable { run(job); });
}

void CheckpointWriter::run(PartJob& job) {
  if (job.in_background) take_idle_priority();
  PartWritten written{.worker = options_.worker,
                      .generation = options_.generation,
                      .step = job.table.step,
                      .save = job.save};
  std::string unfinished;
  try {
    unfinished = write_part_of(job);
  } catch (...) {
    const Thrown failure = describe(std::current_exception());
    written.error = static_cast<std::uint8_t>(failure.code);
    written.message = failure.message;
  }
  job.held->end();
  if (stop_) return;
  link_.part_written(written);
  if (options_.worker == 0 && link_.permits().wait_parts(job.save, stop_)) join(job, unfinished);
}

/// Returns the unfinished checkpoint's folder.
std::string CheckpointWriter::write_part_of(PartJob& job) {
  FileSystem& files = posix_file_system();
  const std::string& folder = options_.config.path;
  make_folders(folder);
  const std::string unfinished =
      begin_checkpoint(files, folder, job.table.step, options_.owner, job.save);
  // When this save begins, no worker writes an earlier one.
  if (options_.worker == 0) remove_unfinished(files, folder, unfinished);
  wait_for_run_(job.save);
  for (const auto& read : job.reads) read();
  const auto part = static_cast<std::uint32_t>(options_.worker);
  const std::string path = unfinished + "/" + part_name(options_.worker, options_.num_workers);
  auto stored = write_part(files, path, job.shards, {.file = part}, stop_);
  for (int worker = 0; worker < options_.num_workers; ++worker) {
    job.table.files.push_back(part_name(worker, options_.num_workers));
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    job.table.tensors[job.tensors[i]].shards.push_back(std::move(stored[i]));
  }
  write_part_table(files, unfinished, options_.worker, options_.num_workers, job.table);
  return unfinished;
}

void CheckpointWriter::join(const PartJob& job, const std::string& unfinished) {
  SaveEnded ended{.generation = options_.generation, .step = job.table.step, .save = job.save};
  try {
    ended.path =
        join_parts(posix_file_system(), options_.config.path, unfinished, options_.num_workers);
  } catch (...) {
    const Thrown failure = describe(std::current_exception());
    ended.error = static_cast<std::uint8_t>(failure.code);
    ended.message = failure.message;
  }
  link_.save_ended(ended);
  if (ended.error != 0) return;
  try {
    remove_superseded();
  } catch (const Error& e) {
    logger("weft.worker")->warn("old checkpoints stay in {}: {}", options_.config.path, e.what());
  }
}

void CheckpointWriter::remove_superseded() {
  const RetentionPolicy policy = policy_of(options_.config);
  if (policy.max_to_keep == 0) return;
  std::vector<RatedCheckpoint> rated;
  for (const CheckpointEntry& entry : list_checkpoints(options_.config.path)) {
    rated.push_back({entry.step, entry.path, rating_of(entry.path)});
  }
  for (const RatedCheckpoint& old : superseded(std::move(rated), policy)) {
    remove_checkpoint(posix_file_system(), old.path);
    ratings_.erase(old.path);
  }
}

/// Of a checkpoint that can't be read: none.
std::optional<double> CheckpointWriter::rating_of(const std::string& checkpoint) {
  const std::string& metric = options_.config.best_by;
  if (metric.empty()) return {};
  const auto [known, is_new] = ratings_.try_emplace(checkpoint);
  if (!is_new) return known->second;
  try {
    const Config user = Config::parse(read_manifest(checkpoint).user_json);
    const Config& rating = user.at("metrics").at(metric);
    if (rating.is_number()) known->second = rating.get<double>();
  } catch (const Error& e) {
    logger("weft.worker")->warn("{}", e.what());
  } catch (const Config::exception&) {
    // Another program's, or saved without metrics.
  }
  return known->second;
}

}  // namespace weft
