#include <algorithm>

#include "actors/process/log.hpp"
#include "actors/trainer/trainer_state_actor.hpp"
#include "transport/resume/command_journal.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft::trainer_actor {
namespace {

void write_down(Self self, const std::vector<StoredCommand>& commands) {
  if (commands.empty()) return;
  try {
    add_to_journal(state_of(self).options.assignment.run_dir, commands);
  } catch (const Error& e) {
    carry_out(self, state_of(self).job->cancel(e.code(), e.what()));
  }
}

/// Returns the commands of a checkpoint; none if it can't be read, since the loops fail then
/// anyway.
std::vector<StoredCommand> commands_in(const std::string& checkpoint) {
  try {
    return read_manifest(checkpoint).commands;
  } catch (const Error& e) {
    logger("weft.trainer")->warn("{}", e.what());
    return {};
  }
}

std::uint64_t num_read_in(const std::string& checkpoint) {
  return static_cast<std::uint64_t>(
      std::ranges::count(commands_in(checkpoint), true, &StoredCommand::is_read));
}

/// Notes the last step that the loops have begun, which is needed for commands that are posted
/// before the loops begin again.
void note_begun(Self self) {
  auto& begun = state_of(self).begun;
  for (const ActorRow& row : state_of(self).hosts->rows()) {
    if (row.kind == ActorKind::worker) begun = std::max(begun.value_or(0), row.step);
  }
}

}  // namespace

void carry_out(Self self, const DeskActions& actions) {
  auto& state = state_of(self);
  write_down(self, actions.scheduled);
  if (actions.holds) state.workers.hold();
  if (actions.let_go) state.workers.let_go({*actions.let_go});
  for (const ReadElsewhere& read : actions.read) state.workers.read(read);
  write_down(self, actions.all_read);
  for (const std::string& warning : actions.warnings) {
    logger("weft.trainer")->warn("{}", warning);
  }
  for (const CommandAnswer& answer : actions.answers) state.options.on_answer(answer);
  if (!actions.uneven) return;
  const UnevenReads& uneven = *actions.uneven;
  carry_out(self,
            state.job->cancel(Errc::uneven_loops, uneven.message, uneven.worker, uneven.step));
}

void add_commands(Self self, Start& start) {
  auto& state = state_of(self);
  if (start.generation > 1) note_begun(self);
  if (start.generation == 1) write_down(self, state.desk->commands());  // the checkpoint's commands
  carry_out(self, state.desk->begin_generation(start.generation, start.step, state.begun));
  start.commands = state.desk->commands();
  start.commands_read =
      start.resume.empty() ? state.desk->num_read_at(start.checkpoint) : num_read_in(start.resume);
}

void unwind_commands(Self self) {
  note_begun(self);
  state_of(self).desk->unwind();
}

void end_commands(Self self) {
  auto& state = state_of(self);
  const auto& failure = state.job->failure();
  const std::optional<Error> why =
      failure ? std::optional(Error(failure->code, failure->message)) : std::nullopt;
  const auto& last = state.job->checkpoints().last();
  std::vector<StoredCommand> kept;
  if (state.desk->is_open() && last && last->is_saved) kept = commands_in(last->path);
  carry_out(self, state.desk->end(why, last ? last->path : "", kept));
}

}  // namespace weft::trainer_actor
