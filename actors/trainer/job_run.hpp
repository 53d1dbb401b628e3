#pragma once
/// One run of a job, from the reservation of its segments to its Result.

#include <memory>
#include <string>
#include <vector>

#include <weft/actors/trainer/job_spec.hpp>
#include <weft/actors/trainer/result.hpp>
#include <weft/actors/worker/worker.hpp>

namespace weft {

/// Runs on the calling thread until every process of the job has ended and every segment is
/// removed. `earlier_fits`: how this process's fit() calls before ended. SIGINT, SIGTERM
/// and SIGHUP cancel the job while it runs; one that comes when a loop in this process has not
/// returned for that ends the process. Throws no_space or io if it can't start, and what a callback
/// threw.
Result run_job(const JobSpec& spec, const std::vector<std::shared_ptr<Callback>>& callbacks,
               const BoundLoop& loop, const std::vector<std::string>& earlier_fits);

}  // namespace weft
