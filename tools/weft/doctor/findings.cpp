#include "tools/weft/doctor/findings.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
/// A /dev/shm of less than this size is reported as small. Docker gives a container 64 MiB by
/// default.
constexpr std::uint64_t kSmallBytes = 1024 * kMiB;
/// The maximum number of workers on one host.
constexpr int kWorkersMax = 256;
/// The number of threads of a worker with one chip: loop, chip, control, CAF's threads, a loader's.
constexpr std::uint64_t kThreadsOfWorker = 12;
/// The size of an arena's file, unless WEFT_ARENA_BYTES is set.
constexpr std::uint64_t kArenaBytes = std::uint64_t{8} << 30;

std::string text_of(std::uint64_t limit) {
  return limit == kNoLimit ? "unlimited" : std::to_string(limit);
}

Finding of_shm(const Machine::Shm& shm) {
  if (!shm.usable) {
    return {"/dev/shm", "can't be written to", Level::refusal,
            "no job can run: mount -t tmpfs -o mode=1777 tmpfs /dev/shm"};
  }
  Finding finding{"/dev/shm",
                  fmt::format("{} of {} MiB free", shm.free_bytes / kMiB, shm.total_bytes / kMiB)};
  if (shm.free_bytes >= kSmallBytes) return finding;
  const std::uint64_t wanted_mib = (shm.total_bytes - shm.free_bytes + kSmallBytes) / kMiB;
  finding.level = Level::advice;
  finding.advice = fmt::format(
      "this is little; enlarge it: mount -o remount,size={}m /dev/shm, or in a container "
      "docker run --shm-size={}m",
      wanted_mib, wanted_mib);
  return finding;
}

Finding of_dead_jobs(const Machine::Shm& shm) {
  if (shm.dead_jobs == 0) return {"dead jobs", "no dead job holds memory"};
  return {"dead jobs", fmt::format("{} in /dev/shm, {} MiB", shm.dead_jobs, shm.dead_bytes / kMiB),
          Level::advice, "their memory stays in use until you run: weft sweep"};
}

Finding of_huge_pages(const Machine::Shm& shm) {
  Finding finding{"huge pages", fmt::format("{} in /dev/shm", shm.huge_pages)};
  if (shm.huge_pages == "never") {
    finding.level = Level::advice;
    finding.advice =
        "the first access to memory is slow: mount -o remount,huge=advise /dev/shm (as root)";
  }
  return finding;
}

Finding of_memory(const Machine& machine) {
  const bool has_quota = machine.memory_quota_bytes != kNoLimit;
  Finding finding{"memory", fmt::format("{} MiB available", machine.memory_available_bytes / kMiB)};
  if (has_quota) {
    finding.found += fmt::format(", {} MiB for this cgroup", machine.memory_quota_bytes / kMiB);
  }
  // Pages of /dev/shm count as memory of the cgroup that first uses them, so the quota limits them.
  if (has_quota && machine.shm.usable && machine.memory_quota_bytes < machine.shm.free_bytes) {
    finding.level = Level::advice;
    finding.advice = fmt::format(
        "the kernel kills a job that uses all of /dev/shm; raise the limit: docker run "
        "--memory={}m, or systemctl set-property UNIT MemoryMax={}M",
        machine.shm.free_bytes / kMiB + 1024, machine.shm.free_bytes / kMiB + 1024);
  }
  return finding;
}

Finding of_cores(const Machine& machine) {
  Finding finding{"cores", fmt::format("{} usable", machine.cores)};
  if (machine.quota_cores <= 0) return finding;
  finding.found +=
      fmt::format("; this cgroup may use the CPU time of {:g} cores", machine.quota_cores);
  if (machine.quota_cores < machine.cores) {
    finding.level = Level::advice;
    finding.advice = fmt::format(
        "chips beyond {} are throttled; raise the quota: docker run --cpus={}, or systemctl "
        "set-property UNIT CPUQuota={}%",
        std::max(1, static_cast<int>(machine.quota_cores)), machine.cores, machine.cores * 100);
  }
  return finding;
}

Finding of_open_files(const Machine& machine) {
  const OpenFiles& files = machine.limits.files;
  const auto needed = [&](int workers) {
    return files.open + open_files_of_job(workers, workers, false);
  };
  int workers = 0;
  while (workers < kWorkersMax && needed(workers + 1) <= files.limit) ++workers;
  Finding finding{"open files", fmt::format("{} allowed, enough for {} workers with one chip each",
                                            files.limit, workers)};
  const int wanted = std::clamp(machine.cores, 1, kWorkersMax);
  if (workers >= wanted) return finding;
  finding.level = workers == 0 ? Level::refusal : Level::advice;
  finding.advice =
      fmt::format("{}one worker for each core needs {}: {}", workers == 0 ? "no job can run: " : "",
                  needed(wanted), how_to_allow_open_files(needed(wanted), files));
  return finding;
}

