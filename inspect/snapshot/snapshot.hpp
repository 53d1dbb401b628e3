#pragma once
/// Snapshot: all that is known about a job, alive or dead, at one moment, as plain values. Every
/// view of `weft inspect` is a function of a snapshot.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inspect/process/futex_wait.hpp"
#include "inspect/process/process_state.hpp"
#include "inspect/process/stack.hpp"
#include "inspect/snapshot/control_state.hpp"
#include "inspect/snapshot/crash.hpp"
#include "inspect/snapshot/job_end.hpp"
#include "inspect/snapshot/job_streams.hpp"
#include "inspect/snapshot/progress_file.hpp"
#include "transport/blackbox/black_box.hpp"
#include "transport/board/board.hpp"
#include "transport/resume/rescue_note.hpp"

namespace weft {

/// A thread whose stack and waits were read.
struct ThreadSight {
  ThreadStack stack{};
  FutexWait futex{};
  FileLockWait file_lock{};
};

struct ProcessSight {
  int host = 0;
  int pid = 0;
  std::vector<ThreadSight> threads{};
};

/// A host of a job that runs on several hosts.
struct HostSight {
  int host = 0;
  std::string machine{};
  std::vector<std::string> via{};  ///< words to put before a command for this host; empty: none
  std::string silence{};           ///< why the host hasn't answered; "": it has answered
  double silent_s = 0;             ///< age of the host's last known data, if it hasn't answered
  double clock_error_s = 0;        ///< how wrong its times may be, compared with other hosts' times
};

/// The events of one ring of the job's black box, oldest first.
struct EventRing {
  RingKind kind = RingKind::loop;
  int worker = -1;           ///< the worker; -1: the trainer
  int chip = -1;             ///< the chip, only for a chip's ring
  std::uint64_t before = 0;  ///< number of older events that were overwritten
  std::vector<Event> events{};
};

/// Returns how long each of a chip's steps took. A step counts if the ring has its beginning and
/// the beginning of the next step.
std::vector<double> step_seconds(const EventRing& ring);

/// The waits of one chip for other chips since the job began.
struct ChipWaits {
  int chip = -1;
  std::vector<LedgerEntry> calls{};            ///< by collective call of a plan
  std::vector<std::uint64_t> waited_for_ns{};  ///< by the chip that came last
};

struct Snapshot {
  std::string job{};
  std::int64_t at_ns = 0;  ///< CLOCK_BOOTTIME of the snapshot
  bool live = true;        ///< false: read from the files of a job that has ended
  BoardHeader header{};
  JobStatus status = JobStatus::starting;
  bool held = true;                       ///< whether the job's trainer is alive
  std::vector<ActorRow> rows{};           ///< all rows that can be read
  std::vector<std::string> unreadable{};  ///< why other rows can't be read
  std::optional<ControlState> control{};  ///< absent if no_control has a reason
  std::string no_control{};
  JobStreams streams{};                   ///< empty unless `live`
  bool arenas_named = false;              ///< whether another process can open the chips' memory
  std::vector<ProcessState> processes{};  ///< the trainer's and the workers' processes
  std::string hidden{};                   ///< why some processes can't be seen; "": all can be seen
  std::vector<ProcessSight> sights{};     ///< sights of the requested processes
  std::vector<EventRing> rings{};         ///< empty if the job keeps no events
  std::vector<ChipWaits> waits{};         ///< by chip
  std::int64_t unix_minus_monotonic_ns = 0;  ///< to add to an event's time for ns since 1970
  std::int64_t events_at_ns = 0;          ///< when events were read, by their clock; 0: from files
  std::shared_ptr<const void> texts{};    ///< owns the texts of events and waits
  std::vector<ReportedMetric> metrics{};  ///< last numbers that the loop reported
  std::optional<JobEnd> end{};
  std::optional<Crash> crash{};  ///< the crash of the worker that `end` names
  std::optional<RescueNote> rescue{};
  std::vector<HostSight> hosts{};  ///< empty if only the part of one host was read

  /// These functions return null if the row can't be read.
  const ActorRow* trainer() const;
  const ActorRow* worker(int worker) const;
  const ActorRow* chip(int chip) const;
  /// These functions return null if the snapshot has no data on the process.
  const ProcessState* process(HostPid id) const;
  const ProcessState* process(const ActorRow& row) const { return process(id_of(row)); }
  const ProcessSight* sight(HostPid id) const;
  const EventRing* loop_ring(int worker) const;
  const EventRing* chip_ring(int chip) const;

  HostPid id_of(const ActorRow& row) const { return {header.host_of(row.worker), row.pid}; }
  HostPid trainer_id() const { return {header.host, header.trainer_pid}; }
  /// Returns null if the host's sight is unknown.
  const HostSight* host(int number) const;

  /// Returns the worker whose process contains thread `tid` of the host; -1 for the trainer;
  /// nothing if neither does.
  std::optional<int> owner_of_thread(int host, int tid) const;

  bool over() const { return status > JobStatus::running; }
  double seconds_since(std::int64_t ns) const { return static_cast<double>(at_ns - ns) / 1e9; }
  /// Returns the mesh of the board; nothing if the board has no mesh, or an impossible one.
  std::optional<Mesh> mesh() const;
  std::uint64_t step() const;  ///< latest step of any loop
};

}  // namespace weft
