#include "actors/supervision/worker_state.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "actors/protocol/divergence_text.hpp"

namespace weft {
namespace {

/// The number of recent runs whose programs are remembered. A worker can be two runs ahead of
/// another, or further ahead if its runs have no collectives.
constexpr std::size_t kRecentRuns = 4096;

/// The number of recent saves whose ends are remembered for a slow loop. A loop can't be slower
/// than this: without its part later saves fail, and the other loops fail at the second failed save
/// in a row.
constexpr std::size_t kSavesMax = 8;

}  // namespace

void WorkerState::start(const Start& start) {
  unwinding_ = false;
  now_ = {};
  now_.started = start;
  now_.step = start.step;
}

void WorkerState::unwind(std::string reason) {
  if (stopped_ || cancelled_) return;
  unwinding_ = true;
  reason_ = std::move(reason);
}

void WorkerState::cancel(std::string reason) {
  if (stopped_ || cancelled_) return;
  cancelled_ = true;
  reason_ = std::move(reason);
}

void WorkerState::stop() { stopped_ = true; }

void WorkerState::admit(std::uint64_t programs) {
  now_.admitted = std::max(now_.admitted, programs);
}

void WorkerState::join_parts(std::uint64_t generation, std::uint64_t save) {
  if (generation == this->generation()) now_.joinable_save = save;
}

void WorkerState::drop_parts(std::uint64_t generation, std::uint64_t save) {
  if (generation == this->generation()) now_.dropped_save = save;
}

void WorkerState::saved(SaveEnded ended) {
  if (ended.generation != generation()) return;
  now_.saved.push_back(std::move(ended));
  if (now_.saved.size() > kSavesMax) now_.saved.pop_front();
}

const SaveEnded* WorkerState::save_ended(std::uint64_t save) const {
  const auto found = std::ranges::find(now_.saved, save, &SaveEnded::save);
  return found == now_.saved.end() ? nullptr : &*found;
}

void WorkerState::grant(std::uint64_t steps) { now_.granted = std::max(now_.granted, steps); }

std::uint64_t WorkerState::pause() {
  now_.paused = true;
  return now_.step + 1;
}

void WorkerState::end_at(std::uint64_t step) {
  now_.end_at = step;
  now_.granted = std::numeric_limits<std::uint64_t>::max();  // run.grace_s limits the loop from now
                                                             // on
}

std::optional<ProgramSeen> WorkerState::asked(std::uint32_t sequence, std::uint64_t run) {
  now_.asked_sequence = sequence;
  now_.asked_run = run;
  if (run > now_.begun_runs || now_.begun_runs - run >= now_.recent.size()) return {};
  return contradiction(now_.recent[now_.recent.size() - 1 - (now_.begun_runs - run)]);
}

std::optional<ProgramSeen> WorkerState::contradiction(std::uint32_t program) const {
  if (program >= now_.asked_sequence) return {};
  ProgramSeen known = now_.shown.at(program);
  known.sequence = now_.asked_sequence;
  known.run = now_.asked_run;
  if (now_.asked_run == now_.begun_runs) known.site = to_string(now_.begun_site);
  return known;
}

std::optional<LoopEnded> WorkerState::peer_ended(int worker, std::uint64_t runs, std::string last) {
  if (runs < now_.ended_runs) {
    now_.ended_runs = runs;
    now_.ended_worker = worker;
    now_.ended_last = std::move(last);
  }
  if (now_.begun_runs <= now_.ended_runs) return {};
  return uneven(overtaken(now_.begun_runs, to_string(now_.begun_site)));
}

LoopEnded WorkerState::uneven(std::string message) const {
  return {.worker = worker_,
          .generation = generation(),
          .step = now_.begun_step,
          .runs = now_.begun_runs,
          .error = static_cast<std::uint8_t>(Errc::uneven_loops),
          .message = std::move(message),
          .last = to_string(now_.begun_site)};
}

WorkerState::Standing WorkerState::standing() const {
  if (cancelled_) return Standing::cancelled;
  if (unwinding_) return Standing::unwinding;
  return stopped_ ? Standing::stopped : Standing::runs;
}

const Start* WorkerState::started(std::uint64_t after) const {
  return generation() > after ? &*now_.started : nullptr;
}

WorkerState::StepBegin WorkerState::begin_step(std::uint64_t step) {
  const bool is_held = now_.paused && step > now_.step;
  if (!now_.end_at && (is_held || step >= now_.granted)) return StepBegin::waits;
  now_.step = step;
  const bool asks = now_.has_asked || (now_.started && now_.started->asks);
  if (!now_.end_at || step <= *now_.end_at || asks) return StepBegin::begun;
  now_.knows_preemption = true;
  return StepBegin::leaves;
}

std::optional<std::uint64_t> WorkerState::lease_to_ask(std::uint64_t step) const {
  if (step >= now_.granted) return step;
  if (step + lease_asked_ahead_ == now_.granted) return now_.granted;
  return {};
}

bool WorkerState::end_here(bool& leaves) {
  if (!now_.end_at) return false;
  now_.end_at = std::min(*now_.end_at, now_.step);
  leaves = !now_.has_asked && !now_.started->asks;
  if (leaves) now_.knows_preemption = true;
  return true;
}

bool WorkerState::reached_preemption() {
  now_.knows_preemption = now_.end_at && now_.step >= *now_.end_at;
  return now_.knows_preemption;
}

WorkerState::Admission WorkerState::admission(std::uint64_t sequence, std::uint64_t run) const {
  if (now_.admitted > sequence) return Admission::admitted;
  return now_.ended_runs < run ? Admission::overtaken : Admission::waits;
}

WorkerState::RunBegin WorkerState::begin_run(std::uint64_t run, std::uint32_t program,
                                             std::uint64_t step, const RunSite& site) {
  now_.begun_runs = run;
  now_.begun_step = step;
  now_.begun_site = site;
  now_.recent.push_back(program);
  if (now_.recent.size() > kRecentRuns) now_.recent.pop_front();
  if (run > now_.ended_runs) return {.is_overtaken = true, .contradicts = {}};
  return {.contradicts = run == now_.asked_run ? contradiction(program) : std::nullopt};
}

std::optional<LoopEnded> WorkerState::loop_ended(LoopEnded ended) {
  has_failed_ = ended.error != 0;
  if (standing() == Standing::unwinding) return {};
  ended.worker = worker_;
  ended.preempted = !has_failed_ && now_.knows_preemption;
  return ended;
}

WorkerState::Verdict WorkerState::verdict() const {
  switch (standing()) {
    case Standing::runs: return Verdict::waits;
    case Standing::unwinding: return Verdict::unwinds;
    case Standing::stopped: return verdict_without_trainer();
    case Standing::cancelled: return Verdict::leaves_badly;
  }
  return Verdict::leaves_badly;
}

WorkerState::Verdict WorkerState::verdict_without_trainer() const {
  return has_failed_ ? Verdict::leaves_badly : Verdict::leaves_well;
}

std::string WorkerState::overtaken(std::uint64_t run, const std::string& site) const {
  return fmt::format(
      "worker {} ended its loop after {} programs{}, but this worker runs program number {}{}: "
      "every worker's loop must run the same programs{}",
      now_.ended_worker, now_.ended_runs,
      now_.ended_last.empty() ? "" : ", the last for " + now_.ended_last, run,
      site.empty() ? "" : " for " + site, is_read(site) ? kReadsAreCollective : "");
}

}  // namespace weft
