// Simulates the chips of a job, which do what Executor does in small steps, one per event.

#include <algorithm>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "tests/support/recovery_world.hpp"
#include "transport/job/control_format.hpp"

namespace weft::testing {

void SimJob::wake_chip(int index) {
  SimChip& chip = chips_[static_cast<std::size_t>(index)];
  const int worker = index / chips_each_;
  const SimWorker& owner = workers_[static_cast<std::size_t>(worker)];
  if (!owner.alive || chip.queue.empty() || !std::exchange(chip.parked, false)) return;
  post(some(3), {.what = What::chip, .worker = index, .life = owner.life});
}

void SimJob::wake_chips() {
  for (std::size_t c = 0; c < chips_.size(); ++c) wake_chip(static_cast<int>(c));
}

void SimJob::chip_turn(int index) {
  SimChip& chip = chips_[static_cast<std::size_t>(index)];
  chip.parked = true;
  if (workers_[static_cast<std::size_t>(index / chips_each_)].stopped) return;
  if (chip.failed) {
    chip.queue.clear();  // the chip skips these runs
    return wake(index / chips_each_);
  }
  if (!chip.queue.empty() && advance_chip(index)) wake_chip(index);
}

bool SimJob::advance_chip(int index) {
  using At = SimChip::At;
  SimChip& chip = chips_[static_cast<std::size_t>(index)];
  const SimLaunch launch = chip.queue.front();
  const SimRun& run = script_.steps[launch.step][launch.index];
  switch (chip.at) {
    case At::begin:
      commit(index, launch.commits);
      chip.at = At::read;
      return true;
    case At::read:
      check_inputs(index, launch);
      chip.at = run.group > 1 ? At::meet : At::update;
      return true;
    case At::meet:
      chip.met = launch.run;
      chip.at = At::meeting;
      if (group_met(index, launch, run.group)) wake_chips();
      return true;
    case At::meeting:
      if (!group_met(index, launch, run.group)) {
        if (memory_.aborted()) fail_chip(index, Errc::peer_lost, -1);
        return false;
      }
      chip.at = At::update;
      return true;
    case At::update:
      if ((run.any_update() || launch.is_awaited) && !broken(BrokenRule::update_waits) &&
          !all_committed(index, launch.commits)) {
        return false;
      }
      chip.at = At::write;
      chip.tensor = 0;
      chip.results = results_of(index, launch);
      return true;
    case At::write:
      check_inputs(index, launch, chip.tensor);
      while (chip.tensor < kSimTensors && !run.updates[chip.tensor]) ++chip.tensor;
      if (chip.tensor < kSimTensors) {
        value(index, launch.out[chip.tensor]) = 0;
        chip.at = At::store;
        return true;
      }
      chip.done = launch.run;
      chip.at = At::begin;
      chip.queue.pop_front();
      wake(index / chips_each_);
      return true;
    case At::store:
      check_inputs(index, launch, chip.tensor + 1);
      value(index, launch.out[chip.tensor]) = chip.results[chip.tensor];
      ++chip.tensor;
      chip.at = At::write;
      return true;
  }
  return false;
}

SimValues SimJob::results_of(int index, const SimLaunch& launch) {
  SimValues in = script_.expected[0][0];
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    if (script_.uses(launch.step, k)) in[k] = value(index, launch.in[k]);
  }
  return script_.apply(launch.step, launch.index, in);
}

/// Reports the error of a run at once. The chip skips all runs after it.
void SimJob::fail_chip(int index, Errc error, int missing) {
  SimChip& chip = chips_[static_cast<std::size_t>(index)];
  chip.failed = true;
  chip.error = error;
  chip.missing = missing;
  chip.queue.clear();
  chip.at = SimChip::At::begin;
  to_trainer(workers_[static_cast<std::size_t>(index / chips_each_)],
             {.what = What::ended,
              .a = static_cast<std::uint64_t>(error),
              .c = static_cast<std::uint64_t>(missing)});
  wake(index / chips_each_);
}

void SimJob::commit(int index, std::uint64_t step) {
  const std::uint64_t before = memory_.commit_line(index).step;
  chips_[static_cast<std::size_t>(index)].commits->commit(step);
  if (before != least_ || before >= step) return;
  if (common_step(memory_) > std::exchange(least_, common_step(memory_))) wake_chips();
}

bool SimJob::all_committed(int index, std::uint64_t step) {
  try {
    return chips_[static_cast<std::size_t>(index)].commits->reached(step);
  } catch (const Error& e) {
    fail_chip(index, e.code(), -1);
    return false;
  }
}

bool SimJob::group_met(int index, const SimLaunch& launch, int group) const {
  const int first = index / group * group;
  const int last = std::min(first + group, static_cast<int>(chips_.size()));
  for (int c = first; c < last; ++c) {
    if (chips_[static_cast<std::size_t>(c)].met < launch.run) return false;
  }
  return true;
}

/// Expects that the launch's inputs have the values for its step and index. Doesn't check those of
/// the first `written` tensors that the run overwrites in place.
void SimJob::check_inputs(int index, const SimLaunch& launch, std::size_t written) const {
  const SimValues& expected = script_.expected[launch.step][launch.index];
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    if (!script_.uses(launch.step, k)) continue;
    if (k < written && launch.out[k] == launch.in[k]) continue;
    if (value(index, launch.in[k]) == expected[k]) continue;
    violated(fmt::format("chip {} reads another version of tensor {} than that of step {}, run {}",
                         index, k, launch.step, launch.index));
  }
}

std::uint64_t SimJob::committed() const {
  if (!broken(BrokenRule::resume_at_least)) return common_step(memory_);
  std::uint64_t most = 0;
  for (int c = 0; c < mesh_.size(); ++c) {
    most = std::max<std::uint64_t>(most, memory_.commit_line(c).step);
  }
  return most;
}

}  // namespace weft::testing
