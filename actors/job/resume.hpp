#pragma once
/// Finds the checkpoint from which a job continues (RunConfig::resume), and the job's best
/// checkpoint.

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/trainer/trainer_link.hpp"

namespace weft {

/// Returns the checkpoint that `spec` asks for, or nothing if the job begins at step 0. For "auto",
/// returns the newest readable checkpoint, and warns of each newer one that can't be read. For a
/// job of several hosts, also returns earlier checkpoints, since another host may lack its copy of
/// the newest one. Throws not_found, corrupt, version or io if the requested checkpoint can't be
/// read. Throws invalid_argument if spec.checkpoint.path has a later checkpoint than the requested
/// one.
std::vector<ResumePoint> find_resume_points(const JobSpec& spec);

/// Drops all points except that of `step`. Returns whether the first point is another one now.
bool keep_only(std::uint64_t step, std::vector<ResumePoint>& points);

/// Returns the job's Result::best_checkpoint. Warns of checkpoints that can't be read.
std::optional<Checkpoint> find_best_checkpoint(const CheckpointConfig& config);

}  // namespace weft
