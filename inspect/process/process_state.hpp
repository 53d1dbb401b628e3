#pragma once
/// ProcessState: reads the state of a process as the system describes it in /proc; see proc(5).

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// Identifies a process of a job. A pid is valid only on its host.
struct HostPid {
  int host = 0;
  int pid = 0;
  friend auto operator<=>(const HostPid&, const HostPid&) = default;
};

struct ThreadState {
  int tid = 0;
  std::string name{};
  char state = '?';           ///< R runs, S sleeps, D waits for a device, T stopped, t traced
  std::string wchan{};        ///< kernel function in which the thread sleeps; "": none, or hidden
  std::uint64_t core_ns = 0;  ///< core time used so far
};

struct ProcessState {
  int host = 0;  ///< number of the job's host on which the process runs
  int pid = 0;
  char state = 0;  ///< ThreadState::state of the first thread; 0: the process is gone
  std::string wchan{};
  int tracer = 0;  ///< pid of the attached debugger; 0: no debugger
  std::string tracer_name{};
  std::string frozen_by{};      ///< folder of the process's frozen cgroup; "": not frozen
  int child = 0;                ///< child whose exec or end is awaited, as in vfork(); 0: no child
  std::uint64_t core_ns = 0;    ///< sum over all threads
  std::uint64_t oom_kills = 0;  ///< number of OOM kills in the process's cgroup so far
  std::vector<ThreadState> threads{};

  bool gone() const { return state == 0 || state == 'Z' || state == 'X'; }
  bool stopped() const { return state == 'T'; }
  /// Returns whether a debugger holds the process. Returns false for a tracer that only watches,
  /// such as strace, and lets the process run.
  bool held() const { return state == 't' && tracer != 0; }
  bool in_freezer() const { return !frozen_by.empty(); }
  bool in_device() const { return state == 'D' && child == 0 && !in_freezer(); }
  /// Returns whether the process can't continue by itself, whatever other processes do.
  bool frozen() const { return gone() || stopped() || held() || in_freezer(); }
  const ThreadState* thread(int tid) const;
  HostPid id() const { return {host, pid}; }
};

/// Reads the state of a process. `alive_at_ns` is a time at which the process was seen alive
/// (CLOCK_BOOTTIME). If the process that now has this pid began later, it is another process, and
/// the requested process counts as gone.
ProcessState read_process(int pid, std::int64_t alive_at_ns);

/// Returns a text such as "sleeps in futex_do_wait", "runs", "is stopped", "is held by gdb (pid
/// 812)", "is gone".
std::string describe(const ProcessState& process);

/// Returns CLOCK_BOOTTIME, which boards use for their times.
std::int64_t boottime_ns();

}  // namespace weft
