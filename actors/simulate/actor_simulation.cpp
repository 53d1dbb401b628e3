#include "actors/simulate/actor_simulation.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <set>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/keeper/checks.hpp"
#include "actors/simulate/simulated_process.hpp"
#include "actors/user/pipe_end.hpp"

namespace weft {
namespace {

ActorTestOptions checked_test(const ActorTestOptions& options) {
  checked(SystemOptions{.threads = options.threads, .call_timeout_s = options.call_timeout_s});
  if (options.kills < 0 || options.drops < 0 || options.steps_between_faults < 1) {
    fail(
        Errc::invalid_argument,
        "ActorTestOptions{{kills = {}, drops = {}, steps_between_faults = {}}}: expected 0 or more "
        "kills and drops, and 1 step or more between faults",
        options.kills, options.drops, options.steps_between_faults);
  }
  if (!(options.work_s > 0) || options.max_steps < 1) {
    fail(Errc::invalid_argument,
         "ActorTestOptions{{work_s = {}, max_steps = {}}}: expected more than 0 of both",
         options.work_s, options.max_steps);
  }
  return options;
}

/// Returns the key of a simulated system. No two systems of a program have the same key.
std::uint64_t next_key() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

/// A possible next step: an event, the call of an actor's work(), or the continuation of a
/// function.
struct ActorSimulation::Choice {
  std::size_t event = 0;
  SimulatedProcess* process = nullptr;  ///< null: the step is the event
  SimulatedPort* port = nullptr;
  std::optional<std::uint32_t> worker{};  ///< the row whose work() is called; none: the function
                                          ///< that waits continues
};

ActorSimulation::ActorSimulation(const ActorTestOptions& options)
    : options_(checked_test(options)),
      random_(options.seed),
      key_(next_key()),
      kills_(options.kills),
      drops_(options.drops),
      keeper_(*this, options_.threads),
      job_(*this) {}

ActorSimulation::~ActorSimulation() = default;

void ActorSimulation::begin() {
  processes_.emplace(0, std::make_shared<SimulatedProcess>(shared_from_this(), kTestProcess,
                                                           options_.threads + 1));
}

void ActorSimulation::end() {
  has_ended_ = true;
  end_faults();
  for (std::uint32_t row = 0; row < keeper_.row_count(); ++row) {
    if (const auto process = find(keeper_.row(row).position.process)) process->request_stop(row);
  }
  while (processes_.size() > 1) leave(std::prev(processes_.end())->second->id());
  const std::shared_ptr<SimulatedProcess> last = processes_.begin()->second;
  bury(last);
  // As in ActorSystem's destructor, the callbacks of then() still run.
  last->run_ready();
  std::vector<SimulatedEvent> rest = std::exchange(events_, {});
  for (const SimulatedEvent& event : rest) {
    if (event.channel[0] == SimulatedEvent::callback && event.process == kTestProcess) {
      event.happen();
    }
  }
  events_.clear();
  timers_.clear();
  processes_.clear();
}

// --- Steps ---

std::vector<ActorSimulation::Choice> ActorSimulation::choices(bool with_work_alone) {
  std::vector<Choice> all;
  std::set<SimulatedEvent::Channel> seen;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const SimulatedEvent& event = events_[i];
    if (!seen.insert(event.channel).second || (event.is_due && !event.is_due())) continue;
    all.push_back({.event = i});
  }
  for (const auto& [number, process] : processes_) {
    for (auto& [port_number, port] : process->ports()) {
      if (port.can_continue && port.can_continue()) {
        all.push_back({.process = process.get(), .port = &port});
      }
    }
  }
  if (all.empty() && !with_work_alone) return all;
  for (const auto& [number, process] : processes_) {
    for (auto& [port_number, port] : process->ports()) {
      if (!port.is_free()) continue;
      const std::vector<std::uint32_t> rows = process->workers(port);
      if (rows.empty() || has_message(process->id(), port_number)) continue;
      for (const std::uint32_t row : rows) {
        all.push_back({.process = process.get(), .port = &port, .worker = row});
      }
    }
  }
  return all;
}

bool ActorSimulation::step(bool with_work_alone) {
  require_turn();
  const std::vector<Choice> all = choices(with_work_alone);
  if (all.empty()) return false;
  if (++steps_ > options_.max_steps) {
    fail(Errc::timeout,
         "ActorTest: {} steps were taken (ActorTestOptions::max_steps); do actors send each other "
         "messages without an end?",
         options_.max_steps);
  }
  if (const std::vector<PeerId> targets = keeper_.killable(); !targets.empty() && draws_kill()) {
    kill(targets[draw(targets.size())], "was killed");
    return true;
  }
  const Choice& chosen = all[draw(all.size())];
  if (chosen.process == nullptr) {
    happen(chosen.event);
  } else if (!chosen.worker) {
    resume(*chosen.process, *chosen.port);
  } else {
    chosen.process->work(*chosen.port, *chosen.worker);
    advance_to(now_ + nanoseconds(options_.work_s));
  }
  return true;
}

void ActorSimulation::happen(std::size_t event) {
  const SimulatedEvent chosen = std::move(events_[event]);
  events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(event));
  chosen.happen();
}

