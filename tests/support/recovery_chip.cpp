// The chips of a simulated job: Executor, Commits and the arenas, turn by turn.

#include <algorithm>

#include <fmt/format.h>

#include "tests/support/recovery_world.hpp"

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
    chip.queue.clear();  // passed over
    return wake(index / chips_each_);
  }
  if (!chip.queue.empty() && advance_chip(index)) wake_chip(index);
}

bool SimJob::advance_chip(int index) {
  using At = SimChip::At;
  SimChip& chip = chips_[static_cast<std::size_t>(index)];
  const SimLaunch launch = chip.queue.front();
  const SimRun& run = script_.steps[launch.step][launch.index];
  const auto wait = [&](bool done) {
    if (!done && aborted_) fail_chip(index, Errc::peer_lost, -1);
    return done;
  };
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
      if (!wait(group_met(index, launch, run.group))) return false;
      chip.at = At::update;
      return true;
    case At::update:
      if (run.any_update() && !broken(BrokenRule::update_waits) &&
          !wait(least_ >= launch.commits)) {
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
        block(chip, launch.out[chip.tensor]) = 0;
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
      block(chip, launch.out[chip.tensor]) = chip.results[chip.tensor];
      ++chip.tensor;
      chip.at = At::write;
      return true;
  }
  return false;
}

SimValues SimJob::results_of(int index, const SimLaunch& launch) {
  SimChip& chip = chips_[static_cast<std::size_t>(index)];
  SimValues in = script_.expected[0][0];
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    if (script_.uses(launch.step, k)) in[k] = block(chip, launch.in[k]);
  }
  return script_.apply(launch.step, launch.index, in);
}

/// What a run throws is told at once; what comes after it is passed over.
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
  SimChip& chip = chips_[static_cast<std::size_t>(index)];
  if (chip.commit >= step) return;
  const bool was_least = chip.commit == least_;
  chip.commit = step;
  if (!was_least) return;
  const std::uint64_t before =
      std::exchange(least_, std::ranges::min(chips_, {}, &SimChip::commit).commit);
  if (least_ > before) wake_chips();
}

bool SimJob::group_met(int index, const SimLaunch& launch, int group) const {
  const int first = index / group * group;
  const int last = std::min(first + group, static_cast<int>(chips_.size()));
  for (int c = first; c < last; ++c) {
    if (chips_[static_cast<std::size_t>(c)].met < launch.run) return false;
  }
  return true;
}

std::uint64_t& SimJob::block(SimChip& chip, int block) const {
  const auto at = static_cast<std::size_t>(block);
  if (chip.blocks.size() <= at) chip.blocks.resize(at + 1);
  return chip.blocks[at];
}

/// The launch's step and index say which version they are of. Of the first `written` tensors,
/// those that the run writes over are no more.
void SimJob::check_inputs(int index, const SimLaunch& launch, std::size_t written) const {
  const SimChip& chip = chips_[static_cast<std::size_t>(index)];
  const SimValues& expected = script_.expected[launch.step][launch.index];
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    if (!script_.uses(launch.step, k)) continue;
    if (k < written && launch.out[k] == launch.in[k]) continue;
    const auto at = static_cast<std::size_t>(launch.in[k]);
    if (at < chip.blocks.size() && chip.blocks[at] == expected[k]) continue;
    violated(fmt::format("chip {} reads another version of tensor {} than that of step {}, run {}",
                         index, k, launch.step, launch.index));
  }
}

std::uint64_t SimJob::committed() const {
  if (!broken(BrokenRule::resume_at_least)) return least_;
  return std::ranges::max(chips_, {}, &SimChip::commit).commit;
}

}  // namespace weft::testing
