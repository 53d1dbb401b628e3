#pragma once
/// One run of a job, from the reservation of its segments to its Result.

#include <functional>

#include <weft/job/result.hpp>

#include "actors/job/job_control.hpp"
#include "actors/job/job_request.hpp"

namespace weft {

/// Runs on the calling thread until every process of the job has ended and every segment is
/// removed. `started` is called once the job is there, before anything of it runs. Throws no_space,
/// io or unavailable if it can't start, and what a callback threw.
Result run_job(const JobRequest& request, JobControl& control,
               const std::function<void()>& started = {});

}  // namespace weft