void ActorSimulation::wait(const std::function<bool()>& is_over, SimulatedTime limit) {
  if (running_.process == nullptr) return pump(is_over, limit);
  if (!running_.may_pause) {
    fail(Errc::invalid_argument,
         "ActorTest: a function that may not wait uses spawn(), stop(), advance() or get()");
  }
  SimulatedProcess& process = *running_.process;
  SimulatedPort& port = *running_.port;
  port.can_continue = [this, &is_over, limit] { return is_over() || now_ >= limit; };
  port.wait_limit = limit;
  port.fiber->pause();
  port.can_continue = nullptr;
  if (is_killed(process.id())) throw ProcessKilled{};
}

/// Takes steps until the test needn't wait any longer.
void ActorSimulation::pump(const std::function<bool()>& is_over, SimulatedTime limit) {
  if (now_ >= limit && !is_over()) {  // the test only checks whether something has come
    step(true);
    return;
  }
  while (!is_over() && now_ < limit) {
    if (step(true)) continue;
    const SimulatedTime next = std::min(next_time(), limit);
    if (next == SimulatedTime::max()) {
      fail(Errc::timeout, "ActorTest: there is nothing left that could end a wait of the test");
    }
    advance_to(next);
  }
}

// --- Time ---

double ActorSimulation::seconds() const {
  return std::chrono::duration<double>(now_.time_since_epoch()).count();
}

void ActorSimulation::call_in(std::chrono::nanoseconds time, std::function<void()> what) {
  timers_.emplace(now_ + time, std::move(what));
}

SimulatedTime ActorSimulation::next_time() const {
  SimulatedTime next = std::min(timers_.empty() ? SimulatedTime::max() : timers_.begin()->first,
                                keeper_.next_hang());
  for (const auto& [number, process] : processes_) {
    next = std::min(next, process->next_deadline());
    for (const auto& [port_number, port] : process->ports()) {
      if (port.can_continue && port.wait_limit > now_) next = std::min(next, port.wait_limit);
    }
  }
  return next;
}

/// Moves the clock forward to `time`, and runs what is due before.
void ActorSimulation::advance_to(SimulatedTime time) {
  for (SimulatedTime next = next_time(); next <= time; next = next_time()) {
    now_ = std::max(now_, next);
    run_due();
  }
  now_ = std::max(now_, time);
}

void ActorSimulation::run_due() {
  while (!timers_.empty() && timers_.begin()->first <= now_) {
    const std::function<void()> what = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    what();
  }
  const auto processes = processes_;  // a copy, because callbacks may change processes_
  for (const auto& [number, process] : processes) process->expire();
  keeper_.kill_hanging();
}

// --- Functions of processes ---

void ActorSimulation::require_turn() const {
  const std::thread::id expected = running_.may_pause ? running_.port->fiber->thread() : thread_;
  if (std::this_thread::get_id() == expected) return;
  fail(Errc::invalid_argument,
       "ActorTest: it is used by a thread that isn't the test's, so its order can't be known; only "
       "the thread that made the ActorTest and functions of its actors may use it");
}

void ActorSimulation::enter(SimulatedProcess& process, SimulatedPort* port, bool may_pause,
                            std::function<void()> function) {
  auto guarded = [function = std::move(function)] {
    try {
      function();
    } catch (const ProcessKilled&) {
    }
  };
  const Running before =
      std::exchange(running_, {.process = &process, .port = port, .may_pause = may_pause});
  if (may_pause) {
    if (port->fiber == nullptr) port->fiber = std::make_unique<ActorFiber>();
    port->fiber->start(std::move(guarded));
  } else {
    guarded();
  }
  running_ = before;
  after_function();
}

void ActorSimulation::resume(SimulatedProcess& process, SimulatedPort& port) {
  const Running before =
      std::exchange(running_, {.process = &process, .port = &port, .may_pause = true});
  port.fiber->resume();
  running_ = before;
  after_function();
}

// --- Processes ---

