#include "inspect/why/fixes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

std::string job_of(const Snapshot& now) { return now.job.empty() ? now.header.name : now.job; }

std::string fix_of_busy(const Root& root) {
  if (root.core_percent > 0 || root.pid == 0) {
    return "end the loop or shorten the work at the line named; where a step may take so long, "
           "ask with --patience S";
  }
  return fmt::format(
      "let what it waits for come, or correct the line named; kill -QUIT {} writes its stack into "
      "its log",
      root.pid);
}

std::string fix_of_ended(const Root& root) {
  switch (root.cause) {
    case Cause::killed:
      return "find who sent the signal (for want of memory it is the kernel: dmesg); "
             "run.failure.max_failures, or weft launch --max-failures 3, survives it";
    case Cause::crashed:
      return "correct the line named; WEFT_EAGER=1 runs the program op by op in a debugger";
    case Cause::lost:
      return "read the end of its log in the run folder; run.failure.max_failures, or weft launch "
             "--max-failures 3, survives it";
    case Cause::no_space: return "make room on the file system named, or give another path";
    case Cause::uneven:
      return "let every worker's loop end after the same number of steps and of reads, and report "
             "at the same steps";
    case Cause::diverged:
      return "do the same tensor operations, reads and saves in the same order on every worker: "
             "none of them under a condition that only some workers meet";
    default: return "correct what is named, at the line named, and start the job again";
  }
}

std::string fix_of_living(const Root& root, const Snapshot& now) {
  switch (root.cause) {
    case Cause::frozen:
      return "thaw the cgroup named: echo 0 > GROUP/cgroup.freeze, or of version 1: echo THAWED > "
             "GROUP/freezer.state";
    case Cause::held: return "continue it in the debugger, or detach the debugger";
    case Cause::device:
      return "look after the disk or device (dmesg): until it answers, the process takes no signal";
    case Cause::deadlock:
      return "release the lock before the wait named, or take locks in one order";
    case Cause::blocked: return "let the callback return: it runs on the trainer's own thread";
    case Cause::busy: return fix_of_busy(root);
    case Cause::compiling:
    case Cause::loading:
      return "wait for it; WEFT_COMPILE_CACHE keeps plans, and fewer ops in one program take less";
    case Cause::slow:
      return fmt::format(
          "weft inspect late {} names the ops, weft doctor the machine's faults; weft launch "
          "--bind "
          "cores gives each worker cores of its own",
          job_of(now));
    default: return fix_of_ended(root);
  }
}

}  // namespace

void add_fixes(std::vector<Root>& roots, const Snapshot& now) {
  std::vector<int> stopped;
  for (const bool trainer : {true, false}) {
    for (const Root& root : roots) {
      if (root.cause != Cause::stopped || root.workers.empty() != trainer) continue;
      stopped.insert(stopped.end(), root.pids.begin(), root.pids.end());
    }
  }
  for (Root& root : roots) {
    if (!root.fix.empty()) continue;
    root.fix = root.cause == Cause::stopped ? fmt::format("kill -CONT {}", fmt::join(stopped, " "))
                                            : fix_of_living(root, now);
  }
}

}  // namespace weft
