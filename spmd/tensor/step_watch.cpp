#include "spmd/tensor/step_watch.hpp"

#include <memory>
#include <utility>

#include <weft/tensor/error.hpp>

#include "spmd/tensor/node.hpp"

namespace weft {

void StepWatch::note_ops(std::uint32_t ops, const std::source_location& loc) {
  const std::string text = fmt::format(
      "{} ops have been recorded without a sync(), the last at {}: without sync() the ops aren't "
      "computed and the step doesn't end; call sync() or a compiled function in the loop",
      ops, file_line(loc));
  if (std::exchange(ops_noted_at_, kOpsMax) == kOpsMax) fail(Errc::invalid_argument, "{}", text);
  runtime_.warn(text);
}

void StepWatch::note_runs(const RunSite& site) {
  if (std::exchange(warned_of_runs_, true)) return;
  runtime_.warn(
      fmt::format("{} programs have run in step {}, the last for the {} at {}, but none has ended "
                  "the step: sync() ends a step, item() and to_vector() don't; without sync() a "
                  "loop over ctx.step() never ends",
                  runs_, runtime_.step(), site.function, file_line(site.loc)));
}

void StepClosures::step_ended() {
  run(ended_);
  ended_ = waiting_.size();
}

void StepClosures::catch_up() {
  if (!is_running_) run(ended_);
}

void StepClosures::run(std::size_t count) {
  ended_ = 0;
  for (; count > 0; --count) {
    const std::function<void()> closure = std::move(waiting_.front());
    waiting_.pop_front();
    is_running_ = true;
    const std::shared_ptr<void> left(nullptr, [this](void*) { is_running_ = false; });
    closure();
  }
}

void StepWatch::computed_again(const std::source_location& read,
                               const std::source_location& gradient) {
  if (std::exchange(warned_of_reads_, true)) return;
  runtime_.warn(fmt::format(
      "the gradient at {} repeats computations of the read at {}, so the forward pass runs twice; "
      "read after the gradient, or in an add_step_closure(), to run it once",
      file_line(gradient), file_line(read)));
}

/// Warns of an output that is gathered although its sharding was marked, because outputs are stored
/// without the padding that the sharding would need. This isn't an error, because the user may just
/// keep a handle to read the tensor.
void StepWatch::output(const Program& program, ValueId value) {
  const OpId op = program.defining_op(value);
  if (op == kNoId || program.kind(op) != OpKind::sharding_constraint) return;
  const Mesh* mesh = runtime_.mesh();
  if (mesh == nullptr) return;
  const auto& [dtype, shape] = program.type(value);
  const Sharding& marked = program.constraints[static_cast<std::size_t>(program.op_attrs(op)[0])];
  for (int dim = 0; dim < shape.size(); ++dim) {
    const std::int64_t parts = mesh->count(marked.dims[static_cast<std::size_t>(dim)]);
    if (shape[dim] % parts == 0) continue;
    if (!uneven_.insert(program.loc(op)).second) return;
    runtime_.warn(fmt::format(
        "{} is marked {} at {}, but its {} parts don't divide dim {}, and it is alive at the end "
        "of the step: it is gathered whole on every chip in every step; release its handle before "
        "the end of the step, or mark a dim that the parts divide",
        program.type(value).to_string(), marked.to_string(*mesh, shape.size()), program.loc(op),
        parts, dim));
    return;
  }
}

}  // namespace weft
