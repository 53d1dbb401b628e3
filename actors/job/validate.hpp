#pragma once
/// Turns the options of a Trainer into a job that can be started, or says why not.

#include <string>

#include <weft/job/config.hpp>

#include "actors/trainer/job_spec.hpp"

namespace weft {

/// Throws invalid_argument, mesh_mismatch or unavailable; every message names the field, its value,
/// what was expected and how to mend it. Throws no_space where this process may not open as many
/// files as the job needs. `program` names the job where the options don't.
JobSpec validate(const TrainerOptions& given, const std::string& program);

}  // namespace weft
