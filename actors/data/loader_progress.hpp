#pragma once
/// LoaderProgress: counts the passes over a DeviceLoader and the batches taken from them, in this
/// loop and in the interrupted loop that this one continues. It does no I/O.

#include <cstdint>
#include <string>

#include "transport/format/stored_loader.hpp"

namespace weft {

/// Only the loop's thread may use it. Copies of a DeviceLoader share one LoaderProgress.
class LoaderProgress {
 public:
  explicit LoaderProgress(std::uint64_t batches_per_epoch)
      : batches_per_epoch_(batches_per_epoch) {}

  /// Restores the position that `stored` had after `step` steps. If the batch size has changed
  /// since, the pass continues after the same number of items.
  void restore(const StoredLoader& stored, std::int64_t batch_size, std::uint64_t step);

  /// Returns the epoch of the next batch.
  std::uint64_t epoch() const;
  std::uint64_t passes() const { return passes_; }  ///< number of passes that have begun
  std::uint64_t taken() const { return taken_; }    ///< number of batches taken from the last pass
  bool is_over() const { return is_over_; }         ///< whether the last pass has ended
  /// Returns whether this loop has begun the last pass and hasn't ended it.
  bool is_open() const { return !is_over_ && !is_pending_; }
  /// Returns whether the last pass was open when the loop was interrupted, and hasn't been
  /// continued.
  bool is_pending() const { return is_pending_; }
  /// Returns whether there is a pass that had ended before the interruption and that this loop
  /// hasn't repeated yet.
  bool has_finished_pass() const { return repeated_ < finished_; }
  bool is_repeating() const { return repeated_ > 0; }
  /// Returns whether the loop has called epoch(). If it has, it decides by the epoch which passes
  /// it makes.
  bool is_asked() const { return is_asked_; }
  void ask() { is_asked_ = true; }
  /// Returns whether the loop has asked for the length of an epoch. From the length and the step, a
  /// loop can compute the epoch.
  bool is_length_asked() const { return is_length_asked_; }
  void ask_length() { is_length_asked_ = true; }
  /// Returns the number of the batch at which this loop continued an interrupted pass; 0 if this
  /// loop began the pass.
  std::uint64_t continued_at() const { return continued_at_; }
  bool was_open() const { return was_open_; }
  /// Returns whether the interrupted loop had begun a pass over this loader.
  bool is_continued() const { return finished_ > 0 || was_open_; }
  /// Returns whether a pass over another loader was open during some step of the last pass.
  bool is_beside() const { return is_beside_; }
  void set_beside() { is_beside_ = true; }

  /// Begins the next pass, or continues the pending one.
  void begin();
  std::uint64_t begun() const { return begun_; }  ///< number of calls of begin()
  /// Called when the loop begins a pass that had ended before the interruption, so it gets no
  /// batches.
  void repeat() { ++repeated_; }
  void forget_pending();
  void take() { ++taken_; }
  void give_back() { --taken_; }
  /// Counts the remaining batches of the pass as taken.
  void take_rest() { taken_ = batches_per_epoch_; }
  void end() { is_over_ = true; }
  /// Returns whether no pass has begun since begun() returned this value.
  bool is_last(std::uint64_t begun) const { return begun == begun_; }
  /// Called when a step has ended. Records whether all batches of the epoch were taken by then.
  void step_ended() { step_has_ended_ = taken_ == batches_per_epoch_; }

 private:
  std::uint64_t batches_per_epoch_;
  std::uint64_t passes_ = 0;
  std::uint64_t taken_ = 0;
  bool is_over_ = true;
  bool step_has_ended_ = false;
  bool is_beside_ = false;
  std::uint64_t begun_ = 0;
  std::uint64_t continued_at_ = 0;
  // The following members describe the interrupted loop that this loop continues.
  std::uint64_t finished_ = 0;
  std::uint64_t repeated_ = 0;
  bool is_pending_ = false;
  bool was_open_ = false;
  bool is_asked_ = false;
  bool is_length_asked_ = false;
};

}  // namespace weft
