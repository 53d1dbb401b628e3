// The worker actors of a simulated job, and Permits.

#include <algorithm>
#include <utility>

#include "tests/support/recovery_world.hpp"

namespace weft::testing {

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

/// Permits.
void SimJob::at_worker(const Event& event) {
  SimWorker& worker = workers_[static_cast<std::size_t>(event.worker)];
  switch (event.what) {
    case What::start:
      worker.unwinding = false;
      worker.admitted = worker.granted = 0;
      worker.begun = event.a;
      worker.paused = worker.preempted = worker.has_asked = worker.was_ended = false;
      worker.loops_ask = event.c != 0;
      worker.end_at = kSimNever;
      worker.start_generation = event.generation;
      worker.start_step = event.a;
      worker.start_reports = event.b;
      break;
    case What::admit: worker.admitted = std::max(worker.admitted, event.a); break;
    case What::grant: worker.granted = std::max(worker.granted, event.a); break;
    case What::pause:
      worker.paused = true;
      if (broken(BrokenRule::common_end)) worker.end_at = worker.begun + 1;
      std::swap(worker.generation, worker.start_generation);  // in the message
      to_trainer(worker, {.what = What::paused, .a = worker.begun + 1});
      std::swap(worker.generation, worker.start_generation);
      break;
    case What::end_at:
      if (!broken(BrokenRule::common_end)) worker.end_at = event.a;
      break;
    case What::unwind: worker.unwinding = true; break;
    case What::trainer_gone: worker.trainer_gone = true; break;
    default: worker.at = SimWorker::At::waiting; break;  // assigned
  }
  wake(event.worker);
}

bool SimJob::may_begin(SimWorker& worker) {
  const bool held = worker.paused && worker.step > worker.begun;
  if (worker.end_at == kSimNever && (held || worker.step >= worker.granted)) return false;
  worker.begun = worker.step;
  return true;
}

bool SimJob::has_to_leave(const SimWorker& worker) {
  return worker.end_at != kSimNever && worker.step > worker.end_at && !worker.has_asked &&
         !worker.loops_ask;
}

}  // namespace weft::testing
