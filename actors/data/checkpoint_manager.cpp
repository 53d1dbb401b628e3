#include <weft/train/checkpoint_manager.hpp>

#include <algorithm>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>
#include <weft/train/train_context.hpp>

#include "actors/data/job_checkpoints.hpp"
#include "spmd/tensor/node.hpp"
#include "transport/format/saved_notes.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/retention.hpp"

namespace weft {
CheckpointManager::CheckpointManager() : checkpoints_(get_context().checkpoints().add_manager()) {}

JobCheckpoints& CheckpointManager::checkpoints() const {
  // Only this thread, the loop's, destroys the checkpoints, so they exist until this call returns.
  const std::shared_ptr<JobCheckpoints> checkpoints = checkpoints_.lock();
  if (checkpoints == nullptr) {
    fail(Errc::invalid_argument,
         "a CheckpointManager is used after its training loop has ended: make it inside the loop");
  }
  return *checkpoints;
}

bool CheckpointManager::should_save() const { return checkpoints().is_due(); }

bool CheckpointManager::save(std::span<const Parameter> state, const SaveOptions& options,
                             std::source_location where) {
  if (!options.force && !should_save()) return false;
  checkpoints().save(state, options, false, where);
  return true;
}

bool CheckpointManager::save_async(std::span<const Parameter> state, const SaveOptions& options,
                                   std::source_location where) {
  if (!options.force && !should_save()) return false;
  checkpoints().save(state, options, true, where);
  return true;
}

void CheckpointManager::wait() { checkpoints().wait(true); }

std::vector<std::uint64_t> CheckpointManager::all_steps() const {
  std::vector<std::uint64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(checkpoints().config().path)) {
    steps.push_back(entry.step);
  }
  return steps;
}

std::optional<std::uint64_t> CheckpointManager::latest_step() const {
  const std::vector<std::uint64_t> steps = all_steps();
  return steps.empty() ? std::nullopt : std::optional(steps.back());
}

std::optional<std::uint64_t> CheckpointManager::best_step(std::source_location where) const {
  const CheckpointConfig& config = checkpoints().config();
  if (config.best_by.empty()) {
    fail(Errc::invalid_argument,
         "best_step at {}: run.checkpoint.best_by is empty; set it to the name of the metric in "
         "SaveOptions::metrics by which checkpoints are compared",
         file_line(where));
  }
  const auto best = find_best(config.path, config.best_by, config.best_mode == BestMode::max);
  return best ? std::optional(best->step) : std::nullopt;
}

std::string CheckpointManager::path_of(std::uint64_t step, const char* call,
                                       const std::source_location& where) const {
  const auto entries = list_checkpoints(checkpoints().config().path);
  const auto found = std::ranges::find(entries, step, &CheckpointEntry::step);
  if (found == entries.end()) {
    fail(Errc::not_found, "{} at {}: {} has no checkpoint of step {}; it has {}", call,
         file_line(where), checkpoints().config().path, step,
         entries.empty() ? "no checkpoints"
                         : fmt::format("checkpoints of steps {}", fmt::join(all_steps(), ", ")));
  }
  return found->path;
}

CheckpointInfo CheckpointManager::info(std::uint64_t step, std::source_location where) const {
  return checkpoint_info(path_of(step, "info", where));
}

LoadResult CheckpointManager::restore(std::uint64_t step, std::span<const Parameter> state,
                                      const LoadOptions& options, std::source_location where) {
  return load(state, path_of(step, "restore", where), options, where);
}

Config CheckpointManager::user() const {
  const std::string& from = checkpoints().resumed_from();
  return from.empty() ? Config() : notes_of(read_manifest(from)).user;
}

CheckpointInfo checkpoint_info(const std::string& path) {
  const CheckpointManifest manifest = read_manifest(path);
  SavedNotes notes = notes_of(manifest);
  return {.path = path,
          .step = manifest.step,
          .seed = manifest.seed,
          .metrics = std::move(notes.metrics),
          .user = std::move(notes.user)};
}

std::vector<CheckpointInfo> list_checkpoint_infos(const std::string& folder) {
  std::vector<CheckpointInfo> infos;
  for (const CheckpointEntry& entry : list_checkpoints(folder)) {
    infos.push_back(checkpoint_info(entry.path));
  }
  return infos;
}

}  // namespace weft
