// Simulates the loops of a job's workers, as WorkerLife and WorkerRuntime run them, in small steps,
// one per event. A loop that waits is parked; it is woken when the awaited event may have happened.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tests/support/recovery_world.hpp"

namespace weft::testing {

void SimJob::wake(int index) {
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  if (!worker.alive || !std::exchange(worker.parked, false)) return;
  post(some(4) * worker.pace, {.what = What::loop, .worker = index, .life = worker.life});
}

void SimJob::loop_turn(int index) {
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  worker.parked = true;
  if (worker.stopped) return;
  const bool in_loop = worker.at >= SimWorker::At::open && worker.at <= SimWorker::At::drain;
  if (in_loop && worker.throws) {
    worker.throws = false;
    leave(worker, Errc::loop_failed);
    return wake(index);
  }
  if (advance(index) && worker.alive) wake(index);
}

/// Ends the session, which then waits until the worker's chips have run or skipped all their runs.
void SimJob::leave(SimWorker& worker, Errc error, int missing) {
  worker.missing = missing;
  worker.error = static_cast<std::uint8_t>(error);
  worker.at = SimWorker::At::close;
}

bool SimJob::advance(int index) {
  using At = SimWorker::At;
  using StepBegin = WorkerState::StepBegin;
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  WorkerState& state = worker.state;
  const auto own = [&](auto is) {
    const auto first = chips_.begin() + index * chips_each_;
    return std::all_of(first, first + chips_each_, is);
  };
  /// Ends the loop's wait for the trainer if the session is over or if `ready` is true. Returns
  /// true if the wait has ended.
  const auto permitted = [&](bool ready, At next) {
    if (state.is_over()) {
      leave(worker, state.cancelled() ? Errc::cancelled : Errc::peer_lost);
      return true;
    }
    if (ready) worker.at = next;
    return ready;
  };
  switch (worker.at) {
    case At::boot:
      worker.at = At::joining;
      to_trainer(worker, {.what = What::join});
      return state.cancelled();
    case At::joining:
    case At::waiting:
      if (state.cancelled()) {
        end_process(index, 0);
        return true;
      }
      if (worker.at == At::joining || state.started(worker.generation) == nullptr) return false;
      worker.generation = state.generation();
      worker.at = index == 0 ? At::resend : At::open;
      return true;
    case At::resend:
      for (std::size_t i = state.started(0)->reports; i < log_.size(); ++i) {
        to_trainer(worker, {.what = What::report, .a = i});
      }
      worker.at = At::open;
      return true;
    case At::open: open_session(index); return true;
    case At::granted: return permitted(begin_step(worker) != StepBegin::waits, At::greet);
    case At::greet:
      worker.at = At::step;
      if (script_.greets) make_report(worker, kSimGreeting, At::step);
      return true;
    case At::step: take_step(worker); return true;
    case At::program: {
      const std::uint32_t program = script_.steps[worker.step][worker.index].program;
      worker.at = At::room;
      if (std::ranges::find(worker.programs, program) != worker.programs.end()) return true;
      worker.programs.push_back(program);
      const std::uint64_t sequence = worker.programs.size() - 1;
      state.shown({.worker = index,
                   .generation = worker.generation,
                   .sequence = static_cast<std::uint32_t>(sequence),
                   .run = worker.runs + 1,
                   .fingerprint_low = program});
      to_trainer(worker,
                 {.what = What::program, .a = sequence, .b = worker.runs + 1, .c = program});
      worker.at = At::admitted;
      return true;
    }
    case At::admitted: {
      const auto admission = state.admission(worker.programs.size() - 1, worker.runs + 1);
      if (admission == WorkerState::Admission::overtaken) violated("a run is overtaken");
      return permitted(admission == WorkerState::Admission::admitted, At::room);
    }
    case At::room: return has_room(index);
    case At::directory:
      finish_directory(index);
      worker.at = At::launch;
      return true;
    case At::launch:
      if (state.is_over()) return permitted(false, At::launch);
      launch(index);
      return true;
    case At::report:
      log_.push_back({.generation = worker.generation,
                      .step = worker.step,
                      .number = worker.report_number++,
                      .metrics = worker.metrics});
      worker.at = At::send;
      return true;
    case At::send:
      to_trainer(worker, {.what = What::report, .a = log_.size() - 1});
      worker.at = worker.after_report;
      return true;
    case At::save:
      if (state.is_over()) return permitted(false, At::step);
      if (!save_is_over(worker)) return false;
      begin_save(index);
      worker.at = At::step;
      return true;
    case At::end_step: {
      end_step_of_state(worker);
      ++worker.step;
      worker.pool->begin_step(worker.step);
      worker.index = 0;
      if (const auto step = state.lease_to_ask(worker.step)) {
        to_trainer(worker, {.what = What::lease, .a = *step});
      }
      worker.at = At::lease;
      return true;
    }
    case At::lease:
      if (state.is_over()) return permitted(false, At::step);
      switch (begin_step(worker)) {
        case StepBegin::waits: return false;
        case StepBegin::begun:
          make_report(worker, metrics_of_step(worker.step - 1), At::step);
          return true;
        case StepBegin::leaves:
          worker.was_ended = true;
          end_loop(worker);
          return true;
      }
      return true;
    case At::drain:
      if (!own([&](const SimChip& chip) { return chip.failed || chip.done >= worker.runs; })) {
        return false;
      }
      for (int c = index * chips_each_; c < (index + 1) * chips_each_; ++c) {
        const SimChip& chip = chips_[static_cast<std::size_t>(c)];
        if (chip.failed) {
          leave(worker, chip.error, chip.missing);
          return true;
        }
        check_inputs(c, {.step = worker.step, .in = places_of(c)});
      }
      if (!state.is_over() && !save_is_over(worker)) return false;
      worker.at = At::close;
      return true;
    case At::close: {
      const bool idle = own([](const SimChip& chip) { return chip.queue.empty(); });
      if (!idle && !broken(BrokenRule::wait_for_unwound)) return false;
      worker.at = At::finish;
      return true;
    }
    case At::finish: {
      const auto ended = state.loop_ended({.worker = index,
                                           .generation = worker.generation,
                                           .step = worker.step,
                                           .runs = worker.runs,
                                           .error = worker.error,
                                           .left = worker.was_ended});
      if (ended) tell_end(worker, *ended);
      worker.at = ended ? At::verdict : At::unwound;
      return true;
    }
    case At::verdict:
      switch (state.verdict()) {
        case WorkerState::Verdict::waits: return false;
        case WorkerState::Verdict::unwinds: worker.at = At::unwound; return true;
        case WorkerState::Verdict::leaves_well:
        case WorkerState::Verdict::leaves_badly: end_process(index, 0); return true;
      }
      return false;
    case At::unwound:
      worker.at = At::waiting;
      worker.generation += 1;  // the message names the next generation
      to_trainer(worker, {.what = What::unwound});
      worker.generation -= 1;
      return true;
    case At::gone: return false;
  }
  return false;
}

void SimJob::tell_end(const SimWorker& worker, const LoopEnded& ended) {
  to_trainer(worker, {.what = What::ended,
                      .a = ended.error | (ended.preempted ? 256U : 0U) | (ended.left ? 512U : 0U) |
                           ended.step << 16,
                      .b = ended.runs,
                      .c = static_cast<std::uint64_t>(worker.missing)});
}

void SimJob::open_session(int index) {
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  worker.step = worker.commits = worker.state.started(0)->step;
  open_state(index);
  worker.runs = worker.index = worker.report_number = 0;
  worker.report_step = 0;
  worker.error = 0;
  worker.missing = -1;
  worker.programs.clear();
  worker.save = 0;
  for (int c = index * chips_each_; c < (index + 1) * chips_each_; ++c) {
    SimChip& chip = chips_[static_cast<std::size_t>(c)];
    chip.queue.clear();
    chip.at = SimChip::At::begin;
    chip.done = 0;
    chip.failed = false;
    chip.parked = true;
  }
  worker.at = SimWorker::At::granted;
}

SimPlaces SimJob::places_of(int chip) const {
  const SimWorker& worker = workers_[static_cast<std::size_t>(chip / chips_each_)];
  SimPlaces places{};
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    const auto local = static_cast<std::size_t>(chip % chips_each_);
    if (worker.tensors[k] != nullptr) places[k] = worker.tensors[k]->offset(local);
  }
  return places;
}

