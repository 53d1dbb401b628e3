#pragma once
/// Leaves behind the files that `weft rescue` needs (transport/resume/rescue.hpp).

#include <cstdint>
#include <vector>

#include "actors/host/job_place.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/trainer/job_spec.hpp"
#include "actors/trainer/trainer_link.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// Writes the run card of a job whose state can be recovered after its processes have died. If this
/// job continues a rescued one, also writes its id to the note that the rescued job left for `weft
/// inspect why`. That is the case if a launcher has started the program again and this is the
/// program's `fit_number`-th fit(), or if the first of `resumes` is a checkpoint of `weft rescue`.
/// Throws io.
void write_run_card(const JobPlace& place, const JobSpec& spec, const Assignment& assignment,
                    const std::vector<ResumePoint>& resumes, int fit_number);

/// Keeps the memory of a job that failed, if the job asks for that (RunConfig::keep_for_rescue_s)
/// and has completed steps that are in no checkpoint. Logs that it does so. Must be called when no
/// process uses the memory any more.
void leave_for_rescue(JobPlace& place, const JobSpec& spec, const Assignment& assignment,
                      const JobMemory& memory);

}  // namespace weft
