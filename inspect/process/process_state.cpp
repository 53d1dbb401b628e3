#include "inspect/process/process_state.hpp"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "data/files/utf8.hpp"
#include "transport/blackbox/box_clock.hpp"

namespace weft {
namespace {

/// A clock that counts in ticks may be one tick behind.
constexpr std::int64_t kTickNs = 10'000'000;

/// Returns the text of a file in /proc; "" if the process has ended, even between opening and
/// reading. (In this case an istreambuf_iterator would throw.)
std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string read_word(const std::string& path) {
  std::string text = read_file(path);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return as_utf8(text);
}

/// Returns the wait channel; "" if the thread isn't in the kernel, or if the system hides the
/// channel. In both cases the file has "0".
std::string read_wchan(const std::string& folder) {
  const std::string name = read_word(folder + "/wchan");
  return name == "0" ? "" : name;
}

struct Stat {
  std::string name;
  char state = 0;
  std::int64_t started_ns = 0;  ///< CLOCK_BOOTTIME
};

/// Reads the `stat` file of a process or a thread. The name in it may contain blanks and brackets,
/// so the other fields begin after the last bracket.
std::optional<Stat> read_stat(const std::string& folder) {
  const std::string text = read_file(folder + "/stat");
  const auto open = text.find('(');
  const auto close = text.rfind(") ");
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  std::istringstream fields(text.substr(close + 2));
  Stat stat{.name = as_utf8(text.substr(open + 1, close - open - 1))};
  fields >> stat.state;
  std::string skipped;
  constexpr int kBeforeStart = 18;
  for (int i = 0; i < kBeforeStart; ++i) fields >> skipped;
  std::int64_t ticks = 0;
  fields >> ticks;
  if (!fields) return {};
  stat.started_ns = ticks * (1'000'000'000 / std::max(1L, ::sysconf(_SC_CLK_TCK)));
  return stat;
}

/// Reads the core time of one thread.
std::uint64_t read_core_ns(const std::string& folder) {
  std::istringstream fields(read_file(folder + "/schedstat"));
  std::uint64_t ns = 0;
  fields >> ns;
  return ns;
}

std::vector<int> threads_of(int pid) {
  std::vector<int> tids;
  const std::string path = fmt::format("/proc/{}/task", pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder) return tids;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    int tid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), tid);
    if (error == std::errc() && end == name.data() + name.size()) tids.push_back(tid);
  }
  std::ranges::sort(tids);
  return tids;
}

int read_tracer(const std::string& folder) {
  constexpr std::string_view kField = "TracerPid:";
  const std::string text = read_file(folder + "/status");
  const auto found = text.find(kField);
  if (found == std::string::npos) return 0;
  std::istringstream field(text.substr(found + kField.size()));
  int pid = 0;
  field >> pid;
  return pid;
}

