#pragma once
/// HostLink: what the trainer asks of a host, and what it tells that host to do.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/protocol/sighting.hpp"
#include "transport/board/actor_row.hpp"

namespace weft {

/// The trainer's actor has one of these and sees the workers, their processes and their chips
/// through nothing else. Every function names a worker, or is about all of them, so that a link can
/// answer for several hosts. No function waits: a link to another host answers with what that host
/// has sent last, and sends what it is told. Called by one thread at a time.
class HostLink {
 public:
  virtual ~HostLink() = default;

  // The state of the chips.

  /// The step that every chip has committed: the version of the state that all of them still have.
  virtual std::uint64_t common_step() const = 0;
  /// Clears the memory of the job for the next generation, in which the state of every chip is at
  /// `step`. Called while no worker uses the memory.
  virtual void begin_generation(std::uint64_t step) = 0;
  /// Ends the waits of all chips with the reason `why`. After the first call of a generation the
  /// others change nothing.
  virtual void abort(std::string_view why) = 0;
  /// No other process will open the arenas of the chips.
  virtual void remove_arena_names() = 0;

  // What the workers show.

  /// The rows of the trainer, the workers and the chips, without those that can't be read.
  virtual std::vector<ActorRow> rows() const = 0;
  /// Where the worker and its chips were seen last.
  virtual Whereabouts locate(int worker) const = 0;
  /// What the process does while it doesn't move: "sleeps in futex_wait".
  virtual std::string describe_process(const ProcessId& process) const = 0;
  /// The time that the process has had of all cores, in ticks of its kernel; 0 where it is gone.
  virtual std::uint64_t core_time(const ProcessId& process) const = 0;

  // What readers of the board see.

  /// Writes the rows of a worker whose process has ended.
  virtual void mark_lost(int worker) = 0;
  virtual void set_status(JobStatus status) = 0;
};

}  // namespace weft
