#pragma once
/// LoaderPass: one `for` loop over a DeviceLoader.

#include <cstdint>
#include <source_location>

#include <weft/data/device_loader.hpp>

#include "actors/data/job_loaders.hpp"

namespace weft {

enum class PassKind : std::uint8_t {
  training,    ///< a pass that ends steps
  nested,      ///< a pass in the body of another pass, which ends the steps
  evaluation,  ///< a pass by all(), which doesn't change the loader's position
};

/// Only the loop's thread may use it.
class LoaderPass {
 public:
  /// Makes a pass over the first `count` batches of an epoch: of `epoch` if it is an evaluation,
  /// otherwise of the loader's next epoch.
  LoaderPass(DeviceLoader loader, PassKind kind, std::uint64_t epoch, std::uint64_t count,
             const std::source_location& where);
  LoaderPass(const LoaderPass&) = delete;
  LoaderPass& operator=(const LoaderPass&) = delete;

  bool is_done() const { return next_ == end_ && !has_batch_; }
  /// Returns the current batch. If the loop asks for it for the first time, takes it from the
  /// loader.
  const Batch& batch();
  void advance();
  /// Called when the loop takes no more batches. May end the step; then it throws the step's
  /// errors.
  void leave();

 private:
  void open();
  BatchSource& source() const { return *loader_.source_; }
  LoaderProgress& progress() const { return source().progress(); }
  bool is_superseded() const;
  void require_last() const;
  void release();
  void end_step();
  void close();
  bool has_unended_work() const;
  void require_asked() const;

  DeviceLoader loader_;
  PassKind kind_;
  bool is_limited_;
  std::source_location where_;
  int exceptions_;           // exceptions in flight when the pass began
  std::uint64_t begun_ = 0;  // the pass's number in LoaderProgress
  bool is_open_ = false;
  /// True if this pass repeats a pass that had ended before the loop was interrupted.
  bool is_repeated_ = false;
  std::uint64_t count_;
  std::uint64_t base_ = 0;  // number of the epoch's first batch
  std::uint64_t next_ = 0;  // number of the next batch to take
  std::uint64_t end_ = 0;   // number of the batch after the last
  bool has_batch_ = false;
  Batch batch_;
  std::uint64_t batch_of_step_ = 0;  // number of batches of this step whose bodies have ended
  // The following two members are values from when the first batch of the step was taken.
  std::uint64_t step_ = 0;
  std::uint64_t work_ = 0;
  // The following two members are values from when the last batch was taken.
  std::uint64_t questions_ = 0;
  std::uint64_t reads_ = 0;
};

}  // namespace weft
