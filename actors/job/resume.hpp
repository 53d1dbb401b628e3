#pragma once
/// Finds the checkpoint from which a job continues (RunConfig::resume), and the best one after the
/// job.

#include <optional>

#include "actors/trainer/trainer_link.hpp"

namespace weft {

/// Returns the checkpoint that `spec` asks for, or nothing if the job begins at step 0. For "auto",
/// returns the newest readable checkpoint, and warns of each newer one that can't be read. Throws
/// not_found, corrupt, version or io if the requested checkpoint can't be read. Throws
/// invalid_argument if spec.checkpoint.path has a later checkpoint than the requested one.
std::optional<ResumePoint> find_resume_point(const JobSpec& spec);

/// Returns Result::best_checkpoint. Warns of checkpoints that can't be read.
std::optional<Checkpoint> find_best_checkpoint(const CheckpointConfig& config);

}  // namespace weft
