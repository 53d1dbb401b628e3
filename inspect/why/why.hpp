#pragma once
/// Why: the answer of `weft inspect why`, which says why a job doesn't continue or has ended.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/process/stack.hpp"
#include "inspect/why/wait_graph.hpp"

namespace weft {

enum class Verdict : std::uint8_t {
  well,
  waits,  ///< nothing has moved for a moment, which is no hang yet
  slow,   ///< the job continues, but all other actors wait for one actor
  hung,
  failed,
  held,     ///< a debugger holds a process
  unknown,  ///< the job doesn't continue, and the cause can't be seen
};
std::string_view to_string(Verdict verdict) noexcept;
/// Returns the command's exit code: 0 for well and waits, 10 for hung and failed, 11 for slow, 12
/// for held, 13 for unknown.
int exit_code(Verdict verdict) noexcept;

/// Causes, in the order in which roots are listed: dead processes first, then causes that are
/// certain at once.
enum class Cause : std::uint8_t {
  killed,    ///< a process that a signal ended
  crashed,   ///< a process that got a signal by its own action, such as SIGSEGV
  lost,      ///< a process that is gone for an unknown reason
  failed,    ///< an error
  no_space,  ///< a file system is full
  uneven,    ///< a loop ended before the others
  diverged,  ///< chips wait for each other in different collectives
  stopped,   ///< a process is stopped by SIGSTOP
  frozen,    ///< a process is frozen by its cgroup's freezer
  held,      ///< a debugger holds a process
  device,    ///< a thread waits uninterruptibly, for example for a disk
  deadlock,  ///< a loop waits for a lock of its own threads, or actors wait in a circle
  blocked,   ///< the trainer is in a callback
  busy,      ///< a loop is in its own code, or waits outside of weft
  compiling,
  loading,  ///< a chip loads the plan of a program
  slow,     ///< a chip or worker repeatedly comes last
};
/// Returns the cause as text, such as "NO SPACE".
std::string_view to_string(Cause cause) noexcept;

/// A further line of an explanation: "waits", "4 chips of workers 0, 2 ...".
struct Note {
  std::string label;
  std::string text;
};

struct Root {
  Cause cause = Cause::busy;
  std::string actor{};     ///< "worker 2", "workers 0-3", "chip 6", "trainer"
  std::string doing{};     ///< "in its own code"; equal for merged actors
  std::string more{};      ///< the rest of the first line, after the time
  std::string headline{};  ///< the first line without the cause
  std::vector<int> workers{};
  std::vector<int> chips{};
  std::vector<int> pids{};  ///< one per merged actor; the first is `pid`
  int host = -1;            ///< the host of these processes; -1: the job has only one host
  int pid = 0;
  int tid = 0;
  int core_percent = -1;  ///< core use of thread `tid` between the snapshots; -1: unknown
  bool works = false;     ///< compiles or loads, and uses a core or waits for one
  double since_s = -1;    ///< how long the cause has lasted; negative if unknown
  std::uint64_t step = 0;
  std::string collective{};  ///< the actor's current or last collective
  std::string process{};     ///< state of the process as text, from describe()
  std::string wchan{};
  int tracer = 0;
  int signal = 0;
  int mutex_owner = 0;
  std::vector<StackFrame> stack{};  ///< the user's part of the stack, the innermost frame first
  std::vector<int> waiters{};       ///< chips of other workers that wait for this root
  std::vector<Note> notes{};
  std::string fix{};  ///< advice, as a command if there is one; never empty
};

struct Why {
  std::string job{};
  std::string name{};
  Verdict verdict = Verdict::unknown;
  std::string summary{};  ///< one line, used if there are no roots
  std::vector<Root> roots{};
  std::string fix{};  ///< advice if the job doesn't continue and no root is known; otherwise ""
  std::vector<Wait> waits{};
  std::vector<std::string> names{};  ///< names of the nodes in `waits`
  double idle_s = 0;                 ///< time without movement
  std::optional<std::uint64_t> kept_step{};
  std::vector<std::string> remarks{};  ///< parts that couldn't be read
};

/// Returns "pid 4712", or for a job on several hosts "pid 4712 on host 1".
std::string pid_text(const Root& root);

/// Returns text for people: a block of lines for each root. Text from other processes is shown as
/// visible() returns it.
std::string to_text(const Why& why);
/// Returns JSON in the schema weft.why/2, see docs/inspect.md.
std::string to_json(const Why& why);

}  // namespace weft
