#pragma once
/// Leaves behind the files that `weft rescue` needs (transport/resume/rescue.hpp).

#include <cstdint>
#include <string>
#include <vector>

#include "actors/host/host_run.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/trainer/trainer_link.hpp"

namespace weft {

/// Writes the run card of a job whose state can be recovered after its processes have died. If the
/// job continues a rescued job, also writes its own id to the note that the rescued job left for
/// `weft inspect why`. A job continues a rescued one if a launcher has started the program again
/// and this is the program's `fit_number`-th fit(), or if the first of `resumes` is a checkpoint of
/// `weft rescue`. With `has_copies`, each host stores its own copies of checkpoints. Throws io.
void write_run_card(const HostRun& host, const Assignment& assignment,
                    const std::vector<ResumePoint>& resumes, int fit_number, bool has_copies);
/// Writes the run card of the part of a job on a host other than host 0. The job begins at
/// `begin_step`. Throws io.
void write_run_card_of_host(const HostRun& host, const Assignment& assignment,
                            std::uint64_t begin_step, bool has_copies);

/// Keeps the memory of a failed job, and logs that, if the job asks for it
/// (RunConfig::keep_for_rescue_s) and has completed steps that are in no checkpoint of `folder`. If
/// the trainer on host 0 has died, a job that survives losses also keeps the memory here, until
/// this user's next job, because the trainer's own memory is kept too. Must be called when no
/// process uses the memory any more.
void leave_for_rescue(HostRun& host, const std::string& folder, bool is_trainer_dead);

}  // namespace weft
