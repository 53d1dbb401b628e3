#pragma once
/// HangReporter: logs why a job makes no progress, and saves copies of its board, black box and
/// control segment in the run folder.

#include <optional>
#include <string>

#include <weft/job/callback.hpp>

#include "inspect/snapshot/snapshot.hpp"
#include "transport/board/board.hpp"

namespace weft {

/// Only the trainer's thread uses it.
class HangReporter {
 public:
  /// `patience_s` is the number of seconds without progress after which a hang is reported; 0 turns
  /// reports off. If it is absent, the patience follows from the durations of the job's steps, and
  /// is at least twice the duration of any hang that ended by itself.
  HangReporter(const Board& board, std::optional<double> patience_s);

  /// Must be called each second while the loops run. A call takes about 10 us of CPU time, or more
  /// if the job makes no progress. Returns a hang when it is found.
  std::optional<HangReport> look();
  /// Must be called before the processes are killed. If the job makes no progress and the copies
  /// haven't been saved yet, saves them. Throws nothing.
  void keep_last_sight() noexcept;

 private:
  void moves_again();
  std::optional<HangReport> look_closely();
  HangReport tell(const Snapshot& now) const;

  const Board& board_;
  std::optional<double> patience_s_;
  double least_patience_s_ = 0;  ///< derived from hangs that ended by themselves
  double steps_patience_s_ = 0;  ///< derived from the job's steps, when their events were last read
  std::optional<double> told_;   ///< the duration of the standstill that was last reported
  std::optional<Snapshot> before_;
};

}  // namespace weft
