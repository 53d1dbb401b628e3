// Simulates the trainer of a job, as trainer_actor.cpp and job_run.cpp do, and dispatches events.

#include "tests/support/recovery_sim.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tests/support/recovery_world.hpp"
#include "transport/job/control_format.hpp"

namespace weft::testing {
namespace {

constexpr std::uint64_t kLinkGrace = 40;

int draw_workers(Random& random) {
  if (random.one_in(40)) return static_cast<int>(17 + random.below(48));
  if (random.one_in(6)) return static_cast<int>(7 + random.below(10));
  return static_cast<int>(1 + random.below(6));
}

RecoveryPolicy draw_policy(Random& random) {
  return {.max_failures = random.one_in(8) ? static_cast<int>(1 + random.below(12)) : -1,
          .restart = random.one_in(4) ? Restart::group : Restart::worker,
          .backoff_ms = random.one_in(3) ? 1 + random.below(50) : 0};
}

SimTensor replicated_tensor(const std::string& name) {
  return {.input = {.kind = InputKind::param, .name = name, .sharding = Sharding::closed()},
          .type = {DType::i64, {}}};
}

SimTensor sharded_tensor(const std::string& name, const Mesh& mesh) {
  const std::vector<std::int64_t> shape{mesh.size()};
  return {.input = {.kind = InputKind::param,
                    .name = name,
                    .sharding = Sharding::from_spec(mesh, {{"d"}}, shape, name)},
          .type = {DType::i64, {mesh.size()}}};
}

}  // namespace

SimJob::SimJob(std::uint64_t seed, BrokenRule broken)
    : seed_(seed),
      broken_(broken),
      random_(seed),
      num_workers_(draw_workers(random_)),
      chips_each_(static_cast<int>(1 + random_.below(num_workers_ > 16 ? 2 : 4))),
      lease_steps_(2 * (1 + random_.below(random_.one_in(2) ? 3 : 32))),
      deadline_(random_.one_in(16) ? 3000 : kLongDeadline),
      late_(random_.one_in(2)),
      policy_(draw_policy(random_)),
      script_(num_workers_ * chips_each_, random_),
      mesh_({num_workers_ * chips_each_}, {"d"}),
      memory_(fresh_memory(mesh_)),
      workers_(static_cast<std::size_t>(num_workers_)),
      chips_(static_cast<std::size_t>(num_workers_ * chips_each_)),
      job_(draw_terms()) {
  faults_left_ = 1 + random_.below(40);
  fault_gap_ = (std::uint64_t{4} << random_.below(10)) * (1 + chips_.size() / 8);
  next_fault_ = random_.below(2 * fault_gap_);
  Random alike(seed + 1);
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    // The name of a replicated tensor decides which chip's replica isn't overwritten, so names are
    // random.
    const std::string name = fmt::format("{}.{}", alike.below(1000), k);
    tensors_[k] = alike.one_in(2) ? replicated_tensor(name) : sharded_tensor(name, mesh_);
  }
}

/// Draws terms of the job from separate random numbers, so that the terms don't change the rest of
/// the job.
JobTerms SimJob::draw_terms() {
  Random saves(seed_ + 2);
  if (saves.one_in(3)) save_every_ = 1 + saves.below(6);
  keeps_state_ = !saves.one_in(6);
  Random preemption(~seed_);
  const auto chips = static_cast<std::uint64_t>(mesh_.size());
  if (preemption.below(7) < 2) preempt_at_ = preemption.below(4000 * (1 + chips / 8));
  if (preemption.one_in(4)) ask_every_ = preemption.below(10);
  if (preemption.one_in(8)) grace_s_ = 1 + static_cast<double>(preemption.below(20));
  has_sigterms_ = preemption.one_in(8);
  return {.num_workers = num_workers_,
          .recovery = policy_,
          .lease_steps = lease_steps_,
          .keeps_state = keeps_state_,
          .timeout_s = 1,
          .grace_s = grace_s_};
}