/// Returns the frozen cgroup of the unified hierarchy, or of version 1's freezer; "" if no cgroup
/// is frozen. If several are frozen, returns the outermost, which must be thawed first.
std::string read_frozen_by(const std::string& cgroups) {
  std::istringstream lines(cgroups);
  for (std::string line; std::getline(lines, line);) {
    const auto path_begin = line.rfind(':');
    if (path_begin == std::string::npos) continue;
    std::string path = line.substr(path_begin + 1);
    const bool unified = line.starts_with("0::");
    if (!unified && line.find(":freezer:") == std::string::npos) continue;
    for (const char* root : unified ? std::array{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
                                    : std::array{"/sys/fs/cgroup/freezer", "/sys/fs/cgroup"}) {
      std::string frozen;
      for (std::string at = path; at.size() > 1; at = at.substr(0, at.rfind('/'))) {
        const std::string group = root + at;
        const bool is_frozen =
            unified ? read_file(group + "/cgroup.events").find("frozen 1") != std::string::npos
                    : read_file(group + "/freezer.state").starts_with("FR");
        if (!is_frozen) break;
        frozen = group;
      }
      if (!frozen.empty()) return frozen;
    }
  }
  return {};
}

/// Returns the child for which a thread waits in vfork() or posix_spawn(); 0 if there is no such
/// child.
int read_awaited_child(const std::string& thread_folder) {
  long call = -1;
  std::istringstream(read_file(thread_folder + "/syscall")) >> call;
  const std::array calls{static_cast<long>(SYS_vfork), static_cast<long>(SYS_clone),
                         static_cast<long>(SYS_clone3)};
  if (std::ranges::find(calls, call) == calls.end()) return 0;
  int child = 0;
  std::istringstream(read_file(thread_folder + "/children")) >> child;
  return child;
}

/// Reads the number of OOM kills from the unified hierarchy, or from version 1's memory controller.
std::uint64_t read_oom_kills(const std::string& cgroups) {
  std::istringstream lines(cgroups);
  for (std::string line; std::getline(lines, line);) {
    const auto path_begin = line.rfind(':');
    if (path_begin == std::string::npos) continue;
    const std::string path = line.substr(path_begin + 1);
    const bool unified = line.starts_with("0::");
    if (!unified && line.find(":memory:") == std::string::npos) continue;
    const std::string text =
        read_file(unified ? fmt::format("/sys/fs/cgroup{}/memory.events", path)
                          : fmt::format("/sys/fs/cgroup/memory{}/memory.oom_control", path));
    const auto found = text.find("oom_kill ");
    if (found == std::string::npos) continue;
    std::istringstream field(text.substr(found + 9));
    std::uint64_t count = 0;
    field >> count;
    return count;
  }
  return 0;
}

}  // namespace

const ThreadState* ProcessState::thread(int tid) const {
  const auto found = std::ranges::find(threads, tid, &ThreadState::tid);
  return found == threads.end() ? nullptr : &*found;
}

ProcessState read_process(int pid, std::int64_t alive_at_ns) {
  ProcessState process{.pid = pid};
  if (pid <= 0) return process;
  const std::string folder = fmt::format("/proc/{}", pid);
  const std::optional<Stat> stat = read_stat(folder);
  if (!stat || stat->started_ns > alive_at_ns + kTickNs) return process;
  process.state = stat->state;
  if (process.gone()) return process;
  process.wchan = read_wchan(folder);
  process.tracer = read_tracer(folder);
  if (process.tracer != 0) {
    process.tracer_name = read_word(fmt::format("/proc/{}/comm", process.tracer));
  }
  const std::string cgroups = read_file(folder + "/cgroup");
  process.oom_kills = read_oom_kills(cgroups);
  process.frozen_by = read_frozen_by(cgroups);
  for (const int tid : threads_of(pid)) {
    const std::string thread_folder = fmt::format("{}/task/{}", folder, tid);
    const std::optional<Stat> thread = read_stat(thread_folder);
    if (!thread) continue;
    process.threads.push_back({.tid = tid,
                               .name = thread->name,
                               .state = thread->state,
                               .wchan = read_wchan(thread_folder),
                               .core_ns = read_core_ns(thread_folder)});
    process.core_ns += process.threads.back().core_ns;
    if (thread->state == 'D' && process.child == 0) {
      process.child = read_awaited_child(thread_folder);
    }
  }
  return process;
}

std::string describe(const ProcessState& process) {
  if (process.gone()) return "is gone";
  if (process.held()) {
    return fmt::format("is held by {} (pid {})", process.tracer_name, process.tracer);
  }
  if (process.in_freezer()) return "is frozen by the cgroup " + process.frozen_by;
  if (process.child != 0) return fmt::format("waits for its child (pid {})", process.child);
  const std::string in = process.wchan.empty() ? "" : " in " + process.wchan;
  switch (process.state) {
    case 'T':
    case 't': return "is stopped";
    case 'R': return "runs";
    case 'D': return "waits for a disk or a device" + in;
    default: return "sleeps" + in;
  }
}

std::int64_t boottime_ns() { return clock_ns(CLOCK_BOOTTIME); }

}  // namespace weft
