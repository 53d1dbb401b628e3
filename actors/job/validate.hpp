#pragma once
/// Converts the options of a Trainer to a job that can be started, or says why that is impossible.

#include <string>

#include <weft/job/config.hpp>

#include "actors/trainer/job_spec.hpp"

namespace weft {

/// Returns the checked job. Throws invalid_argument, mesh_mismatch or unavailable; the message
/// names the field, its value, the expected value and how to fix it. Throws no_space if this
/// process may not open as many files as the job needs. `program` is the job's name if the options
/// have none.
JobSpec validate(const TrainerOptions& given, const std::string& program,
                 const HostPlace& place = {});

}  // namespace weft
