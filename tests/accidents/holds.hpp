#pragma once
/// Classes with which the accident tests stop a process of a job.

#include <sched.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

namespace weft::accidents {

/// Stops a process with ptrace, as a debugger does. One thread has to make all calls.
class Debugger {
 public:
  explicit Debugger(pid_t pid) : pid_(pid) {
    if (::ptrace(PTRACE_ATTACH, pid_, nullptr, nullptr) != 0) return;
    ::waitpid(pid_, nullptr, __WALL);
    holds_ = true;
  }
  ~Debugger() {
    if (holds_) ::ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
  }
  bool holds() const { return holds_; }

 private:
  pid_t pid_;
  bool holds_ = false;
};

/// Freezes a process in a cgroup of its own, with cgroup version 2 or the freezer of version 1.
class FrozenGroup {
 public:
  explicit FrozenGroup(pid_t pid) {
    for (const char* root :
         {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer"}) {
      const std::string group = fmt::format("{}/weft-accident-{}", root, pid);
      if (::mkdir(group.c_str(), 0755) != 0) continue;
      group_ = group;
      const bool second = std::filesystem::exists(group + "/cgroup.freeze");
      if (!second && !std::filesystem::exists(group + "/freezer.state")) {
        ::rmdir(group.c_str());
        group_.clear();
        continue;
      }
      file_ = group + (second ? "/cgroup.freeze" : "/freezer.state");
      thawed_ = second ? "0" : "THAWED";
      std::ofstream(group + "/cgroup.procs") << pid;
      std::ofstream(file_) << (second ? "1" : "FROZEN");
      return;
    }
  }
  ~FrozenGroup() {
    if (group_.empty()) return;
    thaw();
    for (int i = 0; i < 1000 && ::rmdir(group_.c_str()) != 0; ++i) ::sched_yield();
  }
  bool is_there() const { return !group_.empty(); }
  void thaw() const { std::ofstream(file_) << thawed_; }

 private:
  std::string group_;
  std::string file_;
  std::string thawed_;
};

}  // namespace weft::accidents