SimResult SimJob::run() {
  SimResult result;
  try {
    for (int w = 0; w < num_workers_; ++w) start_process(w);
    carry_out(job_.begin());
    while (!job_.over()) {
      if (events_.empty()) violated("nothing can happen any more");
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      if (is_lost(event)) continue;
      if (recent_.size() < kRecentEvents) recent_.emplace_back();
      recent_[count_ % kRecentEvents] = event;
      if (++count_ == 20'000'000) violated("the job doesn't end");
      handle(event);
      count_incidents();
      if (count_ >= preempt_at_) carry_out(job_.preempt("preempted"));
      if (faults_left_ == 0) continue;
      const int worker = event.what == What::chip ? event.worker / chips_each_ : event.worker;
      if (count_ >= next_fault_) {
        inject_fault(worker >= 0 && random_.one_in(2) ? worker : -1);
      } else if (event.what == What::loop && has_ended(worker) && random_.one_in(8)) {
        inject_fault(worker);  // the worker waits for the other workers' loops to end
      }
    }
    check_end();
  } catch (const Violation& violation) {
    result.violation = violation.what();
  }
  result.failures = job_.recovery().failures().size() + (job_.failure() ? 1 : 0);
  result.events = count_;
  result.succeeded = job_.phase() == JobPhase::succeeded;
  result.preempted = std::ranges::any_of(
      workers_, [](const SimWorker& worker) { return worker.state.knows_preemption(); });
  result.workers = num_workers_;
  return result;
}

void SimJob::violated(const std::string& what) const {
  throw Violation(fmt::format("seed {}: {}; {} workers with {} chips, generation {}, {} faults{}",
                              seed_, what, num_workers_, chips_each_, job_.generation(), faults_,
                              trace()));
}

void SimJob::post(std::uint64_t delay, Event event) {
  event.time = now_ + delay;
  event.order = order_++;
  events_.push(event);
}

/// Returns a random delay below 2 * typical, or seldom a much longer one.
std::uint64_t SimJob::some(std::uint64_t typical) {
  const std::uint64_t delay = 1 + random_.below(2 * typical);
  return random_.one_in(24) ? delay * 16 : delay;
}

bool SimJob::has_ended(int worker) const {
  const SimWorker& at = workers_[static_cast<std::size_t>(worker)];
  return at.at == SimWorker::At::verdict && at.error == 0;
}

bool SimJob::is_lost(const Event& event) const {
  const auto w = static_cast<std::size_t>(event.what == What::chip ? event.worker / chips_each_
                                                                   : std::max(event.worker, 0));
  const SimWorker& worker = workers_[w];
  if (event.what == What::loop || event.what == What::chip) {
    return !worker.alive || event.life != worker.life;
  }
  if (event.what >= What::join && event.what <= What::asks) {
    return event.time > worker.cut[static_cast<std::size_t>(event.life)];
  }
  if (event.what >= What::assigned && event.what <= What::trainer_gone) {
    const bool reaches = worker.linked || event.what == What::trainer_gone;
    return !worker.alive || event.life != worker.life || !reaches;
  }
  return false;
}

void SimJob::handle(const Event& event) {
  switch (event.what) {
    case What::loop: return loop_turn(event.worker);
    case What::chip: return chip_turn(event.worker);
    case What::assigned:
    case What::start:
    case What::asked:
    case What::admit:
    case What::grant:
    case What::pause:
    case What::end_at:
    case What::peer_ended:
    case What::unwind:
    case What::trainer_gone: return at_worker(event);
    case What::join_parts:
    case What::drop_parts:
    case What::save_ended: return at_worker_of_save(event);
    case What::kill: return end_process(event.worker, 9);
    case What::start_process: return start_process(event.worker);
    default: return at_trainer(event);
  }
}

bool SimJob::is_from_member(const Event& event) const {
  return broken(BrokenRule::members_only) || members_.has(SimLink{event.worker, event.life});
}

