#include "transport/job/remains.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include <weft/tensor/error.hpp>

#include "transport/board/board.hpp"
#include "transport/job/job_folder.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/job/job_record.hpp"
#include "transport/memory/segment.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// The time after which a held lock is tested again. It may be held only by a sweeping process, but
/// then for less than this time.
constexpr std::chrono::milliseconds kLookAgain{5};
constexpr std::string_view kFolder = "/dev/shm/";
constexpr std::string_view kPrefix = "weft-";

/// Returns the job's id in a name "weft-<job>-..."; "" for other names.
std::string job_of(std::string_view segment) {
  if (!segment.starts_with(kPrefix)) return {};
  const std::string_view job = segment.substr(kPrefix.size(), kJobIdLength);
  const std::string_view rest = segment.substr(kPrefix.size() + job.size());
  return is_job_id(job) && rest.starts_with('-') ? std::string(job) : std::string();
}

/// Returns for each job one process that has one of the job's segments open or mapped, as far as
/// this user can see.
std::map<std::string, int> processes_by_job() {
  std::map<std::string, int> processes;
  const auto note = [&](std::string_view path, int pid) {
    const auto at = path.find(kFolder);
    if (at == path.npos) return;
    if (const std::string job = job_of(path.substr(at + kFolder.size())); !job.empty()) {
      processes.emplace(job, pid);
    }
  };
  std::error_code ignored;
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    const std::string name = process.path().filename().string();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    const int pid = std::stoi(name);
    std::ifstream maps(process.path() / "maps");
    for (std::string line; std::getline(maps, line);) note(line, pid);
    std::error_code unseen;
    for (fs::directory_iterator open(process.path() / "fd", unseen), end; !unseen && open != end;
         open.increment(unseen)) {
      std::error_code closed;
      note(fs::read_symlink(open->path(), closed).string(), pid);
    }
  }
  return processes;
}

/// Returns the control root in which a process has the job's lock; std::nullopt if no process has
/// the lock.
std::optional<std::string> locked_in(const JobRemains& remains) {
  for (const std::string& root : remains.roots) {
    if (::access(lock_in(root, remains.job).c_str(), F_OK) != 0) continue;
    if (JobLock::is_held(root, remains.job)) return root;
  }
  return {};
}

/// Returns whether a process has the board's lock. Returns false if the board can't be read, which
/// then proves nothing.
bool board_is_held(const std::string& job) {
  try {
    return Board::is_held(job);
  } catch (const Error&) {
    return false;
  }
}

/// Returns how many seconds ago any of the job's files last changed.
std::int64_t age_s(const JobRemains& remains) {
  std::int64_t youngest = 0;
  const auto look = [&](const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0) {
      youngest = std::max<std::int64_t>(youngest, status.st_mtim.tv_sec);
    }
  };
  for (const std::string& name : remains.segments) look(std::string(kFolder) + name);
  for (const std::string& root : remains.roots) look(folder_in(root, remains.job));
  return std::time(nullptr) - youngest;
}

bool has_lock_file(const JobRemains& remains) {
  return std::ranges::any_of(remains.roots, [&](const std::string& root) {
    return ::access(lock_in(root, remains.job).c_str(), F_OK) == 0;
  });
}

double still_kept_s(const JobRemains& remains) {
  double seconds = 0;
  for (const std::string& root : remains.roots) {
    seconds = std::max(seconds, kept_for_s(root, remains.job));
  }
  return remains.segments.empty() ? 0 : seconds;
}

void judge(JobRemains& remains, const std::map<std::string, int>& processes) {
  remains.life = JobLife::alive;
  const auto process = processes.find(remains.job);
  remains.pid = process != processes.end() ? process->second : 0;
  std::optional<std::string> root;
  std::string no_lock;
  try {
    root = locked_in(remains);
  } catch (const Error& e) {
    no_lock = e.what();
  }
  if (root) {
    remains.why = fmt::format("{} is locked", lock_in(*root, remains.job));
  } else if (board_is_held(remains.job)) {
    remains.why = "its board is locked";
  } else if (process != processes.end()) {
    remains.why = fmt::format("process {} has its memory open", process->second);
  } else if (!no_lock.empty()) {
    remains.life = JobLife::unknown;
    remains.why = fmt::format("{}: find out what it is, and remove it", no_lock);
  } else if (const auto age = age_s(remains); !has_lock_file(remains) && age < kStartingSeconds) {
    remains.life = JobLife::starting;
    remains.why = fmt::format("nobody holds its lock, but it was changed {} s ago", age);
  } else if (const double seconds = still_kept_s(remains); seconds > 0) {
    remains.life = JobLife::kept;
    remains.why =
        fmt::format("it is dead, and kept for `weft rescue` for another {:.0f} s", seconds);
  } else {
    remains.life = JobLife::dead;
    remains.why = "nobody holds its lock, and no process has its memory open";
  }
}

