#pragma once
/// Checks the options of a Trainer, and converts them to a job that can be started.

#include <string>

#include <weft/job/config.hpp>

#include "actors/trainer/job_spec.hpp"

namespace weft {

/// Returns the job. Throws invalid_argument, mesh_mismatch or unavailable; the message names the
/// field, its value, the expected value and how to fix it. Throws no_space if this process may not
/// open as many files as the job needs. If the options have no name, the job's name is `program`.
JobSpec validate(const TrainerOptions& given, const std::string& program,
                 const HostPlace& place = {});

}  // namespace weft
