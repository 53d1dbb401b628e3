#include "actors/trainer/trainer_state_actor.hpp"

#include <chrono>

#include "actors/process/log.hpp"
#include "actors/protocol/failure_text.hpp"
#include "actors/protocol/whereabouts.hpp"
#include "actors/trainer/hang_text.hpp"

namespace weft::trainer_actor {
namespace {

/// How often hangs are looked for.
constexpr std::chrono::milliseconds kHangTick{200};
constexpr std::chrono::milliseconds kPatientHangTick{2000};

/// Whoever waits a minute may as well wait for two seconds more.
std::chrono::milliseconds tick_of(const JobSpec& spec) {
  return spec.hangs_are_losses() || spec.hang_patience() < 10 * kPatientHangTick ? kHangTick
                                                                                 : kPatientHangTick;
}

/// A hang is a loss where that is asked for: where the workers are is written into their logs
/// before they are killed. Else it is told.
void deal_with(Self self, const Hang& hang) {
  auto& state = self->state;
  const JobSpec& spec = state.options.spec;
  const std::string why = describe(hang, spec.hang_patience_s());
  std::vector<Sighting> hanging;
  for (const int worker : hang.workers) {
    hanging.push_back(with_stack(sight(self, worker), state.job->pid(worker), spec,
                                 state.options.assignment.run_dir));
  }
  if (spec.hangs_are_losses()) {
    return carry_out(self, state.job->hung(hanging, why, committed(self)));
  }
  for (const Sighting& seen : hanging) {
    logger("weft.trainer")
        ->warn("worker {} may hang{}: {}, and it {}; run.failure.hang_timeout_s ends such a wait",
               seen.worker, describe(seen.where), why, seen.process);
  }
}

}  // namespace

Sighting sight(Self self, int worker) {
  const auto& state = self->state;
  return {worker, locate(*state.board, worker), describe_process(state.job->pid(worker))};
}

std::vector<Sighting> sightings_of_unwinding(Self self) {
  std::vector<Sighting> sightings;
  for (const int worker : self->state.job->unwinding()) sightings.push_back(sight(self, worker));
  return sightings;
}

std::optional<Missing> missing(Self self, const LoopEnded& ended) {
  if (ended.error != static_cast<std::uint8_t>(Errc::timeout)) return {};
  const auto worker = find_awaited(self->state.board->readable_rows(), ended.worker);
  if (!worker) return {};
  return Missing{*worker, describe_process(self->state.job->pid(*worker))};
}

void look_for_hangs(Self self) {
  auto& state = self->state;
  if (state.job->over()) return;
  const std::vector<ActorRow> rows = state.board->readable_rows();
  const std::vector<int> awaited = state.job->awaited();
  const Hang hang = state.hangs->observe({.rows = rows,
                                          .awaited = awaited,
                                          .running = state.job->phase() == JobPhase::running,
                                          .messages = state.messages,
                                          .core_time = core_time},
                                         std::chrono::steady_clock::now());
  if (!hang.workers.empty()) deal_with(self, hang);
  self->delayed_send(self, tick_of(state.options.spec), tick_a::value);
}

void begin_to_look_for_hangs(Self self) {
  auto& state = self->state;
  const JobSpec& spec = state.options.spec;
  if (spec.hang_patience_s() == 0) return;
  state.hangs.emplace(spec.hang_patience());
  self->delayed_send(self, tick_of(spec), tick_a::value);
}

}  // namespace weft::trainer_actor
