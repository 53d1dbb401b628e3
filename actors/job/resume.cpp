#include "actors/job/resume.hpp"

#include <ranges>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "data/remote/storages.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"
#include "transport/storage/host_folders.hpp"
#include "transport/storage/retention.hpp"

namespace weft {
namespace {

ResumePoint point_of(const std::string& path, bool is_of_hosts) {
  const CheckpointManifest manifest = read_manifest(path);
  require_files(path, manifest);
  return {.path = path,
          .step = manifest.step,
          .seed = manifest.seed,
          .copy_id = is_of_hosts ? id_of_copy(path) : "",
          .rescued_from = manifest.rescued_from,
          .commands = manifest.commands};
}

std::vector<ResumePoint> newest_readable(const std::vector<CheckpointEntry>& entries,
                                         bool is_of_hosts) {
  std::vector<ResumePoint> points;
  for (const CheckpointEntry& entry : std::views::reverse(entries)) {
    try {
      points.push_back(point_of(entry.path, is_of_hosts));
      if (points.size() == (is_of_hosts ? kOfferedMax : 1)) break;
    } catch (const Error& e) {
      logger("weft.trainer")->warn("skipped the checkpoint {}: {}", entry.path, e.what());
    }
  }
  if (points.empty() && !entries.empty()) {
    fail(Errc::corrupt,
         "run.resume = \"auto\": none of the {} checkpoints in the folder of {} can be read; move "
         "them away to begin at step 0",
         entries.size(), entries.back().path);
  }
  return points;
}

}  // namespace

std::vector<ResumePoint> find_resume_points(const JobSpec& spec) {
  const std::string& folder = spec.checkpoint.path;
  const auto entries = folder.empty() ? std::vector<CheckpointEntry>() : list_checkpoints(folder);
  const ResumeFrom& from = spec.resume;
  const bool is_of_hosts = spec.place.count > 1 && !is_remote(folder);
  if (from.kind == ResumeFrom::Kind::newest) return newest_readable(entries, is_of_hosts);
  std::vector<ResumePoint> points;
  if (from.kind == ResumeFrom::Kind::path) {
    const auto within = list_checkpoints(from.path);
    points.push_back(point_of(within.empty() ? from.path : within.back().path, is_of_hosts));
  }
  const std::uint64_t step = points.empty() ? 0 : points.front().step;
  if (!entries.empty() && (points.empty() || entries.back().step > step)) {
    fail(Errc::invalid_argument,
         "run.checkpoint.path = \"{}\" has a checkpoint of step {}, but the job begins at step "
         "{} (run.resume = \"{}\"): set run.resume to \"auto\" to continue from the newest "
         "checkpoint, or give another path",
         folder, entries.back().step, step, points.empty() ? "never" : from.path);
  }
  return points;
}

bool keep_only(std::uint64_t step, std::vector<ResumePoint>& points) {
  const bool is_another = !points.empty() && points.front().step != step;
  std::erase_if(points, [&](const ResumePoint& point) { return point.step != step; });
  return is_another;
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
