#include <weft/checkpoint_manager.hpp>

#include <algorithm>

#include <fmt/ranges.h>

#include <weft/error.hpp>
#include <weft/train_context.hpp>

#include "actors/data/job_checkpoints.hpp"
#include "spmd/tensor/node.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft {

CheckpointManager::CheckpointManager() : checkpoints_(get_context().checkpoints().handle()) {}

JobCheckpoints& CheckpointManager::checkpoints() const {
  // On the loop's thread, which ends it.
  const std::shared_ptr<JobCheckpoints> checkpoints = checkpoints_.lock();
  if (checkpoints == nullptr) {
    fail(Errc::invalid_argument,
         "a CheckpointManager is used after the end of its loop: make it inside the loop");
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

LoadResult CheckpointManager::restore(std::uint64_t step, std::span<const Parameter> state,
                                      const LoadOptions& options, std::source_location where) {
  const auto entries = list_checkpoints(checkpoints().config().path);
  const auto found = std::ranges::find(entries, step, &CheckpointEntry::step);
  if (found == entries.end()) {
    fail(Errc::not_found, "restore at {}: {} has no checkpoint of step {}; it has those of {}",
         file_line(where), checkpoints().config().path, step,
         entries.empty() ? "no step" : fmt::format("steps {}", fmt::join(all_steps(), ", ")));
  }
  return load(state, found->path, options, where);
}

Config CheckpointManager::user() const {
  const std::string& from = checkpoints().resumed_from();
  if (from.empty()) return {};
  const Config stored = Config::parse(read_manifest(from).user_json, nullptr, false);
  return stored.is_object() && stored.contains("user") ? stored["user"] : Config();
}

}  // namespace weft
