#pragma once
/// What the system says of a process: proc(5).

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

struct ThreadState {
  int tid = 0;
  std::string name{};
  char state = '?';           ///< R runs, S sleeps, D waits for a device, T stopped, t traced
  std::string wchan{};        ///< the kernel's function that it sleeps in; empty: none, or untold
  std::uint64_t core_ns = 0;  ///< the time of cores that it has had
};

struct ProcessState {
  int pid = 0;
  char state = 0;  ///< of its first thread, as ThreadState has it; 0: gone
  std::string wchan{};
  int tracer = 0;  ///< the pid of a debugger that is attached to it; 0: none
  std::string tracer_name{};
  std::string frozen_by{};      ///< the folder of the cgroup whose freezer holds it; empty: none
  int child = 0;                ///< for whose exec or end it waits, as vfork() does; 0: none
  std::uint64_t core_ns = 0;    ///< of all threads
  std::uint64_t oom_kills = 0;  ///< kills for want of memory in its cgroup, ever
  std::vector<ThreadState> threads{};

  bool gone() const { return state == 0 || state == 'Z' || state == 'X'; }
  bool stopped() const { return state == 'T'; }
  /// By a debugger. One that only watches it, as strace does, lets it run.
  bool held() const { return state == 't' && tracer != 0; }
  bool in_freezer() const { return !frozen_by.empty(); }
  bool in_device() const { return state == 'D' && child == 0 && !in_freezer(); }
  /// It doesn't go on, whatever others do.
  bool frozen() const { return gone() || stopped() || held() || in_freezer(); }
  const ThreadState* thread(int tid) const;
};

/// `alive_at_ns`: when the process that is meant was seen alive (CLOCK_BOOTTIME). One with its
/// number that began later is another, and the one that is meant is gone.
ProcessState read_process(int pid, std::int64_t alive_at_ns);

/// "sleeps in futex_do_wait", "runs", "is stopped", "is held by gdb (pid 812)", "is gone".
std::string describe(const ProcessState& process);

/// CLOCK_BOOTTIME, in which boards have their times.
std::int64_t boottime_ns();

}  // namespace weft
