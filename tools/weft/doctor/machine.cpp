#include "tools/weft/doctor/machine.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "transport/job/remains.hpp"
#include "transport/memory/huge_pages.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShm = "/dev/shm";

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Returns the number after `name` in lines of "name: 12 kB"; 0 if there is none.
std::uint64_t number_in(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream rest(line.substr(name.size()));
    std::uint64_t value = 0;
    rest >> value;
    return value;
  }
  return 0;
}

bool is_numbered(const std::string& name, const std::string& stem) {
  return name.size() > stem.size() && name.starts_with(stem) &&
         name.find_first_not_of("0123456789", stem.size()) == name.npos;
}

std::vector<std::string> numbered_in(const char* folder, const std::string& stem) {
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (is_numbered(entry.path().filename().string(), stem)) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

Machine::Shm read_shm() {
  Machine::Shm shm{.huge_pages = huge_pages_of_shm()};
  struct statvfs folder {};
  shm.usable = ::statvfs(kShm, &folder) == 0 && ::access(kShm, W_OK | X_OK) == 0;
  if (!shm.usable) return shm;
  shm.total_bytes = folder.f_blocks * folder.f_frsize;
  shm.free_bytes = folder.f_bavail * folder.f_frsize;
  try {
    for (const JobRemains& remains : find_remains()) {
      if (remains.life != JobLife::dead) continue;
      ++shm.dead_jobs;
      shm.dead_bytes += remains.bytes;
    }
  } catch (const Error&) {
    // The control folders can't be read. `weft sweep` shows the reason.
  }
  return shm;
}

std::uint64_t limit_of(rlim_t limit) { return limit == RLIM_INFINITY ? kNoLimit : limit; }

std::uint64_t threads_of_user() {
  std::uint64_t count = 0;
  for (const std::string& process : numbered_in("/proc", "")) {
    struct stat owner {};
    if (::stat(process.c_str(), &owner) != 0 || owner.st_uid != ::getuid()) continue;
    count += number_in(read(process + "/status"), "Threads:");
  }
  return count;
}

Machine::Limits read_limits() {
  Machine::Limits limits{.files = count_open_files(), .threads = threads_of_user()};
  rlimit limit{};
  // The limit doesn't apply to processes of root.
  if (::getuid() != 0 && ::getrlimit(RLIMIT_NPROC, &limit) == 0) {
    limits.processes = limit_of(limit.rlim_cur);
    limits.processes_hard = limit_of(limit.rlim_max);
  }
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0) limits.file_bytes = limit_of(limit.rlim_cur);
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) limits.locked_bytes = limit_of(limit.rlim_cur);
  return limits;
}

/// Reads the smallest quota among those of this process's cgroup (version 2) and its ancestors, and
/// the quotas of version 1.
void read_cgroup(Machine& machine) {
  std::istringstream lines(read("/proc/self/cgroup"));
  std::string own;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::/")) own = line.substr(4);
  }
  const fs::path root = "/sys/fs/cgroup";
  const auto take = [&](double cores, const std::string& memory) {
    if (cores > 0 && (machine.quota_cores == 0 || cores < machine.quota_cores)) {
      machine.quota_cores = cores;
    }
    std::uint64_t bytes = 0;
    if (std::istringstream(memory) >> bytes) {
      machine.memory_quota_bytes = std::min(machine.memory_quota_bytes, bytes);
    }
  };
  for (fs::path group = root / own;; group = group.parent_path()) {
    take(parse_cpu_max(read(group / "cpu.max")), read(group / "memory.max"));
    if (group == root || group == group.root_path()) break;
  }
  take(parse_cpu_max(read(root / "cpu/cpu.cfs_quota_us") + ' ' +
                     read(root / "cpu/cpu.cfs_period_us")),
       "");
}

Machine::Clock read_clock() {
  const std::string cpu = read("/proc/cpuinfo");
  std::string source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  source.erase(source.find_last_not_of(" \n") + 1);
  const auto has = [&](const char* flag) { return cpu.find(flag) != cpu.npos; };
  return {.has_tsc = has(" tsc "),
          .constant = has(" constant_tsc"),
          .nonstop = has(" nonstop_tsc"),
          .source = source};
}

}  // namespace

double parse_cpu_max(const std::string& text) {
  std::istringstream in(text);
  double quota = 0;
  double period = 0;
  return in >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

Machine read_machine() {
  Machine machine;
  machine.shm = read_shm();
  machine.limits = read_limits();
  machine.cores = usable_cores();
  read_cgroup(machine);
  machine.memory_available_bytes = number_in(read("/proc/meminfo"), "MemAvailable:") * 1024;
  machine.numa_nodes = static_cast<int>(numbered_in("/sys/devices/system/node", "node").size());
  machine.clock = read_clock();
  if (int scope = 0; std::istringstream(read("/proc/sys/kernel/yama/ptrace_scope")) >> scope) {
    machine.ptrace_scope = scope;
  }
  for (const char* stem : {"nvidia", "accel"}) {
    for (std::string& device : numbered_in("/dev", stem)) {
      machine.accelerators.push_back(std::move(device));
    }
  }
  if (fs::exists("/dev/kfd")) machine.accelerators.emplace_back("/dev/kfd");
  return machine;
}

}  // namespace weft
