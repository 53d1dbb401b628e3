#include "actors/commands/loop_commands.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <weft/job/command.hpp>

namespace weft {

void LoopCommands::start(std::uint64_t step, std::vector<StoredCommand> known) {
  *this = {};
  known_ = std::move(known);
  for (StoredCommand& command : known_) command.is_read = false;
  step_ = step;
}

void LoopCommands::begin_with(std::span<const CommandMark> read) {
  for (const CommandMark& mark : read) {
    const auto command = std::ranges::find(known_, mark.number, &StoredCommand::number);
    if (command == known_.end()) continue;
    command->step = mark.step;
    num_read_ = static_cast<std::size_t>(command - known_.begin()) + 1;
  }
  num_earlier_ = num_read_;
  for (std::size_t i = 0; i < known_.size(); ++i) known_[i].is_read = i < num_read_;
}

std::uint64_t LoopCommands::hold() {
  is_held_ = true;
  return step_ + 1;
}

void LoopCommands::let_go(std::vector<StoredCommand> commands) {
  is_held_ = false;
  for (StoredCommand& command : commands) {
    const auto known = std::ranges::find(known_, command.number, &StoredCommand::number);
    if (known == known_.end()) {
      known_.push_back(std::move(command));
    } else if (!known->is_read) {
      known->step = command.step;
    }
  }
}

std::optional<std::string> LoopCommands::read_elsewhere(const ReadElsewhere& read) {
  if (num_read_ > 0 && known_[num_read_ - 1].number >= read.mark.number) return {};
  elsewhere_.push_back(read);
  return missed();
}

std::optional<std::string> LoopCommands::missed() const {
  const auto missed = std::ranges::find_if(
      elsewhere_, [this](const ReadElsewhere& read) { return read.mark.step < step_; });
  if (missed == elsewhere_.end()) return {};
  const auto command = std::ranges::find(known_, missed->mark.number, &StoredCommand::number);
  return fmt::format(
      "worker {} has read the command '{}' in step {}, but this worker's loop continued to step {} "
      "without reading it: all workers must call ctx.commands() in the same steps",
      missed->worker, command == known_.end() ? "" : command->name, missed->mark.step, step_);
}

std::optional<std::string> LoopCommands::begun(std::uint64_t step) {
  step_ = step;
  return missed();
}

bool LoopCommands::has_due() const {
  return num_read_ < known_.size() && known_[num_read_].step <= step_;
}

std::vector<StoredCommand> LoopCommands::read() {
  std::vector<StoredCommand> due;
  while (has_due()) {
    StoredCommand& command = known_[num_read_++];
    command.step = step_;
    command.is_read = true;
    due.push_back(command);
  }
  std::erase_if(elsewhere_, [&](const ReadElsewhere& read) {
    return !due.empty() && read.mark.number <= due.back().number;
  });
  return due;
}

std::vector<CommandMark> LoopCommands::marks() const {
  constexpr std::size_t kMarksMax = kOpenCommandsMax;
  std::vector<CommandMark> marks;
  for (std::size_t i = num_read_ - std::min(num_read_, kMarksMax); i < num_read_; ++i) {
    marks.push_back({known_[i].number, known_[i].step});
  }
  return marks;
}

}  // namespace weft
