#include "actors/data/loader_progress.hpp"

#include <algorithm>

namespace weft {

void LoaderProgress::restore(const StoredLoader& stored, std::int64_t batch_size,
                             std::uint64_t step) {
  if (stored.site.empty()) {  // Checkpoints of old versions have no positions, so the position is
                              // computed from the step.
    const std::uint64_t batches = step * static_cast<std::uint64_t>(stored.batches_per_step);
    taken_ = batches % batches_per_epoch_;
    passes_ = batches / batches_per_epoch_ + (taken_ > 0 ? 1 : 0);
    is_over_ = taken_ == 0;
  } else {
    const auto before = static_cast<std::uint64_t>(stored.batch_size);
    const auto now = static_cast<std::uint64_t>(batch_size);
    const std::uint64_t taken = stored.taken_at(step);
    taken_ = std::min(before == now ? taken : taken * before / now, batches_per_epoch_);
    passes_ = stored.passes;
    is_over_ = stored.is_over || stored.passes == 0;
    is_beside_ = stored.is_beside;
  }
  is_pending_ = was_open_ = !is_over_;
  finished_ = passes_ - (is_pending_ ? 1 : 0);
}

std::uint64_t LoaderProgress::epoch() const {
  if (passes_ == 0) return 0;
  const bool is_at_next = !is_pending_ && (is_over_ || step_has_ended_);
  return is_at_next ? passes_ : passes_ - 1;
}

void LoaderProgress::begin() {
  if (is_pending_) {
    continued_at_ = taken_;
  } else {
    ++passes_;
    taken_ = continued_at_ = 0;
    is_beside_ = false;
  }
  is_pending_ = is_over_ = step_has_ended_ = false;
  ++begun_;
}

void LoaderProgress::forget_pending() {
  if (!is_pending_) return;
  is_pending_ = false;
  is_over_ = true;
}

}  // namespace weft
