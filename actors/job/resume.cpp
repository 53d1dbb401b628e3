#include "actors/job/resume.hpp"

#include <ranges>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"
#include "transport/storage/retention.hpp"

namespace weft {
namespace {

ResumePoint point_of(const std::string& path) {
  const CheckpointManifest manifest = read_manifest(path);
  require_files(path, manifest);
  return {.path = path,
          .step = manifest.step,
          .seed = manifest.seed,
          .rescued_from = manifest.rescued_from,
          .commands = manifest.commands};
}

std::optional<ResumePoint> newest_readable(const std::vector<CheckpointEntry>& entries) {
  for (const CheckpointEntry& entry : std::views::reverse(entries)) {
    try {
      return point_of(entry.path);
    } catch (const Error& e) {
      logger("weft.trainer")->warn("skipped the checkpoint {}: {}", entry.path, e.what());
    }
  }
  if (!entries.empty()) {
    fail(Errc::corrupt,
         "run.resume = \"auto\": none of the {} checkpoints in the folder of {} can be read; move "
         "them away to begin at step 0",
         entries.size(), entries.back().path);
  }
  return {};
}

}  // namespace

std::optional<ResumePoint> find_resume_point(const JobSpec& spec) {
  const std::string& folder = spec.checkpoint.path;
  const auto entries = folder.empty() ? std::vector<CheckpointEntry>() : list_checkpoints(folder);
  const ResumeFrom& from = spec.resume;
  if (from.kind == ResumeFrom::Kind::newest) return newest_readable(entries);
  std::optional<ResumePoint> point;
  if (from.kind == ResumeFrom::Kind::path) {
    const auto within = list_checkpoints(from.path);
    point = point_of(within.empty() ? from.path : within.back().path);
  }
  const std::uint64_t step = point ? point->step : 0;
  if (!entries.empty() && (!point || entries.back().step > step)) {
    fail(Errc::invalid_argument,
         "run.checkpoint.path = \"{}\" has a checkpoint of step {}, but the job begins at step "
         "{} (run.resume = \"{}\"): set run.resume to \"auto\" to continue from the newest "
         "checkpoint, or give another path",
         folder, entries.back().step, step, point ? from.path : "never");
  }
  return point;
}

std::optional<Checkpoint> find_best_checkpoint(const CheckpointConfig& config) {
  if (config.best_by.empty()) return {};
  try {
    const auto best = find_best(config.path, config.best_by, config.best_mode == BestMode::max);
    return best ? std::optional(Checkpoint{best->path}) : std::nullopt;
  } catch (const Error& e) {
    logger("weft.trainer")->warn("can't look for the best checkpoint: {}", e.what());
    return {};
  }
}

}  // namespace weft
