#include "actors/trainer/hang_text.hpp"

#include <fmt/format.h>

namespace weft {

std::string describe(const Hang& hang, double seconds) {
  return hang.all ? fmt::format("no worker of the job has made a step, a run or a report for {} s",
                                seconds)
                  : fmt::format("others have waited {} s for it", seconds);
}

Sighting with_stack(Sighting seen, int pid, const JobSpec& spec, const std::string& run_dir) {
  if (spec.num_workers == 0) {
    seen.process = "is a thread of this process";
  } else if (seen.process != "is stopped") {  // or it can't say it
    const std::string how = spec.hangs_are_losses()
                                ? "its stack is in"
                                : fmt::format("`kill -QUIT {}` writes its stack to", pid);
    seen.process += fmt::format("; {} {}/worker-{}.log", how, run_dir, seen.worker);
  }
  return seen;
}

}  // namespace weft
