#include "actors/trainer/trainer_state_actor.hpp"

#include <chrono>

#include "actors/protocol/whereabouts.hpp"
#include "actors/trainer/hang_text.hpp"

namespace weft::trainer_actor {
namespace {

/// Reports the hang to JobState and carries out the actions that it returns. Workers that are
/// killed write their stacks to their logs first.
void deal_with(Self self, const Hang& hang) {
  auto& state = state_of(self);
  const JobSpec& spec = state.options.spec;
  std::vector<Sighting> hanging;
  for (const int worker : hang.workers) {
    hanging.push_back(with_stack(sight(self, worker), spec, state.options.assignment.run_dir));
  }
  carry_out(self, state.job->hung(hanging, describe(hang, spec.hang_timeout_s),
                                  state.hosts->common_step()));
}

}  // namespace

Sighting sight(Self self, int worker) {
  const auto& state = state_of(self);
  return {worker, state.hosts->locate(worker),
          state.hosts->describe_process(state.job->process(worker))};
}

std::vector<Sighting> sightings_of_unwinding(Self self) {
  std::vector<Sighting> sightings;
  for (const int worker : state_of(self).job->unwinding()) sightings.push_back(sight(self, worker));
  return sightings;
}

std::optional<Missing> awaited_by(Self self, int worker) {
  const auto& state = state_of(self);
  const auto awaited = find_awaited(state.hosts->rows(), worker);
  if (!awaited) return {};
  return Missing{*awaited, state.hosts->describe_process(state.job->process(*awaited))};
}

void look_for_hangs(Self self) {
  auto& state = state_of(self);
  if (state.job->over()) return;
  const std::vector<ActorRow> rows = state.hosts->rows();
  const std::vector<int> awaited = state.job->awaited();
  const auto core_time = [&](const ProcessId& process) { return state.hosts->core_time(process); };
  const Hang hang = state.hangs->observe({.rows = rows,
                                          .awaited = awaited,
                                          .running = state.job->phase() == JobPhase::running,
                                          .messages = state.messages,
                                          .core_time = core_time},
                                         std::chrono::steady_clock::now());
  if (!hang.workers.empty()) deal_with(self, hang);
  send_later(self, HangWatch::kPeriod, tick_a_v);
}

void begin_to_look_for_hangs(Self self) {
  auto& state = state_of(self);
  const JobSpec& spec = state.options.spec;
  if (!spec.hangs_are_losses()) return;
  state.hangs.emplace(spec.hang_timeout());
  send_later(self, HangWatch::kPeriod, tick_a_v);
}

}  // namespace weft::trainer_actor