/// Ends the loop. Tensors that no run has used get their initial values in memory.
void SimJob::end_loop(SimWorker& worker) {
  const auto index = static_cast<int>(&worker - workers_.data());
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    if (worker.tensors[k] == nullptr) bind(index, k);
  }
  worker.at = SimWorker::At::drain;
}

/// Continues with the next run of the step, with the end of the step, or with the end of the loop.
void SimJob::take_step(SimWorker& worker) {
  using At = SimWorker::At;
  const bool asks = ask_every_ != 0 && worker.step < script_.steps.size() && worker.index == 0 &&
                    worker.step % ask_every_ == 0;
  if (asks && worker.state.asks()) to_trainer(worker, {.what = What::asks});
  const bool is_preempted = asks && worker.state.reached_preemption();
  if (worker.step == script_.steps.size() || is_preempted) {
    end_loop(worker);
    return;
  }
  if (worker.step > worker.begun) violated("a step that has not begun");
  // The lease doesn't limit a worker that is told to end; its grace period does.
  if (worker.step >= granted_ && !worker.told_to_end)
    violated(fmt::format("step {} is not granted", worker.step));
  const bool saves = save_every_ != 0 && worker.step % save_every_ == 0;
  if (saves && worker.index == 0 && worker.save != worker.step + 1) {
    worker.at = At::save;
    return;
  }
  worker.at = worker.index == script_.steps[worker.step].size() ? At::end_step : At::program;
}

