#pragma once
/// HangReporter: logs why a job makes no progress, and saves copies of its board, black box and
/// control segment in the run folder.

#include <functional>
#include <optional>
#include <string>
#include <utility>

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

  /// Checks the job for progress, and returns a hang once, when it is found. Must be called each
  /// second while the loops run. Takes about 10 us of CPU time, or more if the job makes no
  /// progress.
  std::optional<HangReport> look();
  /// Must be called before the processes are killed. If the job makes no progress and the copies
  /// haven't been saved yet, saves them. Throws nothing.
  void keep_last_sight() noexcept;
  /// `hook` is called before copies are saved (true) or after they were removed (false), so that
  /// the other hosts do the same with their parts.
  void on_record(std::function<void(bool is_kept)> hook) { on_record_ = std::move(hook); }
  /// On another host than host 0: saves copies of this host's part, with the stacks of all its
  /// workers. Throws nothing, because the job continues.
  void record_part() noexcept;
  /// On another host than host 0: removes these copies. Throws nothing.
  void forget_part() noexcept;

 private:
  void moves_again();
  std::optional<HangReport> look_closely();
  HangReport report(const Snapshot& now) const;
  void record(const Snapshot& seen) const;

  const Board& board_;
  std::optional<double> patience_s_;
  double least_patience_s_ = 0;  ///< derived from hangs that ended by themselves
  double steps_patience_s_ = 0;  ///< derived from the job's steps, when their events were last read
  std::optional<double> told_;   ///< the duration of the standstill that was last reported
  std::optional<Snapshot> before_;
  std::function<void(bool is_kept)> on_record_ = [](bool) {};
};

}  // namespace weft
