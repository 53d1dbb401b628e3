// The part of JobLoaders that detects a loop that runs on without ending a step.

#include <algorithm>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "actors/data/job_loaders.hpp"
#include "actors/process/log.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {
namespace {

/// Returns the output by which a run updates a parameter; null if there is none. An exchange of two
/// parameters doesn't count as an update, because it computes nothing.
const ProgramOutput* find_update(const Program& program) {
  const auto updates = [&](const ProgramOutput& output) {
    return output.updates >= 0 &&
           program.inputs[static_cast<std::size_t>(output.updates)].kind == InputKind::param &&
           program.defining_op(output.value) != kNoId;
  };
  const auto found = std::ranges::find_if(program.outputs, updates);
  return found == program.outputs.end() ? nullptr : &*found;
}

}  // namespace

/// Warns if a read or an eager op updates the same parameter at the same lines for the second time
/// in one step. A loop that trains only by reads, such as `optimizer.step(grads); loss.item();`,
/// does this and never ends a step. Updates in a pass are ignored, because the pass ends the step.
void JobLoaders::ran(const Program& program, const RunSite& site) {
  const bool is_read = site.function == "read";
  const bool is_call = is_read || site.function.empty();  // whether this is a read or an eager op
  if (has_named_update_ || site.ends_step || !is_call || num_open > 0) return;
  const ProgramOutput* const update = find_update(program);
  if (update == nullptr) return;
  const std::string& name = program.inputs[static_cast<std::size_t>(update->updates)].name;
  const std::string& line = program.loc(program.defining_op(update->value));
  const std::string place = file_line(site.loc);
  if (updates_.insert(fmt::format("{} {} {}", name, line, place)).second) return;
  has_named_update_ = true;
  runtime_.warn(fmt::format(
      "the parameter '{}' is updated at {} for the second time in step {}, because of the {} "
      "at {}, which ends no step. A loop like this neither counts nor keeps steps, so all of "
      "its work is lost if a worker is lost; end a step after each update: call sync(), or "
      "compile the update by weft::compile(). Ignore this warning if a sync() after several "
      "updates ends their step",
      name, line, runtime_.step(), is_read ? "read" : "op", place));
}

void JobLoaders::gave_back(const std::source_location& where) {
  const Doings done{.step = runtime_.step(),
                    .work = recorded_work(),
                    .runs = runtime_.runs(),
                    .reads = runtime_.reads()};
  std::string place = file_line(where);
  const bool is_turn = turns_ > 0 && place == left_at_ && done == done_;
  turns_ = is_turn ? turns_ + 1 : 1;
  left_at_ = std::move(place);
  done_ = done;
  if (turns_ < 2 || std::exchange(has_named_pass_, true)) return;
  logger("weft.worker")->warn("{}", *turns_in_vain());
}

void JobLoaders::require_turns_end() const {
  constexpr std::uint64_t kTurnsMax = 10'000;
  if (turns_ >= kTurnsMax) fail(Errc::invalid_argument, "{}", *turns_in_vain());
}

std::optional<std::string> JobLoaders::turns_in_vain() const {
  if (turns_ < 2) return {};
  return fmt::format(
      "the pass at {} has been left {} times in step {} before its body recorded anything. "
      "Such a pass ends no step and reads batches that aren't used, so a loop over ctx.step() "
      "never ends; leave the loop around the pass too, or end the step: record ops in the body "
      "before it leaves the pass, or call sync()",
      left_at_, turns_, runtime_.step());
}

}  // namespace weft
