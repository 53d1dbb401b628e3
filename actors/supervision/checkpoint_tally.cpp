#include "actors/supervision/checkpoint_tally.hpp"

#include <algorithm>

namespace weft {
namespace {

/// Of checkpoints that some workers have reported, so many wait for the others: those of a loop in
/// which one worker alone reports them never become whole.
constexpr std::size_t kPartsMax = 1000;

}  // namespace

void CheckpointTally::reported(const Report& report) {
  if (report.checkpoint.empty()) return;
  if (last_ && report.step < last_->step) return;
  Part& part = parts_[report.checkpoint];
  part.step = report.step;
  part.workers.insert(report.worker);
  if (part.workers.size() == num_workers_) {
    last_ = Whole{part.step, report.checkpoint};
    std::erase_if(parts_, [&](const auto& entry) { return entry.second.step < last_->step; });
    parts_.erase(report.checkpoint);
  } else if (parts_.size() > kPartsMax) {
    parts_.erase(
        std::ranges::min_element(parts_, {}, [](const auto& entry) { return entry.second.step; }));
  }
}

void CheckpointTally::begin_generation(std::uint64_t step) {
  std::erase_if(parts_, [&](const auto& entry) { return entry.second.step > step; });
}

}  // namespace weft
