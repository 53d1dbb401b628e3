#pragma once
/// What a job leaves for `weft rescue` (transport/resume/rescue.hpp).

#include <cstdint>
#include <optional>

#include "actors/host/job_place.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/trainer/job_spec.hpp"
#include "actors/trainer/trainer_link.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// Writes the run card of a job whose state can be had once its processes are dead. Notes for
/// `weft inspect why` which job it continues, if one has left a note: as the program's
/// `fit_number`-th fit(), which a launcher has started again, or from a checkpoint of
/// `weft rescue`. Throws io.
void write_run_card(const JobPlace& place, const JobSpec& spec, const Assignment& assignment,
                    const std::optional<ResumePoint>& resume, int fit_number);

/// Leaves the memory of a job that has not ended well where it is, if the job asks for that
/// (RunConfig::keep_for_rescue_s) and has made steps that are in no checkpoint; says so in the log.
/// For when no process uses the memory any more.
void leave_for_rescue(JobPlace& place, const JobSpec& spec, const Assignment& assignment,
                      const JobMemory& memory);

}  // namespace weft