void SimJob::at_trainer(const Event& event) {
  const int w = event.worker;
  const bool from_worker = event.what >= What::program && event.what <= What::paused;
  if (from_worker && !is_from_member(event)) return;
  switch (event.what) {
    case What::join: {
      const SimWorker& worker = workers_[static_cast<std::size_t>(w)];
      const int pid = sim_pid(w, event.life);
      if (job_.refuse_join(w, pid)) {
        if (worker.alive && worker.life == event.life) violated("a living process is refused");
        return;
      }
      const SimLink link{w, event.life};
      members_.add(w, link);
      carry_out(job_.joined(w, pid, committed()));
      return send(link, {.what = What::assigned});
    }
    case What::program:
      return carry_out(job_.program({.worker = w,
                                     .generation = event.generation,
                                     .sequence = static_cast<std::uint32_t>(event.a),
                                     .run = event.b,
                                     .fingerprint_low = event.c}));
    case What::lease: return carry_out(job_.lease_wanted(event.a));
    case What::report: return take_report(event);
    case What::part:
    case What::saved: return at_trainer_of_save(event);
    case What::ended: {
      const LoopEnded ended{.worker = w,
                            .generation = event.generation,
                            .step = event.a >> 16,
                            .runs = event.b,
                            .error = static_cast<std::uint8_t>(event.a),
                            .preempted = (event.a >> 8 & 1) != 0,
                            .left = (event.a >> 9 & 1) != 0};
      std::optional<Missing> missing;
      if (event.c != kSimNever)
        missing = {.worker = static_cast<int>(event.c), .how = "is stopped"};
      return carry_out(job_.loop_ended(ended, committed(), missing));
    }
    case What::unwound: return carry_out(job_.unwound(w, event.generation, committed()));
    case What::paused: return carry_out(job_.paused(w, event.generation, event.a));
    case What::asks: return job_.asks();
    case What::link_down: {
      const auto lost = members_.remove(SimLink{w, event.life});
      if (lost) carry_out(job_.link_down(*lost));
      return;
    }
    case What::process_started: return job_.started(w, static_cast<int>(event.a));
    case What::process_ended:
      return carry_out(job_.process_ended(
          {.worker = w, .signal = static_cast<int>(event.a), .exit_code = event.a == 0 ? 1 : 0}, {},
          committed()));
    case What::restart_due: return carry_out(job_.restart_due(w));
    case What::link_lost: return carry_out(job_.link_grace_over(w, event.a, {}, committed()));
    case What::deadline: return carry_out(job_.gather_deadline(event.generation));
    case What::grace: return carry_out(job_.grace_over());
    default: break;
  }
  // The remaining kind of event is a stopped worker. A chip that waits for the worker may notice
  // the hang, or the trainer may.
  const SimWorker& worker = workers_[static_cast<std::size_t>(w)];
  if (!worker.alive || worker.life != event.life) return;
  post(kSimHangPatience, event);
  const auto chip = static_cast<int>(random_.below(chips_.size()));
  const SimWorker& other = workers_[static_cast<std::size_t>(chip / chips_each_)];
  const bool waits = !chips_[static_cast<std::size_t>(chip)].queue.empty() && other.alive;
  if (waits && !other.stopped && other.generation == worker.generation) {
    return fail_chip(chip, Errc::timeout, w);
  }
  std::vector<Sighting> hanging{{.worker = w, .process = "is stopped"}};
  // If no worker moves, the trainer considers all of them hung.
  if (random_.one_in(4)) {
    for (int all = 0; all < num_workers_; ++all) {
      if (all != w && workers_[static_cast<std::size_t>(all)].stopped) {
        hanging.push_back({.worker = all, .process = "is stopped"});
      }
    }
  }
  carry_out(job_.hung(hanging, "others have waited", committed()));
}

/// Sends a message to a worker. Messages to it arrive in the order in which they were sent.
void SimJob::send(const SimLink& link, Event event) {
  event.worker = link.worker;
  event.life = link.life;
  auto& got = workers_[static_cast<std::size_t>(link.worker)].got;
  post((got = std::max(got, now_ + some(20))) - now_, event);
}