void wait_for_end(int pid, std::chrono::milliseconds timeout) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return;  // the process has ended
  pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
  (void)::poll(&wait, 1, static_cast<int>(timeout.count()));
  ::close(fd);
}

/// Takes all existing locks of the job. Returns nothing if any of them can't be taken.
std::optional<std::vector<JobLock>> take_locks(const JobRemains& remains) {
  std::vector<JobLock> locks;
  for (const std::string& root : remains.roots) {
    if (::access(lock_in(root, remains.job).c_str(), F_OK) != 0) continue;
    try {
      locks.push_back(JobLock::try_take(root, remains.job));
    } catch (const Error&) {
      return {};
    }
    if (!locks.back()) return {};
  }
  return locks;
}

/// Returns the control root that the job's memory names, unless it is among the roots that this
/// process searches anyway.
std::vector<std::string> named_roots(const std::string& job) {
  const std::string root = JobMemory::control_root_of(job);
  if (root.empty() || !is_control_root(root)) return {};
  const std::vector<std::string> jobs = jobs_in(root);
  return std::ranges::find(jobs, job) == jobs.end() ? std::vector<std::string>()
                                                    : std::vector{root};
}

std::map<std::string, JobRemains> find_unjudged() {
  std::map<std::string, JobRemains> found;
  const auto of = [&](const std::string& job) -> JobRemains& {
    JobRemains& remains = found[job];
    remains.job = job;
    return remains;
  };
  for (const std::string& name : Segment::list(kPrefix)) {
    const std::string job = job_of(name);
    if (job.empty()) continue;
    JobRemains& remains = of(job);
    remains.segments.push_back(name);
    struct stat status {};
    if (::lstat((std::string(kFolder) + name).c_str(), &status) == 0) {
      remains.bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
    }
  }
  for (const std::string& root : control_roots()) {
    for (const std::string& job : jobs_in(root)) of(job).roots.push_back(root);
  }
  for (auto& [job, remains] : found) {
    if (remains.roots.empty()) remains.roots = named_roots(job);
  }
  return found;
}

}  // namespace

std::string_view to_string(JobLife life) noexcept {
  switch (life) {
    case JobLife::alive: return "alive";
    case JobLife::starting: return "starting";
    case JobLife::dead: return "dead";
    case JobLife::unknown: return "unknown";
    case JobLife::kept: return "kept";
  }
  return "?";
}

std::vector<JobRemains> find_remains() {
  auto found = find_unjudged();
  const auto processes = processes_by_job();
  std::vector<JobRemains> all;
  for (auto& [job, remains] : found) {
    judge(remains, processes);
    all.push_back(std::move(remains));
  }
  return all;
}

std::optional<JobRemains> wait_until_dead(std::string_view job, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const std::vector<JobRemains> all = find_remains();
    const auto found = std::ranges::find(all, job, &JobRemains::job);
    if (found == all.end()) return {};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    const bool is_alive = found->life == JobLife::alive || found->life == JobLife::starting;
    if (!is_alive || left.count() <= 0) return *found;
    if (found->pid != 0) {
      wait_for_end(found->pid, left);
    } else {
      std::this_thread::sleep_for(std::min(kLookAgain, left));
    }
  }
}

std::vector<std::string> remove_remains(const JobRemains& remains, bool even_kept) {
  JobRemains now = remains;
  judge(now, processes_by_job());
  if (now.life == JobLife::dead || (now.life == JobLife::kept && even_kept)) {
    if (const auto locks = take_locks(now)) {
      keep_record(now.job);
      for (const std::string& name : now.segments) Segment::remove(name);
      for (const std::string& root : now.roots) remove_job(root, now.job);
    }
  }
  std::vector<std::string> left;
  const auto look = [&](const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0) left.push_back(path);
  };
  for (const std::string& name : now.segments) look(std::string(kFolder) + name);
  for (const std::string& root : now.roots) {
    look(folder_in(root, now.job));
    look(lock_in(root, now.job));
  }
  return left;
}

}  // namespace weft
