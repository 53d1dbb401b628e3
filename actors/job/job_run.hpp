#pragma once
/// Runs one job, from the reservation of its segments to its Result.

#include <functional>

#include <weft/job/result.hpp>

#include "actors/job/job_control.hpp"
#include "actors/job/job_request.hpp"

namespace weft {

/// Runs the job on the calling thread, until all its processes have ended and all its segments are
/// removed. Calls `started` once the job exists, before any part of it runs. Throws no_space, io or
/// unavailable if the job can't start. Rethrows the exception of a callback.
Result run_job(const JobRequest& request, JobControl& control,
               const std::function<void()>& started = {});

}  // namespace weft
