// The trainer of a simulated job, as trainer_actor.cpp and job_run.cpp drive it, and the events.

#include "tests/support/recovery_sim.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tests/support/recovery_world.hpp"

namespace weft::testing {
namespace {

constexpr std::size_t kRecentEvents = 50;
constexpr std::uint64_t kLinkGrace = 40;

constexpr const char* kNames[] = {
    "loop",          "chip",          "join",
    "program",       "lease",         "report",
    "ended",         "unwound",       "paused",
    "asks",          "link down",     "process began",
    "process ended", "restart due",   "link lost",
    "deadline",      "hang seen",     "assigned",
    "start",         "asked",         "admit",
    "grant",         "pause",         "end at",
    "peer ended",    "unwind",        "trainer is gone",
    "kill",          "start process",
};

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
      job_(num_workers_, policy_, lease_steps_),
      workers_(static_cast<std::size_t>(num_workers_)),
      chips_(static_cast<std::size_t>(num_workers_ * chips_each_)) {
  faults_left_ = 1 + random_.below(40);
  fault_gap_ = (std::uint64_t{4} << random_.below(10)) * (1 + chips_.size() / 8);
  next_fault_ = random_.below(2 * fault_gap_);
  Random alike(seed + 1);  // of its own, as is the preemption's: each leaves the rest as it is
  for (auto& keeper : keepers_) {
    if (alike.one_in(2)) keeper = static_cast<int>(alike.below(chips_.size()));
  }
  Random preemption(~seed);
  if (preemption.below(7) < 2) preempt_at_ = preemption.below(4000 * (1 + chips_.size() / 8));
  if (preemption.one_in(4)) ask_every_ = preemption.below(10);
}

SimResult SimJob::run() {
  SimResult result;
  try {
    for (int w = 0; w < num_workers_; ++w) start_process(w);
    post(deadline_, {.what = What::deadline, .generation = 1});
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
        inject_fault(worker);  // while it waits for the others
      }
    }
    check_end();
  } catch (const Violation& violation) {
    result.violation = violation.what();
  }
  result.failures = job_.survived().size() + (job_.failure() ? 1 : 0);
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

std::string SimJob::trace() const {
  std::string text;
  for (const SimWorker& worker : workers_) {
    text += fmt::format("\n  worker {}: life {}, {}{}{}at {}, generation {}, step {}, {} runs",
                        &worker - &workers_[0], worker.life, worker.alive ? "" : "dead, ",
                        worker.linked ? "" : "no link, ", worker.stopped ? "stopped, " : "",
                        static_cast<int>(worker.at), worker.generation, worker.step, worker.runs);
  }
  for (std::uint64_t i = count_ - std::min<std::uint64_t>(count_, recent_.size()); i < count_;
       ++i) {
    const Event& event = recent_[i % kRecentEvents];
    text += fmt::format("\n  {}: {}", event.time, kNames[static_cast<std::size_t>(event.what)]);
    if (event.what == What::chip || event.what == What::loop) {
      const bool chip = event.what == What::chip;
      const auto w = static_cast<std::size_t>(chip ? event.worker / chips_each_ : event.worker);
      text += fmt::format(" {} of life {}, at step {}", event.worker, event.life, workers_[w].step);
    } else {
      text += fmt::format(" worker {}, life {}, generation {}, {} {} {}", event.worker, event.life,
                          event.generation, event.a, event.b, static_cast<std::int64_t>(event.c));
    }
  }
  return text;
}

void SimJob::post(std::uint64_t delay, Event event) {
  event.time = now_ + delay;
  event.order = order_++;
  events_.push(event);
}

/// Mostly about so long; seldom much longer.
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
    case What::kill: return end_process(event.worker, 9);
    case What::start_process: return start_process(event.worker);
    default: return at_trainer(event);
  }
}

/// As the trainer's actor has it: who has joined, and whose link it hasn't given up.
bool SimJob::is_from_member(const Event& event) const {
  if (broken(BrokenRule::members_only)) return true;
  const auto link = links_.find(event.worker);
  return link != links_.end() && link->second == event.life;
}

void SimJob::at_trainer(const Event& event) {
  const int w = event.worker;
  const bool from_worker = event.what >= What::program && event.what <= What::paused;
  if (from_worker && !is_from_member(event)) return;
  switch (event.what) {
    case What::join: {
      const SimWorker& worker = workers_[static_cast<std::size_t>(w)];
      const int pid = 100 + w + 1000 * event.life;
      if (job_.refuse_join(w, pid)) {
        if (worker.alive && worker.life == event.life) violated("a living process is refused");
        return;
      }
      links_[w] = event.life;
      carry_out(job_.joined(w, pid, committed()));
      Event answer{.what = What::assigned, .worker = w, .life = event.life};
      auto& got = workers_[static_cast<std::size_t>(w)].got;
      return post((got = std::max(got, now_ + some(20))) - now_, answer);
    }
    case What::program:
      return carry_out(job_.program({.worker = w,
                                     .generation = event.generation,
                                     .sequence = static_cast<std::uint32_t>(event.a),
                                     .run = event.b,
                                     .fingerprint_low = event.c}));
    case What::lease: return carry_out(job_.lease_wanted(event.a));
    case What::report: return take_report(event);
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
      if (!is_from_member(event)) return;
      links_.erase(w);
      return carry_out(job_.link_down(w));
    }
    case What::process_started: return job_.started(w, static_cast<int>(event.a));
    case What::process_ended:
      return carry_out(job_.process_ended(
          {.worker = w, .signal = static_cast<int>(event.a), .exit_code = event.a == 0 ? 1 : 0}, {},
          committed()));
    case What::restart_due: return carry_out(job_.restart_due(w));
    case What::link_lost: return carry_out(job_.link_grace_over(w, event.a, {}, committed()));
    case What::deadline: return carry_out(job_.gather_deadline(event.generation, 1));
    default: break;
  }
  // hang_seen: by a chip that waits, or by the trainer.
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
  // Where nobody moves, all are taken for hanging.
  if (random_.one_in(4)) {
    for (int all = 0; all < num_workers_; ++all) {
      if (all != w && workers_[static_cast<std::size_t>(all)].stopped) {
        hanging.push_back({.worker = all, .process = "is stopped"});
      }
    }
  }
  carry_out(job_.hung(hanging, "others have waited", committed()));
}

