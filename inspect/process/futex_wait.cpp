#include "inspect/process/futex_wait.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "data/files/utf8.hpp"

namespace weft {
namespace {

/// A thread's current system call and its first arguments.
struct SystemCall {
  long number = -1;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

SystemCall read_call(int tid) {
  SystemCall call;
  std::ifstream file(fmt::format("/proc/{}/syscall", tid));
  if (!(file >> call.number >> std::hex >> call.first >> call.second)) return {};
  return call;
}

/// A line of /proc/locks, such as "1: -> FLOCK ADVISORY WRITE 812 fe:00:4711 0 EOF", or the part
/// after "lock:" of a line of fdinfo.
struct LockLine {
  std::string id;
  bool waits = false;
  int pid = 0;
  std::string inode;
};

LockLine parse_lock(const std::string& line) {
  LockLine lock;
  std::istringstream fields(line);
  std::string kind, advisory, access, place;
  fields >> lock.id >> kind;
  lock.waits = kind == "->";
  if (lock.waits) fields >> kind;
  fields >> advisory >> access >> lock.pid >> place;
  lock.inode = place.substr(place.rfind(':') + 1);
  return lock;
}

std::string name_of_process(int pid) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", pid)) >> std::ws, name);
  return as_utf8(name);
}

/// Returns the process that holds the lock for which `pid` waits; -1 if an open file description
/// holds it; 0 if unknown.
int find_holder(int pid, const std::string& inode) {
  std::ifstream lines("/proc/locks");
  LockLine held;
  for (std::string line; std::getline(lines, line);) {
    const LockLine lock = parse_lock(line);
    if (!lock.waits) {
      held = lock;
    } else if (lock.id == held.id && lock.inode == inode && (lock.pid == pid || lock.pid == -1)) {
      return held.pid;
    }
  }
  return 0;
}

/// Returns the first of `pids`, except the waiter, that has a descriptor with a lock on the file; 0
/// if no process has one.
int find_owner(int waiter, const std::string& inode, std::span<const int> pids) {
  for (const int pid : pids) {
    if (pid == waiter) continue;
    std::error_code error;
    const std::string folder = fmt::format("/proc/{}/fdinfo", pid);
    for (auto at = std::filesystem::directory_iterator(folder, error);
         !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
      std::ifstream lines(at->path());
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("lock:") && parse_lock(line.substr(5)).inode == inode) return pid;
      }
    }
  }
  return 0;
}

bool waits_for_lock(const SystemCall& call) {
  if (call.number == SYS_flock) return true;
  return call.number == SYS_fcntl && (call.second == F_SETLKW || call.second == F_OFD_SETLKW);
}

/// Returns whether the thread exists, even if it is hidden because it belongs to another user.
bool is_there(int tid) { return ::kill(tid, 0) == 0 || errno != ESRCH; }

}  // namespace

FutexWait read_futex_wait(int tid, std::span<const int> tids) {
  const SystemCall call = read_call(tid);
  if (call.number != SYS_futex) return {};
  // The words are the first members of struct __pthread_mutex_s: lock, count, owner, users.
  std::array<int, 4> words{};
  iovec to{words.data(), sizeof words};
  iovec from{reinterpret_cast<void*>(call.first), sizeof words};
  if (::process_vm_readv(tid, &to, 1, &from, 1, 0) != sizeof words) return {};
  const auto is_thread = [&](int id) { return id != 0 && std::ranges::count(tids, id) != 0; };
  const auto word = static_cast<unsigned>(words[0]);
  const int in_word = static_cast<int>(word & FUTEX_TID_MASK);
  const bool is_shared = (call.second & FUTEX_PRIVATE_FLAG) == 0;
  const auto owned_by = [&](int owner) {
    return FutexWait{.mutex_owner = owner, .owner_is_gone = !is_there(owner)};
  };
  // Robust mutexes and mutexes with priority inheritance have their owner in the futex word.
  if ((word & FUTEX_WAITERS) != 0 && in_word != tid && (is_shared || is_thread(in_word))) {
    return owned_by(in_word);
  }
  if (is_thread(words[0]) && words[0] != tid) return {.joins = words[0]};
  constexpr int kLockedWithWaiters = 2;
  if (words[0] == kLockedWithWaiters && words[2] > 0 &&
      (is_shared || is_thread(words[2]) || !is_there(words[2]))) {
    return owned_by(words[2]);
  }
  return {};
}

FileLockWait read_file_lock_wait(int pid, int tid, std::span<const int> pids) {
  const SystemCall call = read_call(tid);
  if (!waits_for_lock(call)) return {};
  const std::string descriptor = fmt::format("/proc/{}/fd/{}", pid, call.first);
  std::error_code error;
  FileLockWait wait{.file = as_utf8(std::filesystem::read_symlink(descriptor, error).string())};
  struct stat status {};
  if (error || ::stat(descriptor.c_str(), &status) != 0) return {};
  const std::string inode = std::to_string(status.st_ino);
  wait.holder = find_holder(pid, inode);
  if (wait.holder <= 0) wait.holder = find_owner(pid, inode, pids);
  if (wait.holder > 0) wait.holder_name = name_of_process(wait.holder);
  return wait;
}

}  // namespace weft
