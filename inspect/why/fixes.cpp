#include "inspect/why/fixes.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

std::string job_of(const Snapshot& now) { return now.job.empty() ? now.header.name : now.job; }

/// Returns the command in a form that reaches the host: "ssh node7 kill -CONT 4712".
std::string on_host(const Snapshot& now, int host, const std::string& command) {
  const HostSight* sight = now.host(std::max(host, 0));
  if (sight == nullptr || sight->via.empty()) return command;
  return fmt::format("{} {}", fmt::join(sight->via, " "), command);
}

std::string fix_of_busy(const Root& root, const Snapshot& now) {
  if (root.core_percent > 0 || root.pid == 0) {
    return "end the loop or shorten the work at the named line; if a step may take this long, use "
           "--patience S";
  }
  return fmt::format(
      "make sure that what the thread waits for happens, or fix the named line; {} "
      "writes the stack of the process into its log",
      on_host(now, root.host, fmt::format("kill -QUIT {}", root.pid)));
}

std::string fix_of_ended(const Root& root) {
  switch (root.cause) {
    case Cause::killed:
      return "find out who sent the signal (the kernel if memory ran out: see dmesg); to survive "
             "such a loss, use run.failure.max_failures or weft launch --max-failures 3";
    case Cause::crashed:
      return "fix the named line; WEFT_EAGER=1 runs the program op by op, for a debugger";
    case Cause::lost:
      return "read the end of the process's log in the run folder; to survive such a loss, use "
             "run.failure.max_failures or weft launch --max-failures 3";
    case Cause::no_space: return "free space on the named file system, or give another path";
    case Cause::uneven:
      return "end every worker's loop after the same number of steps and reads, and report at the "
             "same steps";
    case Cause::diverged:
      return "run the same tensor operations, reads and saves in the same order on every worker, "
             "and none of them under a condition that only some workers meet";
    default: return "fix the reported error at the named line, and start the job again";
  }
}

std::string fix_of_living(const Root& root, const Snapshot& now) {
  switch (root.cause) {
    case Cause::frozen:
      return "thaw the named cgroup: echo 0 > GROUP/cgroup.freeze, or for version 1: echo THAWED > "
             "GROUP/freezer.state";
    case Cause::held: return "continue the process in the debugger, or detach the debugger";
    case Cause::device:
      return "check the disk or device (dmesg): until it answers, the process handles no signal";
    case Cause::deadlock:
      return "release the lock before the named wait, or always take locks in the same order";
    case Cause::blocked:
      return "make the callback return, because it runs on the trainer's own thread";
    case Cause::busy: return fix_of_busy(root, now);
    case Cause::compiling:
    case Cause::loading:
      return "wait until it is done; WEFT_COMPILE_CACHE keeps plans, and a program with fewer ops "
             "compiles faster";
    case Cause::slow:
      return fmt::format(
          "weft inspect late {} shows the ops, and weft doctor the machine's faults; weft launch "
          "--bind cores gives each worker its own cores",
          job_of(now));
    default: return fix_of_ended(root);
  }
}

/// Commands for processes. Successive processes with the same command share it.
class PidCommands {
 public:
  void add(const std::string& command, int pid) {
    if (command != last_) commands_.push_back(command);
    last_ = command;
    commands_.back() += fmt::format(" {}", pid);
  }
  std::string text() const { return fmt::format("{}", fmt::join(commands_, "; ")); }

 private:
  std::vector<std::string> commands_;
  std::string last_;
};

/// Returns the commands that continue all stopped processes, the trainer first.
std::string command_for_stopped(const std::vector<Root>& roots, const Snapshot& now) {
  PidCommands commands;
  for (const bool trainer : {true, false}) {
    for (const Root& root : roots) {
      if (root.cause != Cause::stopped || root.workers.empty() != trainer) continue;
      for (const int pid : root.pids) commands.add(on_host(now, root.host, "kill -CONT"), pid);
    }
  }
  return commands.text();
}

}  // namespace

void add_fixes(std::vector<Root>& roots, const Snapshot& now) {
  const std::string go_on = command_for_stopped(roots, now);
  for (Root& root : roots) {
    if (!root.fix.empty()) continue;
    root.fix = root.cause == Cause::stopped ? go_on : fix_of_living(root, now);
  }
}

std::string fix_of_unknown(const Snapshot& now) {
  PidCommands stacks;
  for (const ActorRow& row : now.rows) {
    // SIGQUIT would end the trainer, which is also worker 0 if num_workers is 0.
    if (row.kind != ActorKind::worker || row.pid == 0 || now.id_of(row) == now.trainer_id()) {
      continue;
    }
    stacks.add(on_host(now, now.header.host_of(row.worker), "kill -QUIT"), row.pid);
  }
  const std::string end =
      on_host(now, now.header.host, fmt::format("kill -TERM {}", now.header.trainer_pid));
  std::string fix = fmt::format("weft inspect actors {} shows what every actor does", job_of(now));
  if (!stacks.text().empty()) {
    fix += fmt::format("; {} writes the stacks of the workers into their logs", stacks.text());
  }
  return fix + fmt::format("; {} ends the job", end);
}

}  // namespace weft