void SimJob::send_to_all(What what, std::uint64_t a, std::uint64_t b, int but) {
  for (const auto& [w, life] : links_) {
    if (w == but) continue;
    Event event{
        .what = what, .worker = w, .life = life, .generation = job_.generation(), .a = a, .b = b};
    if (what == What::peer_ended) event.c = static_cast<std::uint64_t>(but);
    if (what == What::start) event.b = filter_.count();
    if (what == What::start) event.c = job_.has_asked() ? 1 : 0;
    auto& got = workers_[static_cast<std::size_t>(w)].got;
    post((got = std::max(got, now_ + some(20))) - now_, event);
  }
}

void SimJob::carry_out(const Actions& actions) {
  for (const Action& action : actions) carry_out(action);
}

void SimJob::carry_out(const Action& action) {
  const auto to_process = [&](What what, int worker) {
    event_lane_ = std::max(event_lane_, now_ + some(10));
    post(event_lane_ - now_, {.what = what, .worker = worker});
  };
  std::visit(Overloaded{
                 [&](const action::Start& start) {
                   begin_generation(start.step);
                   send_to_all(What::start, start.step);
                 },
                 [&](const action::Unwind&) {
                   aborted_ = true;
                   wake_chips();
                   post(deadline_, {.what = What::deadline, .generation = job_.generation()});
                   send_to_all(What::unwind);
                 },
                 [&](const action::Grant& grant) {
                   if (grant.steps < granted_) violated("a lease has shrunk");
                   granted_ = grant.steps;
                   send_to_all(What::grant, grant.steps);
                 },
                 [&](const action::Pause&) { send_to_all(What::pause); },
                 [&](const action::EndAt& end) { send_to_all(What::end_at, end.step); },
                 [&](const action::Admit& admit) { send_to_all(What::admit, admit.programs); },
                 [&](const action::Asked& asked) {
                   send_to_all(What::asked, asked.sequence, asked.run, asked.worker);
                 },
                 [&](const action::PeerEnded& ended) {
                   send_to_all(What::peer_ended, ended.runs, 0, ended.worker);
                 },
                 [&](const action::Kill& kill) { to_process(What::kill, kill.worker); },
                 [&](const action::Launch& launch) {
                   links_.erase(launch.worker);
                   to_process(What::start_process, launch.worker);
                 },
                 [&](const action::Backoff& backoff) {
                   if (job_.incidents() < 2) violated("a worker that was lost once has to wait");
                   post(backoff.ms, {.what = What::restart_due, .worker = backoff.worker});
                 },
                 [&](const action::LinkGrace& grace) {
                   post(kLinkGrace,
                        {.what = What::link_lost, .worker = grace.worker, .a = grace.number});
                 },
                 [](const action::Cancel&) {},
                 [](const action::Stop&) {},
                 [](const action::DropParts&) {},
                 [](const action::TellSaved&) {},  // the loops of the simulation don't save
                 [](const action::JoinParts&) {},
             },
             action);
}

void SimJob::begin_generation(std::uint64_t step) {
  for (int c = 0; c < static_cast<int>(chips_.size()); ++c) {
    const SimWorker& worker = workers_[static_cast<std::size_t>(c / chips_each_)];
    SimChip& chip = chips_[static_cast<std::size_t>(c)];
    const bool idle = worker.at == SimWorker::At::waiting || worker.at == SimWorker::At::joining;
    if (worker.alive && !(idle && chip.queue.empty())) {
      violated(fmt::format("a generation starts while worker {} runs", c / chips_each_));
    }
    const SimPlaces places = worker.directory.read(step).value_or(kSimNowhere);
    for (std::size_t k = 0; k < kSimTensors; ++k) {
      const auto at = static_cast<std::size_t>(places[k]);
      const bool made = places[k] >= 0 && step > 0;
      const std::uint64_t value = !made                     ? script_.expected[0][0][k]
                                  : at < chip.blocks.size() ? chip.blocks[at]
                                                            : 0;
      if (value == script_.expected[step][0][k] || writes_over(c, k)) continue;
      violated(fmt::format("chip {} doesn't have tensor {} of version {}", c, k, step));
    }
  }
  granted_ = 0;
  lost_.clear();
  filter_.begin_generation(job_.generation(), step);
  if (job_.generation() == 1) return;
  aborted_ = false;
  for (SimChip& chip : chips_) {
    chip.met = 0;
    if (!broken(BrokenRule::reset_of_commits)) chip.commit = step;
  }
  least_ = std::ranges::min(chips_, {}, &SimChip::commit).commit;
}

void SimJob::take_report(const Event& event) {
  const SimReport& made = log_[event.a];
  const Report report{.worker = 0,
                      .generation = made.generation,
                      .step = made.step,
                      .number = made.number,
                      .metrics = std::to_string(made.metrics)};
  const bool is_new = filter_.is_new(report);
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
