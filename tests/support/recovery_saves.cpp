// Simulates the checkpoints that the loops of a job save at the beginning of steps, as
// JobCheckpoints, its writers and the trainer's actor do. The number of a save is its step plus
// one.

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "tests/support/recovery_world.hpp"

namespace weft::testing {

/// Returns whether the worker's last save has ended; the next one may begin only then.
bool SimJob::save_is_over(const SimWorker& worker) const {
  return worker.save == 0 || worker.state.save_ended(worker.save) != nullptr;
}

/// Begins a save. The worker's writer reports that it has written its part, or that it has dropped
/// the part, because of an error or because another worker failed to write its part.
void SimJob::begin_save(int index) {
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  worker.save = worker.step + 1;
  const bool fails = random_.one_in(40) || worker.state.drops_parts(worker.save);
  if (!fails) parts_[worker.save].insert(index);
  to_trainer(worker, {.what = What::part,
                      .a = worker.save,
                      .b = static_cast<std::uint64_t>(fails ? Errc::no_space : Errc{})});
}

void SimJob::at_trainer_of_save(const Event& event) {
  CheckpointTally& checkpoints = job_.checkpoints();
  if (event.what == What::part) {
    return carry_out(checkpoints.part_written({.worker = event.worker,
                                               .generation = event.generation,
                                               .step = event.a - 1,
                                               .save = event.a,
                                               .error = static_cast<std::uint8_t>(event.b)}));
  }
  carry_out(checkpoints.save_ended({.generation = event.generation,
                                    .step = event.a - 1,
                                    .save = event.a,
                                    .path = std::to_string(event.a - 1)}));
}

/// Passes a message about saves to a worker. Worker 0 joins the parts, but only those of this
/// generation and save.
void SimJob::at_worker_of_save(const Event& event) {
  SimWorker& worker = workers_[static_cast<std::size_t>(event.worker)];
  if (event.what == What::save_ended) {
    worker.state.saved({.generation = event.generation,
                        .save = event.a,
                        .error = static_cast<std::uint8_t>(event.b)});
    return wake(event.worker);
  }
  if (event.what == What::drop_parts) return worker.state.drop_parts(event.generation, event.a);
  worker.state.join_parts(event.generation, event.a);
  const bool may_join = worker.save != 0 && worker.save == event.a &&
                        worker.state.may_join_parts(worker.save) && !worker.state.is_over();
  if (!may_join) return;
  if (event.worker != 0) violated("worker 0 joins the parts");
  if (std::ssize(parts_[worker.save]) != num_workers_) {
    violated(fmt::format("{} parts of a checkpoint are joined", parts_[worker.save].size()));
  }
  joined_.insert(worker.save - 1);
  to_trainer(worker, {.what = What::saved, .a = worker.save});
}

/// Expects that the loops begin at this step with its state, from the chips or from a checkpoint.
void SimJob::check_resumed(const Start& start) const {
  if (keeps_state_) return check_kept(start.step);
  const std::string path =
      start.step == 0 && start.resume.empty() ? "" : std::to_string(start.step);
  if (start.resume != path)
    violated(fmt::format("step {} begins with '{}'", start.step, start.resume));
  if (!path.empty() && !joined_.contains(start.step)) {
    violated(fmt::format("the checkpoint of step {} is not whole", start.step));
  }
}

}  // namespace weft::testing
