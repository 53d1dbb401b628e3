#pragma once
/// Snapshot: all that is known of a job at one moment, alive or dead, as plain values. Every view
/// of `weft inspect` is a function of it.

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
#include "inspect/snapshot/progress_file.hpp"
#include "transport/blackbox/black_box.hpp"
#include "transport/board/board.hpp"
#include "transport/resume/rescue_note.hpp"

namespace weft {

/// A thread that was looked at more closely.
struct ThreadSight {
  ThreadStack stack{};
  FutexWait futex{};
  FileLockWait file_lock{};
};

struct ProcessSight {
  int pid = 0;
  std::vector<ThreadSight> threads{};
};

/// The events of one ring of the job's black box, oldest first.
struct EventRing {
  RingKind kind = RingKind::loop;
  int worker = -1;           ///< -1: the trainer
  int chip = -1;             ///< of a chip's ring
  std::uint64_t before = 0;  ///< events that are no longer there
  std::vector<Event> events{};
};

/// The times of a chip's steps of which the ring has the beginning and that of the next.
std::vector<double> step_seconds(const EventRing& ring);

/// Who kept a chip waiting, since the job began.
struct ChipWaits {
  int chip = -1;
  std::vector<LedgerEntry> calls{};            ///< by call of a plan
  std::vector<std::uint64_t> waited_for_ns{};  ///< by the chip that came last
};

struct Snapshot {
  std::string job{};
  std::int64_t at_ns = 0;  ///< CLOCK_BOOTTIME
  bool live = true;        ///< false: of the files of a job that has ended
  BoardHeader header{};
  JobStatus status = JobStatus::starting;
  bool held = true;                       ///< its trainer lives
  std::vector<ActorRow> rows{};           ///< those that can be read
  std::vector<std::string> unreadable{};  ///< a row that can't be: which, and why
  std::optional<ControlState> control{};  ///< absent: see no_control
  std::string no_control{};
  bool arenas_named = false;                 ///< another process can open the chips' memory
  std::vector<ProcessState> processes{};     ///< of the trainer and the workers
  std::string hidden{};                      ///< why some processes can't be seen; empty: all can
  std::vector<ProcessSight> sights{};        ///< of those that were asked for
  std::vector<EventRing> rings{};            ///< none where the job keeps no events
  std::vector<ChipWaits> waits{};            ///< by chip
  std::int64_t unix_minus_monotonic_ns = 0;  ///< added to an event's time: ns since 1970
  std::int64_t events_at_ns = 0;             ///< as events' times: when they were read; 0: of files
  std::shared_ptr<const void> texts{};       ///< in which the texts of events and waits lie
  std::vector<ReportedMetric> metrics{};     ///< that the loop has reported last
  std::optional<JobEnd> end{};
  std::optional<Crash> crash{};  ///< of the worker that `end` names
  std::optional<RescueNote> rescue{};

  /// Null where the row can't be read.
  const ActorRow* trainer() const;
  const ActorRow* worker(int worker) const;
  const ActorRow* chip(int chip) const;
  /// Null where it wasn't looked at.
  const ProcessState* process(int pid) const;
  const ProcessSight* sight(int pid) const;
  const EventRing* loop_ring(int worker) const;
  const EventRing* chip_ring(int chip) const;

  /// The worker in whose process the thread is; -1: the trainer, and none: neither.
  std::optional<int> owner_of_thread(int tid) const;

  bool over() const { return status > JobStatus::running; }
  double seconds_since(std::int64_t ns) const { return static_cast<double>(at_ns - ns) / 1e9; }
  /// The mesh of the board; absent where the board has none, or one that can't be.
  std::optional<Mesh> mesh() const;
  std::uint64_t step() const;  ///< the latest of any loop
};

}  // namespace weft