PeerId ActorSimulation::start_process(std::uint32_t port_count) {
  const PeerId id = simulated_process(++last_process_);
  processes_.emplace(id.slot,
                     std::make_shared<SimulatedProcess>(shared_from_this(), id, port_count));
  return id;
}

std::shared_ptr<SimulatedProcess> ActorSimulation::find(PeerId process) const {
  const auto found = processes_.find(process.slot);
  return found == processes_.end() ? nullptr : found->second;
}

void ActorSimulation::kill(PeerId process, const std::string& why) {
  const std::shared_ptr<SimulatedProcess> killed = find(process);
  if (killed == nullptr) return;
  log(fmt::format("process {} {}", process.slot, why));
  if (runs(*killed)) {
    killed_.emplace(process.slot, why);  // bury_killed() follows when the function has been left
    return;
  }
  bury_killed(process, why);
}

void ActorSimulation::bury_killed(PeerId process, const std::string& why) {
  bury(find(process));
  add_event({SimulatedEvent::death, 0, process.slot}, kTestProcess,
            [this, process, why] { keeper_.on_process_ended(process, why); });
}

void ActorSimulation::leave(PeerId process) {
  if (const auto left = find(process)) bury(left);
}

void ActorSimulation::after_function() {
  if (running_.process != nullptr) return;
  for (const auto& [number, why] : std::exchange(killed_, {})) {
    bury_killed(simulated_process(number), why);
  }
}

/// Buries a process that has died: ends its functions and removes its messages. The processes that
/// wait for its answers are told later.
void ActorSimulation::bury(const std::shared_ptr<SimulatedProcess>& process) {
  const PeerId id = process->id();
  processes_.erase(id.slot);
  for (auto& [number, port] : process->ports()) {
    while (!port.is_free()) resume(*process, port);  // a function that waits throws ProcessKilled
  }
  std::erase_if(events_, [&](const SimulatedEvent& event) {
    if (event.process != id || (has_ended_ && event.channel[0] == SimulatedEvent::callback)) {
      return false;
    }
    if (event.lane && event.lane->is_tell) ++counts_.lost_tells;
    return true;
  });
  process->clear(has_ended_ ? system_ended_error() : Error(Errc::cancelled, "the process died"));
  std::erase_if(channels_, [prefix = pipe_prefix(id.slot, id.incarnation)](const auto& each) {
    return each.first.starts_with(prefix);
  });
  for (const auto& [number, other] : processes_) {
    if (!other->has_calls_to(id)) continue;
    add_event({SimulatedEvent::death, 1 + number, id.slot}, other->id(), [this, id, number] {
      // The process had sent these answers before it died, so they are handled first.
      for (std::size_t i = 0; i < events_.size();) {
        if (events_[i].process.slot == number && events_[i].by == id) {
          happen(i);
          i = 0;
        } else {
          ++i;
        }
      }
      if (const auto waiting = find(simulated_process(number))) waiting->lose_calls_to(id);
    });
  }
}

// --- Messages ---

void ActorSimulation::add_event(const SimulatedEvent::Channel& channel, PeerId process,
                                std::function<void()> happen) {
  add({.channel = channel, .process = process, .happen = std::move(happen)});
}

int ActorSimulation::waiting(PeerId from, PeerId to, std::uint32_t port) const {
  return static_cast<int>(std::ranges::count_if(events_, [&](const SimulatedEvent& event) {
    return event.lane && event.process == to && event.lane->from == from &&
           event.lane->port == port;
  }));
}

bool ActorSimulation::has_message(PeerId to, std::uint32_t port) const {
  return std::ranges::any_of(events_, [&](const SimulatedEvent& event) {
    return event.lane && event.process == to && event.lane->port == port;
  });
}

bool ActorSimulation::has_answer(std::uint64_t call) const {
  return std::ranges::count(events_, call, &SimulatedEvent::call) > 0;
}

bool ActorSimulation::is_awaited(const Asked& asked) const {
  const auto process = find(asked.by);
  return process != nullptr && process->waits_for(asked.heading.call);
}

// --- Chance ---

std::uint64_t ActorSimulation::draw(std::uint64_t below) {
  random_ = actor_seed(random_, 0, 0, 0);
  return random_ % below;
}

bool ActorSimulation::draws_fault(int& left) {
  if (left == 0 || draw(static_cast<std::uint64_t>(options_.steps_between_faults)) != 0) {
    return false;
  }
  --left;
  return true;
}

bool ActorSimulation::draws_kill() { return draws_fault(kills_); }
bool ActorSimulation::draws_drop() { return draws_fault(drops_); }

void ActorSimulation::log(std::string text) {
  history_.push_back(fmt::format("{:.6f} {}", seconds(), text));
}

}  // namespace weft
