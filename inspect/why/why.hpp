#pragma once
/// Why a job doesn't go on, or ended as it did: what `weft inspect why` answers.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/process/stack.hpp"
#include "inspect/why/wait_graph.hpp"

namespace weft {

enum class Verdict : std::uint8_t {
  well,
  waits,  ///< nothing has moved for a moment, which is no accident yet
  slow,   ///< it goes on, but for one actor all others wait
  hung,
  failed,
  held,     ///< in a debugger
  unknown,  ///< it doesn't go on, and who is to blame can't be seen
};
std::string_view to_string(Verdict verdict) noexcept;
/// Of the command: 0 well or waits, 10 hung or failed, 11 slow, 12 held, 13 unknown.
int exit_code(Verdict verdict) noexcept;

/// In the order in which roots are told: what is dead first, then what needs no time to be sure of.
enum class Cause : std::uint8_t {
  killed,    ///< a process that a signal ended
  crashed,   ///< a process that a signal of its own ended, such as SIGSEGV
  lost,      ///< a process that is gone, nobody knows how
  failed,    ///< an error
  no_space,  ///< a file system is full
  uneven,    ///< a loop ended before the others'
  diverged,  ///< chips wait for each other in different collectives
  stopped,   ///< by SIGSTOP
  frozen,    ///< by the freezer of its cgroup
  held,      ///< in a debugger
  device,    ///< in an uninterruptible wait, for a disk
  deadlock,  ///< a loop waits for what its own threads hold, or actors wait in a circle
  blocked,   ///< the trainer, in a callback
  busy,      ///< in code of its own, or in a wait outside weft
  compiling,
  loading,  ///< the plan of a program
  slow,     ///< comes last again and again
};
/// "NO SPACE".
std::string_view to_string(Cause cause) noexcept;

/// A further line of an explanation: "waits", "4 chips of workers 0, 2 ...".
struct Note {
  std::string label;
  std::string text;
};

struct Root {
  Cause cause = Cause::busy;
  std::string actor{};     ///< "worker 2", "workers 0-3", "chip 6", "trainer"
  std::string doing{};     ///< "in its own code"; equal for actors that are told together
  std::string more{};      ///< what the first line has behind the time
  std::string headline{};  ///< all of the first line behind the cause
  std::vector<int> workers{};
  std::vector<int> chips{};
  std::vector<int> pids{};  ///< of all of them; the first is `pid`
  int pid = 0;
  int tid = 0;
  int core_percent = -1;  ///< of a core that its thread had between the looks; -1: unknown
  double since_s = -1;    ///< below 0: unknown
  std::uint64_t step = 0;
  std::string collective{};  ///< the one that it is in, or was in last
  std::string process{};     ///< describe() of it
  std::string wchan{};
  int tracer = 0;
  int signal = 0;
  int mutex_owner = 0;
  std::vector<StackFrame> stack{};  ///< the user's part, innermost first
  std::vector<int> waiters{};       ///< chips of other workers that wait for it, directly or not
  std::vector<Note> notes{};
  std::string fix{};  ///< what to do, as a command where there is one; never empty
};

struct Why {
  std::string job{};
  std::string name{};
  Verdict verdict = Verdict::unknown;
  std::string summary{};  ///< a line for where there are no roots
  std::vector<Root> roots{};
  std::vector<Wait> waits{};
  std::vector<std::string> names{};  ///< of the nodes that `waits` has
  double idle_s = 0;                 ///< how long nothing has moved
  std::optional<std::uint64_t> kept_step{};
  std::vector<std::string> remarks{};  ///< what couldn't be read
};

/// For people: a block of lines for each root. What others wrote is made harmless.
std::string to_text(const Why& why);
/// Schema weft.why/2, see docs/inspect.md.
std::string to_json(const Why& why);

}  // namespace weft
