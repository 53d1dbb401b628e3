#pragma once
/// Finds the checkpoint that a job continues (RunConfig::resume) and the best one that it leaves.

#include <optional>

#include "actors/trainer/trainer_link.hpp"

namespace weft {

/// The checkpoint that `spec` asks for: for "auto" the newest that can be read, with a warning for
/// each newer one; nothing to begin at step 0. Throws not_found, corrupt, version or io if the one
/// that is asked for can't be read; invalid_argument if spec.checkpoint.path has a later checkpoint
/// than the one that is asked for.
std::optional<ResumePoint> find_resume_point(const JobSpec& spec);

/// Result::best_checkpoint. What can't be read is a warning.
std::optional<Checkpoint> find_best_checkpoint(const CheckpointConfig& config);

}  // namespace weft
