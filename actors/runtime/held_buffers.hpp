#pragma once
/// HeldBuffers: buffers that keep their elements while a background thread reads them. ChipInput: a
/// buffer that background threads write.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "spmd/tensor/runtime.hpp"

namespace weft {

/// A tensor on the chips, and where the host writes its shards.
struct ChipInput {
  BufferPtr buffer{};
  std::vector<std::byte*> shards{};                    ///< by chip of the worker
  std::vector<std::shared_ptr<std::byte[]>> staged{};  ///< those that aren't the chips' own memory
};

/// As long as it is among a runtime's holds, no run writes over the buffers.
struct HeldBuffers {
  std::vector<BufferPtr> buffers{};
  /// Set by the reading thread when it is done; publishes the end of its reads.
  std::atomic<bool> is_over{false};

  void end() {
    is_over.store(true, std::memory_order_release);
    is_over.notify_all();
  }
};

/// Used by the loop's thread, which alone drops the buffers.
class Holds {
 public:
  void add(std::shared_ptr<HeldBuffers> held) { holds_.push_back(std::move(held)); }
  void drop_ended() {
    if (holds_.empty()) return;
    std::erase_if(holds_,
                  [](const auto& held) { return held->is_over.load(std::memory_order_acquire); });
  }
  /// Waits for the oldest hold and drops it. False if there is none.
  bool wait_for_one() {
    if (holds_.empty()) return false;
    holds_.front()->is_over.wait(false, std::memory_order_acquire);
    holds_.erase(holds_.begin());
    return true;
  }

 private:
  std::vector<std::shared_ptr<HeldBuffers>> holds_;
};

}  // namespace weft