Finding of_processes(const Machine& machine) {
  const Machine::Limits& limits = machine.limits;
  Finding finding{"processes", fmt::format("{} threads of this user, limit {}", limits.threads,
                                           text_of(limits.processes))};
  if (limits.processes == kNoLimit) return finding;
  const auto wanted = limits.threads + kThreadsOfWorker * static_cast<std::uint64_t>(machine.cores);
  if (wanted <= limits.processes) return finding;
  finding.level = Level::advice;
  finding.advice = fmt::format(
      "a worker for each core needs {}: {}", wanted,
      wanted <= limits.processes_hard
          ? fmt::format("ulimit -u {}", wanted)
          : fmt::format("\"USER hard nproc {}\" in /etc/security/limits.conf (as root)", wanted));
  return finding;
}

Finding of_file_size(const Machine& machine) {
  const std::uint64_t bytes = machine.limits.file_bytes;
  if (bytes >= kArenaBytes) return {"file size", text_of(bytes)};
  return {"file size", fmt::format("at most {} MiB", bytes / kMiB), Level::refusal,
          "no job can run, because its arenas are sparse files of 8 GiB: ulimit -f unlimited"};
}

/// Reports the limit of locked memory. Chips that are threads lock no memory, but the driver of
/// another kind of chip does.
Finding of_locked_memory(const Machine& machine) {
  const std::uint64_t bytes = machine.limits.locked_bytes;
  return {"locked memory",
          bytes == kNoLimit ? "unlimited" : fmt::format("at most {} KiB", bytes / 1024)};
}

Finding of_nodes(const Machine& machine) {
  Finding finding{"NUMA nodes",
                  machine.numa_nodes > 0 ? std::to_string(machine.numa_nodes) : "unknown"};
  if (machine.numa_nodes > 1) {
    finding.level = Level::advice;
    finding.advice =
        "memory of another node is slow: weft launch --bind cores keeps each worker on its own "
        "node";
  }
  return finding;
}

/// Reports the clock. Events of the black box get their times from rdtsc if that is a reliable
/// clock.
Finding of_clock(const Machine::Clock& clock) {
  if (!clock.has_tsc) return {"clock", "of the system"};
  const bool invariant = clock.constant && clock.nonstop;
  Finding finding{"clock", fmt::format("TSC {}, the kernel uses {}",
                                       invariant ? "constant and nonstop" : "not invariant",
                                       clock.source.empty() ? "an unknown clock" : clock.source)};
  if (invariant && clock.source == "tsc") return finding;
  finding.level = Level::advice;
  finding.advice =
      invariant ? "events cost twice the time; to use the TSC: echo tsc > "
                  "/sys/devices/system/clocksource/clocksource0/current_clocksource (as root)"
                : "events cost twice the time; in a virtual machine, give it the host's TSC: qemu "
                  "-cpu host,+invtsc";
  return finding;
}

Finding of_ptrace(const Machine& machine) {
  if (machine.ptrace_scope.value_or(0) == 0) {
    return {"ptrace", "own processes may be traced"};
  }
  return {"ptrace", fmt::format("yama's ptrace_scope is {}", *machine.ptrace_scope), Level::advice,
          "other processes can't debug a job or read its stacks; to allow it: sysctl "
          "kernel.yama.ptrace_scope=0 (as root), or in a container docker run --cap-add "
          "SYS_PTRACE"};
}

Finding of_accelerators(const Machine& machine) {
  if (machine.accelerators.empty()) return {"accelerators", "none; chips are threads"};
  return {"accelerators", fmt::format("{}; weft devices shows their plug-ins",
                                      fmt::join(machine.accelerators, ", "))};
}

}  // namespace

const char* to_string(Level level) {
  switch (level) {
    case Level::good: return "good";
    case Level::advice: return "advice";
    case Level::refusal: return "refusal";
  }
  return "?";
}

std::vector<Finding> examine(const Machine& machine) {
  return {of_shm(machine.shm),       of_dead_jobs(machine.shm), of_huge_pages(machine.shm),
          of_memory(machine),        of_cores(machine),         of_nodes(machine),
          of_open_files(machine),    of_processes(machine),     of_file_size(machine),
          of_locked_memory(machine), of_clock(machine.clock),   of_ptrace(machine),
          of_accelerators(machine)};
}

bool is_usable(const std::vector<Finding>& findings) {
  return std::ranges::none_of(
      findings, [](const Finding& finding) { return finding.level == Level::refusal; });
}

}  // namespace weft
