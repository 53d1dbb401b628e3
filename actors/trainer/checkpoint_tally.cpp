#include <weft/actors/trainer/checkpoint_tally.hpp>

namespace weft {

void CheckpointTally::reported(const Report& report) {
  if (report.checkpoint.empty()) return;
  Part& part = parts_[report.checkpoint];
  part.step = report.step;
  part.workers.insert(report.worker);
  if (part.workers.size() < num_workers_) return;
  if (!last_ || last_->step <= part.step) last_ = Whole{part.step, report.checkpoint};
  parts_.erase(report.checkpoint);
}

void CheckpointTally::begin_generation(std::uint64_t step) {
  std::erase_if(parts_, [&](const auto& entry) { return entry.second.step > step; });
}

}  // namespace weft
