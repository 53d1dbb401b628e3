#include "actors/supervision/checkpoint_tally.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

/// The limit on checkpoints that wait for the reports of all workers. If a single worker reports
/// checkpoints, none of them ever becomes whole, so their number must be limited.
constexpr std::size_t kPartsMax = 1000;

}  // namespace

void CheckpointTally::reported(const Report& report) {
  if (report.checkpoint.empty()) return;
  if (last_ && report.step < last_->step) return;
  Part& part = parts_[report.checkpoint];
  part.step = report.step;
  part.workers.insert(report.worker);
  if (part.workers.size() == num_workers_) {
    last_ = WholeCheckpoint{.step = part.step, .path = report.checkpoint};
    std::erase_if(parts_, [&](const auto& entry) { return entry.second.step < last_->step; });
    parts_.erase(report.checkpoint);
  } else if (parts_.size() > kPartsMax) {
    parts_.erase(
        std::ranges::min_element(parts_, {}, [](const auto& entry) { return entry.second.step; }));
  }
}

Actions CheckpointTally::part_written(const PartWritten& part) {
  if (part.generation != generation_ || (save_ && part.save < save_->number)) return {};
  if (!save_ || save_->number != part.save) save_ = Save{.number = part.save};
  if (save_->is_over) return {};
  Actions actions;
  if (part.error != 0 && !save_->failure) {
    save_->failure = SaveEnded{.generation = generation_,
                               .step = part.step,
                               .save = part.save,
                               .error = part.error,
                               .message = fmt::format("worker {}: {}", part.worker, part.message)};
    save_->culprit = part.worker;
    actions.push_back(action::DropParts{.generation = generation_, .save = part.save});
  }
  save_->workers.insert(part.worker);
  if (save_->workers.size() < num_workers_) return actions;
  if (!save_->failure) {
    if (num_hosts_ == 1) return {action::JoinParts{.generation = generation_, .save = part.save}};
    const int workers_per_host = static_cast<int>(num_workers_) / num_hosts_;
    for (int host = 1; host < num_hosts_; ++host) {
      actions.push_back(action::JoinParts{
          .worker = host * workers_per_host, .generation = generation_, .save = part.save});
    }
    return actions;
  }
  save_->is_over = true;
  actions.push_back(action::TellSaved{*save_->failure});
  return actions;
}

std::optional<int> CheckpointTally::culprit(std::string_view message) const {
  if (!save_ || save_->culprit < 0) return {};
  if (message.find(save_->failure->message) == message.npos) return {};
  return save_->culprit;
}

void CheckpointTally::set_copy(int host, const std::string& path) {
  for (auto* checkpoint : {&last_, &resume_}) {
    if (!*checkpoint || (*checkpoint)->copies.empty()) continue;
    (*checkpoint)->copies.at(static_cast<std::size_t>(host)) = path;
  }
}

/// Records a copy of another host. When all other hosts have their copies, lets worker 0 join its
/// parts.
Actions CheckpointTally::copy_ended(const SaveEnded& ended) {
  if (ended.error != 0) {
    save_->is_over = true;
    SaveEnded failure = ended;
    failure.message = fmt::format("worker {}: {}", ended.worker, ended.message);
    return {action::TellSaved{std::move(failure)}};
  }
  save_->copies[ended.worker] = ended.path;
  if (static_cast<int>(save_->copies.size()) + 1 < num_hosts_) return {};
  return {action::JoinParts{.generation = generation_, .save = ended.save}};
}

Actions CheckpointTally::save_ended(const SaveEnded& ended) {
  const bool is_current =
      ended.generation == generation_ && save_ && ended.save == save_->number && !save_->is_over;
  if (ended.worker != 0) return is_current ? copy_ended(ended) : Actions{};
  // The checkpoint is whole even if worker 0 was lost right after it had joined the parts.
  const bool is_whole = ended.error == 0;
  if (is_whole && (!last_ || ended.step >= last_->step)) {
    last_ = WholeCheckpoint{.step = ended.step, .path = ended.path, .is_saved = true};
    if (num_hosts_ > 1) {
      last_->copies.push_back(ended.path);
      if (is_current) {
        for (const auto& [worker, path] : save_->copies) last_->copies.push_back(path);
      }
      last_->copies.resize(static_cast<std::size_t>(num_hosts_));
    }
    std::erase_if(parts_, [&](const auto& entry) { return entry.second.step < last_->step; });
  }
  if (!is_current) return {};
  save_->is_over = true;
  return {action::TellSaved{ended}};
}

std::uint64_t CheckpointTally::next_begin(std::uint64_t committed) const {
  if (has_kept_state_) return std::max(committed, resume_ ? resume_->step : 0);
  return last_ ? last_->step : 0;
}

std::optional<WholeCheckpoint> CheckpointTally::to_load(std::uint64_t step) const {
  if (!has_kept_state_) return last_;
  return resume_ && step == resume_->step ? resume_ : std::nullopt;
}

void CheckpointTally::begin_generation(std::uint64_t generation, std::uint64_t step) {
  generation_ = generation;
  has_kept_state_ = keeps_state_;
  save_.reset();
  std::erase_if(parts_, [&](const auto& entry) { return entry.second.step > step; });
}

}  // namespace weft
