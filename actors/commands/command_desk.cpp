#include "actors/commands/command_desk.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weft/job/command.hpp>

namespace weft {
namespace {

/// The number of steps after which a warning is given of a command that no loop has read.
constexpr std::uint64_t kStepsUnread = 64;

/// The number of reported checkpoints for which the desk remembers how many commands had been read.
constexpr std::size_t kReportedMax = 64;

std::size_t bytes_of(const StoredCommand& command) {
  return command.name.size() + command.payload.size();
}

}  // namespace

CommandDesk::CommandDesk(int num_workers, std::vector<StoredCommand> known)
    : num_workers_(num_workers) {
  begin_with(std::move(known));
}

void CommandDesk::begin_with(std::vector<StoredCommand> known) {
  std::vector<Entry> posted = std::exchange(entries_, {});
  std::erase_if(posted, &Entry::is_scheduled);
  bytes_ = 0;
  for (StoredCommand& command : known) {
    const bool is_read = command.is_read;
    entries_.push_back(
        {.command = std::move(command), .is_scheduled = true, .is_answered = is_read});
  }
  for (Entry& entry : posted) {
    entry.command.number = entries_.empty() ? 1 : entries_.back().command.number + 1;
    entries_.push_back(std::move(entry));
  }
  for (const Entry& entry : entries_) bytes_ += bytes_of(entry.command);
}

std::optional<Error> CommandDesk::refusal(const CommandPost& post) const {
  if (closed_) return closed_;
  if (!ended_.empty()) {
    return Error(Errc::unavailable,
                 fmt::format("the command '{}' was refused: loops of the job have ended, those of "
                             "workers {}",
                             post.name, fmt::join(ended_, ", ")));
  }
  const auto open = std::ranges::count(entries_, false, &Entry::is_answered);
  if (open >= kOpenCommandsMax) {
    const auto first = std::ranges::find(entries_, false, &Entry::is_answered);
    return Error(Errc::overloaded,
                 fmt::format("the command '{}' was refused: {} commands are open, the maximum, and "
                             "not all loops have read the first of them, '{}': a loop reads its "
                             "commands by ctx.commands()",
                             post.name, open, first->command.name));
  }
  const std::size_t bytes = bytes_ + post.name.size() + post.payload.size();
  if (bytes > kJobCommandsMax) {
    return Error(
        Errc::overloaded,
        fmt::format("the command '{}' was refused: with it, the job would have {} bytes of "
                    "commands, but it keeps at most {}, which a loop that begins again "
                    "sees again: post smaller payloads, such as paths of files",
                    post.name, bytes, kJobCommandsMax));
  }
  return {};
}

DeskActions CommandDesk::post(CommandPost post) {
  if (auto why = refusal(post)) {
    DeskActions actions;
    actions.answers.push_back({.post = post.post, .outcome = *std::move(why)});
    return actions;
  }
  const std::uint64_t number = entries_.empty() ? 1 : entries_.back().command.number + 1;
  Entry& entry = entries_.emplace_back();
  entry.command = {
      .number = number, .name = std::move(post.name), .payload = std::move(post.payload)};
  entry.post = post.post;
  bytes_ += bytes_of(entry.command);
  return is_running_ ? schedule_or_hold() : DeskActions();
}

/// If all loops wait for commands, the commands without a step get the step of this wait. Otherwise
/// asks the loops how far they are.
DeskActions CommandDesk::schedule_or_hold() {
  if (round_ || closed_) return {};
  if (const auto step = step_of_waits()) return let_go_at(*step);
  if (std::ranges::all_of(entries_, &Entry::is_scheduled)) return {};
  round_.emplace();
  DeskActions actions;
  actions.holds = true;
  return actions;
}

/// Returns the step in which all loops wait for commands, if each loop has read all commands up to
/// that step; nothing if some loop doesn't wait.
std::optional<std::uint64_t> CommandDesk::step_of_waits() const {
  if (static_cast<int>(waits_.size()) < num_workers_) return {};
  const std::uint64_t step = waits_.begin()->second.step;
  std::uint64_t due = 0;
  for (const Entry& entry : entries_) {
    if (entry.is_scheduled && entry.command.step <= step) due = entry.command.number;
  }
  const bool all = std::ranges::all_of(waits_, [&](const auto& wait) {
    return wait.second.step == step && wait.second.last >= due;
  });
  return all ? std::optional(step) : std::nullopt;
}

/// Moves the commands that no loop has read to this step, in which all loops still are.
DeskActions CommandDesk::let_go_at(std::uint64_t step) {
  DeskActions actions;
  for (Entry& entry : entries_) {
    const bool is_later = !entry.is_scheduled || entry.command.step > step;
    if (!is_later || entry.command.is_read) continue;
    entry.command.step = step;
    entry.is_scheduled = true;
    actions.scheduled.push_back(entry.command);
  }
  if (!actions.scheduled.empty()) actions.let_go = actions.scheduled;
  return actions;
}

DeskActions CommandDesk::begin_generation(std::uint64_t generation, std::uint64_t step,
                                          std::optional<std::uint64_t> begun) {
  generation_ = generation;
  is_running_ = true;
  round_.reset();
  waits_.clear();
  ended_.clear();
  std::uint64_t first = std::max(step, begun ? *begun + 1 : 0);
  DeskActions actions;
  for (Entry& entry : entries_) {
    entry.readers.clear();
    if (entry.is_scheduled) {
      first = std::max(first, entry.command.step);
      continue;
    }
    entry.command.step = first;
    entry.is_scheduled = true;
    actions.scheduled.push_back(entry.command);
  }
  return actions;
}

void CommandDesk::unwind() {
  is_running_ = false;
  round_.reset();
  waits_.clear();
  ended_.clear();
}

bool CommandDesk::takes_part(int worker, std::uint64_t generation) const {
  return is_running_ && generation == generation_ && worker >= 0 && worker < num_workers_;
}

DeskActions CommandDesk::held(int worker, std::uint64_t generation, std::uint64_t step) {
  if (!round_ || !takes_part(worker, generation)) return {};
  round_->insert_or_assign(worker, step);
  if (static_cast<int>(round_->size()) < num_workers_) return {};
  std::uint64_t agreed = 0;
  for (const auto& [each, first] : *round_) agreed = std::max(agreed, first);
  for (const Entry& entry : entries_) {
    if (entry.is_scheduled) agreed = std::max(agreed, entry.command.step);
  }
  DeskActions actions;
  for (Entry& entry : entries_) {
    if (entry.is_scheduled) continue;
    entry.command.step = agreed;
    entry.is_scheduled = true;
    actions.scheduled.push_back(entry.command);
  }
  actions.let_go = actions.scheduled;
  round_.reset();
  return actions;
}

DeskActions CommandDesk::read(int worker, std::uint64_t generation,
                              std::span<const CommandMark> marks, bool is_earlier) {
  DeskActions actions;
  if (!takes_part(worker, generation)) return actions;
  for (const CommandMark& mark : marks) {
    const auto found = std::ranges::find_if(
        entries_, [&](const Entry& e) { return e.command.number == mark.number; });
    if (found == entries_.end()) continue;
    Entry& entry = *found;
    const bool is_first = entry.readers.empty();
    if (!is_first && entry.command.step != mark.step && !actions.uneven) {
      actions.uneven = {
          .worker = worker,
          .step = mark.step,
          .message = fmt::format("worker {} has read the command '{}' in step {}, but worker {} in "
                                 "step {}: all workers must call ctx.commands() in the same steps",
                                 *entry.readers.begin(), entry.command.name, entry.command.step,
                                 worker, mark.step)};
    }
    entry.readers.insert(worker);
    entry.command.step = is_first ? mark.step : entry.command.step;
    entry.command.is_read = true;
    if (is_first && !is_earlier) actions.read.push_back({worker, mark});
    if (static_cast<int>(entry.readers.size()) < num_workers_ || entry.is_answered) continue;
    actions.all_read.push_back(entry.command);
    answer(entry, entry.command.step, actions);
  }
  return actions;
}

void CommandDesk::answer(Entry& entry, Outcome<std::uint64_t> outcome, DeskActions& actions) {
  if (std::exchange(entry.is_answered, true) || entry.post == 0) return;
  actions.answers.push_back(
      {.post = entry.post, .number = entry.command.number, .outcome = std::move(outcome)});
}

DeskActions CommandDesk::waits(int worker, std::uint64_t generation, std::uint64_t step,
                               std::uint64_t last) {
  if (!takes_part(worker, generation)) return {};
  waits_.insert_or_assign(worker, Wait{step, last});
  return schedule_or_hold();
}

DeskActions CommandDesk::loop_ended(int worker, std::uint64_t generation) {
  if (!takes_part(worker, generation)) return {};
  ended_.insert(worker);
  DeskActions actions;
  refuse_unscheduled(Error(Errc::unavailable, fmt::format("the loop of worker {} ended before the "
                                                          "command had a step",
                                                          worker)),
                     actions);
  end_round(actions);
  return actions;
}

void CommandDesk::end_round(DeskActions& actions) {
  if (!round_) return;
  round_.reset();
  actions.let_go.emplace();
}

void CommandDesk::refuse_unscheduled(const Error& why, DeskActions& actions) {
  for (Entry& entry : entries_) {
    if (entry.is_scheduled) continue;
    answer(entry,
           Error(why.code(), fmt::format("the command '{}' was not given to the loops: {}",
                                         entry.command.name, why.what())),
           actions);
    bytes_ -= bytes_of(entry.command);
  }
  std::erase_if(entries_, [](const Entry& entry) { return !entry.is_scheduled; });
}

DeskActions CommandDesk::reached(std::uint64_t step) {
  DeskActions actions;
  for (Entry& entry : entries_) {
    const bool is_late = entry.is_scheduled && entry.command.step + kStepsUnread <= step;
    if (!is_late || !entry.readers.empty() || entry.is_answered) continue;
    if (std::exchange(entry.is_warned_of, true)) continue;
    actions.warnings.push_back(fmt::format(
        "the command '{}' waits since step {}, but the loops are at step {} and haven't "
        "read it: a loop reads its commands by ctx.commands()",
        entry.command.name, entry.command.step, step));
  }
  return actions;
}

DeskActions CommandDesk::close(Error why) {
  DeskActions actions;
  if (closed_) return actions;
  refuse_unscheduled(why, actions);
  end_round(actions);
  closed_ = std::move(why);
  return actions;
}

std::string CommandDesk::unread_text(const Entry& entry) const {
  const std::string& name = entry.command.name;
  if (!entry.is_scheduled) {
    return fmt::format("the command '{}' was not given to the loops", name);
  }
  if (entry.readers.empty()) {
    return fmt::format(
        "no loop has read the command '{}', which the loops had from step {} on: a loop reads its "
        "commands by ctx.commands()",
        name, entry.command.step);
  }
  return fmt::format(
      "only the loops of workers {} have read the command '{}', in step {}: all workers must call "
      "ctx.commands() in the same steps",
      fmt::join(entry.readers, ", "), name, entry.command.step);
}

bool CommandDesk::is_open() const { return !std::ranges::all_of(entries_, &Entry::is_answered); }

DeskActions CommandDesk::end(const std::optional<Error>& why, const std::string& checkpoint,
                             std::span<const StoredCommand> kept) {
  DeskActions actions;
  const bool is_cancelled = why && why->code() == Errc::cancelled;
  for (Entry& entry : entries_) {
    if (entry.is_answered) continue;
    std::string text = unread_text(entry);
    const auto found = std::ranges::find(kept, entry.command.number, &StoredCommand::number);
    if (found != kept.end()) {
      text += fmt::format("; the checkpoint {} has it, so {}", checkpoint,
                          found->is_read ? "a job that continues from it has it among its earlier "
                                           "commands"
                                         : "the loops of a job that continues from it read it");
    }
    actions.warnings.push_back("the job has ended, and " + text);
    answer(entry,
           Error(is_cancelled ? Errc::cancelled : Errc::unavailable,
                 why ? fmt::format("the job has ended ({}), and {}", why->what(), text)
                     : "the job has ended, and " + text),
           actions);
  }
  is_running_ = false;
  closed_ = Error(Errc::unavailable, "the job has ended");
  return actions;
}

std::vector<StoredCommand> CommandDesk::commands() const {
  std::vector<StoredCommand> commands;
  for (const Entry& entry : entries_) {
    if (entry.is_scheduled) commands.push_back(entry.command);
  }
  return commands;
}

void CommandDesk::checkpoint_reported(int worker, std::uint64_t generation, std::uint64_t step,
                                      const std::string& path) {
  const auto is_known = [&](const auto& reported) { return reported.first == path; };
  if (std::ranges::any_of(reported_, is_known)) return;
  const auto is_read = [&](const Entry& entry) {
    return generation == generation_ ? entry.readers.contains(worker)
                                     : entry.command.is_read && entry.command.step < step;
  };
  std::uint64_t num_read = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (is_read(entries_[i])) num_read = i + 1;
  }
  reported_.emplace_back(path, num_read);
  if (reported_.size() > kReportedMax) reported_.pop_front();
}

std::uint64_t CommandDesk::num_read_at(const std::string& path) const {
  const auto found =
      std::ranges::find_if(reported_, [&](const auto& reported) { return reported.first == path; });
  return found == reported_.end() ? 0 : found->second;
}

}  // namespace weft
