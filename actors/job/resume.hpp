#pragma once
/// Finds the checkpoint from which a job continues (RunConfig::resume), and the best one after the
/// job.

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/trainer/trainer_link.hpp"

namespace weft {

/// Returns the checkpoint that `spec` asks for, or nothing if the job begins at step 0. For "auto",
/// returns the newest readable checkpoint, and warns of each newer one that can't be read; for a
/// job of several hosts, also returns earlier ones, since another host may lack its copy of a later
/// one. Throws not_found, corrupt, version or io if the requested checkpoint can't be read. Throws
/// invalid_argument if spec.checkpoint.path has a later checkpoint than the requested one.
std::vector<ResumePoint> find_resume_points(const JobSpec& spec);

/// Drops all points but that of `step`. Returns whether the first one has changed.
bool keep_only(std::uint64_t step, std::vector<ResumePoint>& points);

/// Returns Result::best_checkpoint. Warns of checkpoints that can't be read.
std::optional<Checkpoint> find_best_checkpoint(const CheckpointConfig& config);

}  // namespace weft
