// Simulates the actors of a job's workers, which pass messages to WorkerState and answer them.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tests/support/recovery_world.hpp"

namespace weft::testing {

/// Returns the message to workers that carries out an action.
Event SimJob::message(const Action& action) const {
  Event event{.what = What::assigned, .generation = job_.generation()};
  const auto is = [&](What what, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0) {
    event.what = what;
    event.a = a;
    event.b = b;
    event.c = c;
  };
  std::visit(Overloaded{
                 [&](const Start& start) {
                   is(What::start, start.step, start.reports, start.asks ? 1 : 0);
                 },
                 [&](const action::Asked& asked) { is(What::asked, asked.sequence, asked.run); },
                 [&](const action::Admit& admit) { is(What::admit, admit.programs); },
                 [&](const action::Grant& grant) { is(What::grant, grant.steps); },
                 [&](const action::Pause&) { is(What::pause); },
                 [&](const action::EndAt& end) { is(What::end_at, end.step); },
                 [&](const action::PeerEnded& ended) {
                   is(What::peer_ended, ended.runs, 0, static_cast<std::uint64_t>(ended.worker));
                 },
                 [&](const action::JoinParts& parts) {
                   is(What::join_parts, parts.save);
                   event.generation = parts.generation;
                 },
                 [&](const action::DropParts& parts) {
                   is(What::drop_parts, parts.save);
                   event.generation = parts.generation;
                 },
                 [&](const action::TellSaved& saved) {
                   is(What::save_ended, saved.ended.save, saved.ended.error);
                   event.generation = saved.ended.generation;
                 },
                 [&](const action::Unwind&) { is(What::unwind); },
                 [](const auto&) {},
             },
             action);
  return event;
}

void SimJob::to_trainer(const SimWorker& worker, Event event) {
  if (!worker.linked) return;
  event.worker = static_cast<int>(&worker - workers_.data());
  event.life = worker.life;
  event.generation = worker.generation;
  const bool in_turn =
      event.what != What::lease && event.what != What::program && event.what != What::ended;
  std::uint64_t at = std::max(worker.sent, now_ + some(20));
  if (!late_ || in_turn) {
    workers_[static_cast<std::size_t>(event.worker)].sent = at;
  } else if (random_.one_in(8)) {
    at += random_.below(2000);
  }
  post(at - now_, event);
}

void SimJob::at_worker(const Event& event) {
  SimWorker& worker = workers_[static_cast<std::size_t>(event.worker)];
  WorkerState& state = worker.state;
  /// Sends an answer with the generation of the worker's actor, which may be ahead of the loop's
  /// generation.
  const auto answer = [&](Event of_state) {
    const std::uint64_t of_loop = std::exchange(worker.generation, state.generation());
    to_trainer(worker, of_state);
    worker.generation = of_loop;
  };
  switch (event.what) {
    case What::start:
      state.start({.generation = event.generation,
                   .step = event.a,
                   .reports = event.b,
                   .checkpoint = {},
                   .asks = event.c != 0});
      worker.begun = event.a;
      worker.told_to_end = worker.was_ended = false;
      break;
    case What::asked:
      if (const auto known = state.asked(static_cast<std::uint32_t>(event.a), event.b)) {
        answer({.what = What::program,
                .a = known->sequence,
                .b = known->run,
                .c = known->fingerprint_low});
      }
      break;
    case What::admit: state.admit(event.a); break;
    case What::grant: state.grant(event.a); break;
    case What::pause: {
      const std::uint64_t step = state.pause();
      if (broken(BrokenRule::common_end)) end_at(worker, step);
      answer({.what = What::paused, .a = step});
      break;
    }
    case What::end_at:
      if (!broken(BrokenRule::common_end)) end_at(worker, event.a);
      break;
    case What::peer_ended:
      if (state.peer_ended(static_cast<int>(event.c), event.a, {})) {
        violated(fmt::format("worker {} runs what worker {} doesn't", event.worker, event.c));
      }
      break;
    case What::unwind: state.unwind("a worker is lost"); break;
    case What::trainer_gone: state.cancel("the trainer is gone"); break;
    default: worker.at = SimWorker::At::waiting; break;  // `assigned`
  }
  wake(event.worker);
}

void SimJob::end_at(SimWorker& worker, std::uint64_t step) {
  worker.state.end_at(step);
  worker.told_to_end = true;
}

WorkerState::StepBegin SimJob::begin_step(SimWorker& worker) {
  const auto begin = worker.state.begin_step(worker.step);
  if (begin != WorkerState::StepBegin::waits) worker.begun = worker.step;
  return begin;
}

}  // namespace weft::testing
