#include "actors/trainer/hang_text.hpp"

#include <fmt/format.h>

#include "actors/process/log.hpp"
#include "actors/process/stack_dump.hpp"

namespace weft {

std::string describe(const Hang& hang, double seconds) {
  return hang.all ? fmt::format("no worker of the job has made a step, a run or a report for {} s",
                                seconds)
                  : fmt::format("others have waited {} s for it", seconds);
}

void warn_of_stack(int worker, const std::string& run_dir) {
  const std::string calls = last_stack(fmt::format("{}/worker-{}.log", run_dir, worker));
  if (calls.empty()) return;
  logger("weft.trainer")
      ->warn("worker {}, which hangs, is here, innermost call first:\n{}", worker, calls);
}

Sighting with_stack(Sighting seen, const JobSpec& spec, const std::string& run_dir) {
  if (spec.num_workers == 0) {
    seen.process = "is a thread of this process";
  } else if (seen.process != "is stopped") {  // a stopped process can't write its stack
    seen.process += fmt::format("; its stack is in {}/worker-{}.log", run_dir, seen.worker);
  }
  return seen;
}

}  // namespace weft
