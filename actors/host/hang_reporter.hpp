#pragma once
/// HangReporter: logs why a job has stopped moving, and saves the job's state in the run folder.

#include <optional>
#include <string>

#include "inspect/snapshot/snapshot.hpp"
#include "transport/board/board.hpp"

namespace weft {

/// Only the trainer's thread uses it.
class HangReporter {
 public:
  /// `patience_s` is the time for which nothing may move before a report. If it is absent, it is
  /// derived from the durations of the job's steps; after a hang that ended by itself it is at
  /// least twice that hang's duration. 0 turns reports off.
  HangReporter(const Board& board, std::optional<double> patience_s);

  /// Must be called each second while the loops run. A call takes about 10 us of a core, or more if
  /// the job stands still.
  void look();
  /// Is called before the processes are killed. If the job stands still and its state hasn't been
  /// saved yet, saves it. Throws nothing.
  void keep_last_sight() noexcept;

 private:
  void moves_again();
  void look_closely();
  void tell(const Snapshot& now) const;

  const Board& board_;
  std::optional<double> patience_s_;
  double least_patience_s_ = 0;  ///< derived from hangs that ended by themselves
  double steps_patience_s_ = 0;  ///< derived from the job's steps, when their events were last read
  std::optional<double> told_;   ///< the duration of the standstill that was last reported
  std::optional<Snapshot> before_;
};

}  // namespace weft
