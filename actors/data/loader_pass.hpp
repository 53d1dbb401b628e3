#pragma once
/// LoaderPass: a `for` over a DeviceLoader.

#include <cstdint>
#include <source_location>

#include <weft/device_loader.hpp>

#include "actors/data/job_loaders.hpp"

namespace weft {

enum class PassKind : std::uint8_t {
  training,    ///< ends steps
  nested,      ///< in the body of another pass, which ends the step
  evaluation,  ///< all(): the loader's position stays
};

/// Used by the loop's thread.
class LoaderPass {
 public:
  /// The first `count` batches of an epoch: of `epoch` for an evaluation, else of the next one.
  LoaderPass(DeviceLoader loader, PassKind kind, std::uint64_t epoch, std::uint64_t count,
             const std::source_location& where);
  LoaderPass(const LoaderPass&) = delete;
  LoaderPass& operator=(const LoaderPass&) = delete;

  bool is_done() const { return next_ == end_ && !has_batch_; }
  /// Takes the batch if the loop hasn't asked for it yet.
  const Batch& batch();
  void advance();
  /// The loop gets no more batches. May end the step, and throw what that throws.
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
  int exceptions_;           // in flight when it began
  std::uint64_t begun_ = 0;  // the number that LoaderProgress gave it
  bool is_open_ = false;
  /// It had ended before the loop was interrupted, and is begun again.
  bool is_repeated_ = false;
  std::uint64_t count_;
  std::uint64_t base_ = 0;  // number of the epoch's first batch
  std::uint64_t next_ = 0;  // batch
  std::uint64_t end_ = 0;   // batch
  bool has_batch_ = false;
  Batch batch_;
  std::uint64_t batch_of_step_ = 0;  // those of this step whose bodies have ended
  // When the first batch of the step was taken:
  std::uint64_t step_ = 0;
  std::uint64_t work_ = 0;
  // When the last batch was taken:
  std::uint64_t questions_ = 0;
  std::uint64_t reads_ = 0;
};

}  // namespace weft
