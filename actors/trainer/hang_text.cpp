#include "actors/trainer/hang_text.hpp"

#include <fmt/format.h>

namespace weft {

std::string describe(const Hang& hang, double seconds) {
  return hang.all ? fmt::format("no worker of the job has made a step, a run or a report for {} s",
                                seconds)
                  : fmt::format("others have waited {} s for it", seconds);
}

Sighting with_stack(Sighting seen, const JobSpec& spec, const std::string& run_dir) {
  if (spec.num_workers == 0) {
    seen.process = "is a thread of this process";
  } else if (seen.process != "is stopped") {  // or it can't say it
    seen.process += fmt::format("; its stack is in {}/worker-{}.log", run_dir, seen.worker);
  }
  return seen;
}

}  // namespace weft
