#pragma once
/// HostLink: the interface through which the trainer reads the state of a host and gives it orders.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/sighting.hpp"
#include "transport/board/actor_row.hpp"

namespace weft {

/// The trainer's actor has one HostLink, and sees the workers, their processes and their chips only
/// through it. Every function names a worker or concerns all workers, so that one link can serve
/// several hosts. No function waits: a link to another host answers with the data that the host
/// sent last, and sends orders without waiting for a reply. Only one thread may call the link at a
/// time.
class HostLink {
 public:
  virtual ~HostLink() = default;

  // The state of the chips.

  /// Returns the last step that all chips have committed. All chips still have the state of this
  /// step.
  virtual std::uint64_t common_step() const = 0;
  /// Returns whether this host has the complete state of common_step(), because no tensor is
  /// divided over hosts.
  virtual bool has_whole_state() const = 0;
  /// Clears the job's memory for the next generation, in which the state of every chip is at
  /// `step`. No worker may use the memory during this call.
  virtual void begin_generation(std::uint64_t step) = 0;
  /// Ends the waits of all chips for the reason `why`. Only the first call in a generation has an
  /// effect.
  virtual void abort(std::string_view why) = 0;
  /// Removes the names of the arenas, so that no other process can open them.
  virtual void remove_arena_names() = 0;

  // The state of the workers.

  /// Returns the rows of the trainer, the workers and the chips. Rows that can't be read are left
  /// out.
  virtual std::vector<ActorRow> rows() const = 0;
  /// Returns where the worker and its chips were seen last.
  virtual Whereabouts locate(int worker) const = 0;
  /// Returns what a process that makes no progress is doing, for example "sleeps in futex_wait".
  virtual std::string describe_process(const ProcessId& process) const = 0;
  /// Returns the time that the process has used on all cores, in ticks of its kernel; 0 if the
  /// process is gone.
  virtual std::uint64_t core_time(const ProcessId& process) const = 0;

  // The board.

  /// Copies the rows of another host to this host's board.
  virtual void copy_rows(const HostNews& news) = 0;

  /// Marks the rows of a worker whose process has ended. If the worker is lost with its host, `why`
  /// says so.
  virtual void mark_lost(int worker, std::string_view why) = 0;
  virtual void set_status(JobStatus status) = 0;
};

}  // namespace weft