void SimJob::carry_out(const Actions& actions) {
  for (const Action& action : actions) carry_out(action);
}

void SimJob::carry_out(const Action& action) {
  const auto to_process = [&](What what, int worker) {
    event_lane_ = std::max(event_lane_, now_ + some(10));
    post(event_lane_ - now_, {.what = what, .worker = worker});
  };
  std::visit(
      Overloaded{
          [&](const Start& start) { begin_generation(start); },
          [&](const action::Unwind& unwind) {
            memory_.abort(unwind.why);
            wake_chips();
          },
          [&](const action::GatherDeadline& deadline) {
            post(deadline_, {.what = What::deadline, .generation = deadline.number});
          },
          [&](const action::Grant& grant) {
            if (grant.steps < granted_) violated("a lease has shrunk");
            granted_ = grant.steps;
          },
          [&](const action::Grace& grace) { post(grace.ms, {.what = What::grace}); },
          [&](const action::TellSaved& saved) {
            if (saved.ended.save <= std::exchange(told_save_, saved.ended.save)) {
              violated("a save ends twice");
            }
          },
          [&](const action::Kill& kill) { to_process(What::kill, kill.worker); },
          [&](const action::Launch& launch) { to_process(What::start_process, launch.worker); },
          [&](const action::Backoff& backoff) {
            if (job_.recovery().incidents() < 2) {
              violated("a worker that was lost once has to wait");
            }
            post(backoff.ms, {.what = What::restart_due, .worker = backoff.worker});
          },
          [&](const action::LinkGrace& grace) {
            post(kLinkGrace, {.what = What::link_lost, .worker = grace.worker, .a = grace.number});
          },
          [](const auto&) {},
      },
      action);
  if (job_.over()) return;
  members_.tell(action, [&](int, const SimLink& link) { send(link, message(action)); });
}

void SimJob::begin_generation(const Start& start) {
  for (int c = 0; c < static_cast<int>(chips_.size()); ++c) {
    const SimWorker& worker = workers_[static_cast<std::size_t>(c / chips_each_)];
    SimChip& chip = chips_[static_cast<std::size_t>(c)];
    const bool idle = worker.at == SimWorker::At::waiting || worker.at == SimWorker::At::joining;
    if (worker.alive && !(idle && chip.queue.empty())) {
      violated(fmt::format("a generation starts while worker {} runs", c / chips_each_));
    }
  }
  check_resumed(start);
  parts_.clear();
  told_save_ = 0;
  granted_ = 0;
  lost_.clear();
  std::vector<std::uint64_t> before;
  for (int c = 0; c < mesh_.size(); ++c) {
    before.push_back(memory_.commit_line(c).step);
    chips_[static_cast<std::size_t>(c)].met = 0;
  }
  if (start.generation > 1 || start.step > 0) memory_.begin_generation(start.step);
  for (int c = 0; c < mesh_.size() && broken(BrokenRule::reset_of_commits); ++c) {
    memory_.commit_line(c).step = before[static_cast<std::size_t>(c)];
  }
  least_ = common_step(memory_);
}

void SimJob::take_report(const Event& event) {
  const SimReport& made = log_[event.a];
  const Report report{.worker = 0,
                      .generation = made.generation,
                      .step = made.step,
                      .number = made.number,
                      .metrics = std::to_string(made.metrics)};
  const bool is_new = job_.reported(report);
  if (!is_new && !broken(BrokenRule::filter)) return;
  if (delivered_ >= script_.reports.size() || script_.reports[delivered_] != made.metrics) {
    violated(fmt::format("report {} comes as number {}", made.metrics, delivered_));
  }
  ++delivered_;
}

SimResult simulate_recovery(std::uint64_t seed, BrokenRule broken) {
  return SimJob(seed, broken).run();
}

}  // namespace weft::testing
