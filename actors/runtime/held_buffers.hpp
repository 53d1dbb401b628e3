#pragma once
/// HeldBuffers: buffers that keep their elements while a background thread reads them.
/// CheckpointWait: shows that a loop waits for such a thread. ChipInput: a buffer that background
/// threads write.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "data/files/work_crew.hpp"
#include "spmd/tensor/runtime.hpp"
#include "transport/blackbox/recorder.hpp"

namespace weft {

/// A tensor on the chips, and the memory to which the host writes its shards.
struct ChipInput {
  BufferPtr buffer{};
  std::vector<std::byte*> shards{};                    ///< by chip of the worker
  std::vector<std::shared_ptr<std::byte[]>> staged{};  ///< owns the host memory for shards that
                                                       ///< can't be written directly
};

/// While it lives, no run overwrites the buffer. The loop's thread makes and destroys it.
class BufferHold {
 public:
  explicit BufferHold(BufferPtr buffer) : buffer_(std::move(buffer)) { buffer_->add_holds(1); }
  BufferHold(BufferHold&&) = default;
  BufferHold& operator=(BufferHold&&) = delete;
  ~BufferHold() {
    if (buffer_ != nullptr) buffer_->add_holds(-1);
  }

 private:
  BufferPtr buffer_;
};

/// Buffers that no run overwrites while they are in the Holds of a runtime.
struct HeldBuffers {
  std::vector<BufferHold> buffers{};  ///< for the loop's thread only
  /// The reading thread sets it when it has read the buffers and has no reference to them any more.
  /// This also makes the end of its reads visible to the loop's thread.
  std::atomic<bool> is_over{false};
  Urgency urgency;  ///< urgency of the reads

  explicit HeldBuffers(bool is_urgent) : urgency(is_urgent) {}

  void end() {
    is_over.store(true, std::memory_order_release);
    is_over.notify_all();
  }
};

/// Keeps HeldBuffers until they are read. Only the loop's thread may use it, because only that
/// thread drops buffers.
class Holds {
 public:
  void add(std::shared_ptr<HeldBuffers> held) { holds_.push_back(std::move(held)); }
  void drop_ended() {
    if (holds_.empty()) return;
    std::erase_if(holds_, [](const auto& held) {
      const bool is_over = held->is_over.load(std::memory_order_acquire);
      if (is_over) held->buffers.clear();
      return is_over;
    });
  }
  bool empty() const { return holds_.empty(); }
  /// Waits until the oldest HeldBuffers are read, and drops them. Returns false if there are none.
  bool wait_for_one() {
    if (holds_.empty()) return false;
    holds_.front()->urgency.raise();
    holds_.front()->is_over.wait(false, std::memory_order_acquire);
    holds_.front()->buffers.clear();  // the reading thread may still own `holds_.front()`
    holds_.erase(holds_.begin());
    return true;
  }

 private:
  std::vector<std::shared_ptr<HeldBuffers>> holds_;
};

/// While it lives, the board shows the worker as saving. The length of its life becomes a sample of
/// the metric CheckpointWait.
class CheckpointWait {
 public:
  CheckpointWait(const Recorder& recorder, std::uint64_t step, Runtime& runtime)
      : saving_(recorder, ActorState::saving, EventKind::checkpoint, {.number = step}),
        runtime_(runtime) {}
  ~CheckpointWait() {
    const std::chrono::duration<double> waited = Clock::now() - begin_;
    runtime_.metrics().sample("CheckpointWait", MetricUnit::seconds, waited.count());
  }
  CheckpointWait(const CheckpointWait&) = delete;
  CheckpointWait& operator=(const CheckpointWait&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  const StateScope saving_;
  Runtime& runtime_;
  const Clock::time_point begin_ = Clock::now();
};

}  // namespace weft