/// Returns false while two runs are under way. Otherwise commits the step and returns true.
bool SimJob::has_room(int index) {
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  const std::uint64_t needed = worker.runs < 2 ? 0 : worker.runs - 1;
  for (int c = index * chips_each_; c < (index + 1) * chips_each_; ++c) {
    const SimChip& chip = chips_[static_cast<std::size_t>(c)];
    if (chip.failed) {
      leave(worker, chip.error, chip.missing);
      return true;
    }
    if (chip.done < needed) return false;
  }
  worker.at = SimWorker::At::launch;
  const SimRun& run = script_.steps[worker.step][worker.index];
  if (!run.ends_step && !run.any_update()) return true;
  if (commit_state(index)) worker.at = SimWorker::At::directory;
  return true;
}

void SimJob::launch(int index) {
  using At = SimWorker::At;
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  const SimRun& run = script_.steps[worker.step][worker.index];
  SimLaunch launch{.run = ++worker.runs,
                   .commits = worker.commits,
                   .step = worker.step,
                   .index = worker.index,
                   .is_awaited = std::exchange(worker.awaits_commits, false)};
  const auto program = std::ranges::find(worker.programs, run.program);
  const auto sequence = static_cast<std::uint32_t>(program - worker.programs.begin());
  const auto begin = worker.state.begin_run(launch.run, sequence, launch.step, {});
  if (begin.is_overtaken || begin.contradicts) violated("a run is made that others don't make");
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    if (!script_.uses(worker.step, k)) continue;
    if (worker.tensors[k] == nullptr) bind(index, k);
    worker.keeper->used({&tensors_[k].input, 1});
    worker.tensors[k]->used_by(launch.run);
  }
  std::vector<SimPlaces> before;
  for (const int c : chips_of(index)) before.push_back(places_of(c));
  auto next = worker.tensors;
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    if (!run.updates[k]) continue;
    next[k] = update(worker, k);
    next[k]->used_by(launch.run);
  }
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    if (script_.uses(worker.step, k)) note_state(worker, k);
    worker.tensors[k] = std::move(next[k]);
    if (run.updates[k]) note_state(worker, k);
  }
  for (const int c : chips_of(index)) {
    if (broken(BrokenRule::commit_on_chip)) commit(c, launch.commits);
    launch.in = before[static_cast<std::size_t>(c % chips_each_)];
    launch.out = places_of(c);
    chips_[static_cast<std::size_t>(c)].queue.push_back(launch);
    wake_chip(c);
  }
  const std::uint64_t metrics = metrics_of_run(worker.step, worker.index++);
  worker.at = At::step;
  if (run.reports) make_report(worker, metrics, At::step);
}

/// Makes a report if this is worker 0; reports of other workers don't count. A report takes two
/// events: it is written to the file, and then it is sent to the trainer.
void SimJob::make_report(SimWorker& worker, std::uint64_t metrics, SimWorker::At then) {
  if (std::exchange(worker.report_step, worker.step) != worker.step) worker.report_number = 0;
  worker.metrics = metrics;
  worker.after_report = then;
  worker.at = &worker == workers_.data() ? SimWorker::At::report : then;
}

}  // namespace weft::testing
