#pragma once
/// LoaderProgress: where a DeviceLoader is in its passes, and where it was in the loop that this
/// one continues. Pure.

#include <cstdint>
#include <string>

#include "transport/format/stored_loader.hpp"

namespace weft {

/// Used by the loop's thread. Copies of a DeviceLoader share one.
class LoaderProgress {
 public:
  explicit LoaderProgress(std::uint64_t batches_per_epoch)
      : batches_per_epoch_(batches_per_epoch) {}

  /// The position that `stored` had after `step` steps. If its batches were of another size, the
  /// pass continues after as many items.
  void restore(const StoredLoader& stored, std::int64_t batch_size, std::uint64_t step);

  /// The epoch of the next batch.
  std::uint64_t epoch() const;
  std::uint64_t passes() const { return passes_; }  ///< that have begun
  std::uint64_t taken() const { return taken_; }    ///< batches of the last pass
  bool is_over() const { return is_over_; }         ///< the last pass has ended
  /// The loop is in the last pass.
  bool is_open() const { return !is_over_ && !is_pending_; }
  /// The last pass was open when the loop was interrupted, and hasn't been begun again.
  bool is_pending() const { return is_pending_; }
  /// A pass had ended when the loop was interrupted, and the loop has not begun it again.
  bool has_finished_pass() const { return repeated_ < finished_; }
  bool is_repeating() const { return repeated_ > 0; }
  /// The loop has asked for epoch(), and decides by it which passes it makes.
  bool is_asked() const { return is_asked_; }
  void ask() { is_asked_ = true; }
  /// The loop has asked how long an epoch is: with the step, it may know its epoch.
  bool is_length_asked() const { return is_length_asked_; }
  void ask_length() { is_length_asked_ = true; }
  /// The batch at which this loop continued an interrupted pass; 0 if it began the pass itself.
  std::uint64_t continued_at() const { return continued_at_; }
  bool was_open() const { return was_open_; }
  /// The loop that this one continues had begun a pass.
  bool is_continued() const { return finished_ > 0 || was_open_; }
  /// In a step of the last pass, a pass of another loader was open too.
  bool is_beside() const { return is_beside_; }
  void set_beside() { is_beside_ = true; }

  /// Begins the next pass, or the pending one again.
  void begin();
  std::uint64_t begun() const { return begun_; }  ///< the number of begin()s
  /// Begins a pass again that had ended: it has no batches.
  void repeat() { ++repeated_; }
  void forget_pending();
  void take() { ++taken_; }
  void give_back() { --taken_; }
  /// Nothing more will be taken of the pass.
  void take_rest() { taken_ = batches_per_epoch_; }
  void end() { is_over_ = true; }
  /// Whether no pass has begun since begun() had this value.
  bool is_last(std::uint64_t begun) const { return begun == begun_; }
  /// The last batch's step has ended.
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
  // These describe the loop that this one continues.
  std::uint64_t finished_ = 0;
  std::uint64_t repeated_ = 0;
  bool is_pending_ = false;
  bool was_open_ = false;
  bool is_asked_ = false;
  bool is_length_asked_ = false;
};

}  // namespace weft
