#pragma once
/// HangReporter: says in the log why a job has stopped moving, and keeps what it was seen like in
/// the run folder.

#include <optional>
#include <string>

#include "inspect/snapshot/snapshot.hpp"
#include "transport/board/board.hpp"

namespace weft {

/// Used by one thread, that of the trainer.
class HangReporter {
 public:
  /// `patience_s`: how long nothing may move; absent: as the job's steps suggest, and after a hang
  /// that ended by itself at least twice as long as that took; 0: never says anything.
  HangReporter(const Board& board, std::optional<double> patience_s);

  /// To be called each second while the loops run. Costs some 10 us of a core, unless the job
  /// stands still.
  void look();
  /// Before the processes are killed: a job that stands still is kept as it is seen, unless it has
  /// been already. Throws nothing.
  void keep_last_sight() noexcept;

 private:
  void moves_again();
  void look_closely();
  void tell(const Snapshot& now) const;

  const Board& board_;
  std::optional<double> patience_s_;
  double least_patience_s_ = 0;  ///< by hangs that ended by themselves
  double steps_patience_s_ = 0;  ///< by the job's steps, when their events were last read
  std::optional<double> told_;   ///< how long the job has stood still, once that was said
  std::optional<Snapshot> before_;
};

}  // namespace weft
