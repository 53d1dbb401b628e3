#include "actors/simulate/simulated_process.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "transport/lanes/lane_format.hpp"

namespace weft {

SimulatedProcess::SimulatedProcess(std::shared_ptr<ActorSimulation> simulation, PeerId id,
                                   std::uint32_t ports)
    : simulation_(std::move(simulation)), id_(id) {
  for (std::uint32_t port = 1; port < ports; ++port) ports_[port].number = port;
}

// --- Calls ---

/// Returns whether this process may send. Returns false if its destructors send after its death.
/// Throws ProcessKilled if another function sends then, or if the process is killed now.
bool SimulatedProcess::may_send() {
  const bool is_destructor = destroyed_ > 0 || std::uncaught_exceptions() > 0;
  if (simulation_->has_ended()) return !is_destructor;  // submit() and tell() refuse the rest
  if (is_cleared_) return false;
  simulation_->require_turn();
  const bool is_killed = simulation_->is_killed(id_);
  if (!simulation_->runs(*this) || is_destructor) return !is_killed;
  if (!is_killed) {
    if (std::ranges::count(simulation_->keeper().killable(), id_) == 0) return true;
    if (!simulation_->draws_kill()) return true;
    simulation_->kill(id_, "was killed in a function of " + sender_name(sender()));
  }
  throw ProcessKilled{};
}

/// Returns the row + 1 of the actor whose function runs; 0 if no actor's function runs.
std::uint32_t SimulatedProcess::sender() {
  const std::optional<std::uint32_t>& actor = ThreadRole::current().actor;
  return actor ? *actor + 1 : 0;
}

std::string SimulatedProcess::sender_name(std::uint32_t sender) const {
  if (sender != 0) return name(sender - 1);
  return id_ == kTestProcess ? "the test" : fmt::format("process {}", id_.slot);
}

std::shared_ptr<detail::PendingCall> SimulatedProcess::begin(std::uint32_t row,
                                                             detail::EndpointId endpoint,
                                                             MessageWriter arguments,
                                                             const CallOptions& options) {
  const bool is_sent = may_send();
  const double timeout_s =
      options.timeout_s > 0 ? options.timeout_s : simulation_->options().call_timeout_s;
  auto call = std::make_shared<ActorCall>(
      shared_host(), ActorCall::What{.op = ActorOp::call, .row = row, .endpoint = endpoint},
      std::move(arguments), SendLimit::deadline_after(timeout_s, now()), timeout_s);
  ++open_calls_[row];
  if (!is_sent) {
    finish(*call, {.error = Error(Errc::cancelled, "the process of the caller has died")});
    return call;
  }
  call->cancel_on(options.stop);
  submit(call, options.wait_if_full);
  return call;
}

void SimulatedProcess::submit(const std::shared_ptr<ActorCall>& call, bool wait_if_full) {
  if (call->is_done()) return;
  if (simulation_->has_ended()) return finish(*call, {.error = system_ended_error()});
  const Sent sent{.call = call, .sender = sender()};
  const ActorPosition at = simulation_->keeper().row(call->what.row).position;
  if (at.phase == ActorPhase::alive && !is_parked(call->what.row) &&
      send_call(sent, at, wait_if_full)) {
    return;
  }
  if (at.phase == ActorPhase::alive || at.phase == ActorPhase::starting) return park(sent);
  finish(*call, {.error = ended_error(call->what.row)});
}

/// Sends a call. Returns false if the actor's process has died.
bool SimulatedProcess::send_call(const Sent& sent, const ActorPosition& to, bool wait_if_full) {
  ActorCall& call = *sent.call;
  if (!simulation_->is_alive(to.process)) return false;
  try {
    if (calls_.size() >= kCallCountMax) throw too_many_calls_error();
    call.number = simulation_->next_call();
    call.sent_to = to.process;
    calls_.emplace(call.number, sent);
    simulation_->log(
        fmt::format("{} calls {}: call {}", sender_name(sent.sender), name_of(call), call.number));
    send(to, heading_of(ActorOp::call, call.number, call.what.row, call.what.endpoint.index),
         sent.sender, call.message, wait_if_full, call.deadline);
  } catch (const Error& error) {
    calls_.erase(std::exchange(call.number, 0));
    if (error.code() == Errc::peer_lost) return false;
    finish(call, {.error = error});
  }
  return true;
}

void SimulatedProcess::tell(std::uint32_t row, detail::EndpointId endpoint,
                            const MessageWriter& body, const CallOptions& options) {
  if (!may_send()) return;
  const SimulatedTime limit = SendLimit::deadline_after(
      options.timeout_s > 0 ? options.timeout_s : simulation_->options().call_timeout_s, now());
  for (;;) {
    if (simulation_->has_ended()) throw system_ended_error();
    const ActorPosition& at = simulation_->keeper().row(row).position;
    if (at.phase == ActorPhase::ended) throw ended_error(row);
    if (at.phase == ActorPhase::alive && !is_parked(row) && simulation_->is_alive(at.process)) {
      try {
        simulation_->log(
            fmt::format("{} tells {}", sender_name(sender()), endpoint_name(row, endpoint.index)));
        return send(at, heading_of(ActorOp::tell, 0, row, endpoint.index), sender(), body,
                    options.wait_if_full, limit);
      } catch (const Error& error) {
        if (error.code() != Errc::peer_lost) throw;
      }
    }
    if (!options.wait_if_full || !ThreadRole::current().may_wait_for_room) {
      throw being_made_error(name(row));
    }
    if (now() >= limit) throw still_being_made_error(name(row));
    simulation_->wait(
        [&] {
          return at.phase == ActorPhase::ended ||
                 (at.phase == ActorPhase::alive && simulation_->is_alive(at.process) &&
                  !is_parked(row));
        },
        limit);
  }
}

/// Sends a message. Throws peer_lost if the receiving process has died.
void SimulatedProcess::send(const ActorPosition& to, const LaneHeading& heading,
                            std::uint32_t sender, const MessageWriter& body, bool wait_if_full,
                            SimulatedTime limit) {
  SimulatedMessage message = packed(body);
  message.asked = {.by = id_, .heading = heading};
  message.sender = sender;
  const PeerId process = to.process;
  const std::uint32_t port = to.port;
  const auto has_room = [&] {
    return simulation_->waiting(id_, process, port) < static_cast<int>(kLaneEntryCount);
  };
  while (!has_room()) {
    const ThreadRole& role = ThreadRole::current();
    if (!wait_if_full || !role.may_wait_for_room || (process == id_ && port == role.port)) {
      throw full_error(name(heading.target), wait_if_full);
    }
    if (now() >= limit) throw still_full_error(name(heading.target));
    if (!simulation_->is_alive(process)) fail(Errc::peer_lost, "process {} has died", process.slot);
    simulation_->wait([&] { return has_room() || !simulation_->is_alive(process); }, limit);
  }
  const auto taker = simulation_->find(process);
  if (taker == nullptr) fail(Errc::peer_lost, "process {} has died", process.slot);
  const bool is_tell = op_of(heading) == ActorOp::tell;
  if (simulation_->draws_drop()) {
    simulation_->log("this message is lost");
    if (is_tell) ++simulation_->counts().lost_tells;
    return;
  }
  SimulatedPort* at = &taker->ports().at(port);
  simulation_->add({.channel = {SimulatedEvent::message, sender, id_.slot, heading.target},
                    .process = process,
                    .lane = SimulatedEvent::Lane{.from = id_, .port = port, .is_tell = is_tell},
                    .is_due = [at] { return at->is_free(); },
                    .happen = [process = taker.get(), at,
                               message = std::move(message)] { process->take(*at, message); }});
}

void SimulatedProcess::send_answer(const Asked& asked, ActorOp op, const MessageWriter& value) {
  if (!may_send() || simulation_->has_ended()) return;
  const auto asker = simulation_->find(asked.by);
  if (asker == nullptr) return;
  SimulatedMessage message;
  try {
    message = packed(value);
  } catch (const Error& error) {
    if (op == ActorOp::error) throw;
    return answer_error(asked, unsendable_answer_error(name(asked.heading.target), error));
  }
  const std::uint64_t call = asked.heading.call;
  if (simulation_->draws_drop()) return simulation_->log(fmt::format("answer {} is lost", call));
  detail::Answer answer{.bytes = std::move(message.bytes), .payloads = std::move(message.payloads)};
  if (op == ActorOp::error) {
    MessageReader reader(answer.bytes);
    answer.error = get_error(reader);
  }
  simulation_->add({.channel = {SimulatedEvent::answer, asked.heading.target, asked.by.slot},
                    .process = asked.by,
                    .by = id_,
                    .call = call,
                    .happen = [process = asker.get(), call, answer = std::move(answer)] {
                      process->take_answer(call, answer);
                    }});
}

// --- Calls that wait for their actor ---

bool SimulatedProcess::is_parked(std::uint32_t row) const {
  return std::ranges::any_of(parked_, [&](const Sent& sent) { return sent.call->what.row == row; });
}

void SimulatedProcess::park(const Sent& sent) {
  const std::uint32_t row = sent.call->what.row;
  simulation_->log(fmt::format("{}: a call of {} waits until its actor is there",
                               sender_name(sent.sender), name_of(*sent.call)));
  parked_.push_back(sent);
  const auto is_due = [this, row, call = sent.call] {
    const ActorPosition& at = simulation_->keeper().row(row).position;
    return call->is_done() || at.phase == ActorPhase::ended ||
           (at.phase == ActorPhase::alive && simulation_->is_alive(at.process) &&
            simulation_->waiting(id_, at.process, at.port) < static_cast<int>(kLaneEntryCount));
  };
  simulation_->add({.channel = {SimulatedEvent::parked, row, id_.slot},
                    .process = id_,
                    .is_due = is_due,
                    .happen = [this, sent] { send_parked(sent); }});
}

void SimulatedProcess::send_parked(const Sent& sent) {
  std::erase_if(parked_, [&](const Sent& each) { return each.call == sent.call; });
  if (sent.call->is_done()) return;
  const ActorPosition at = simulation_->keeper().row(sent.call->what.row).position;
  if (at.phase == ActorPhase::ended) {
    finish(*sent.call, {.error = ended_error(sent.call->what.row)});
  } else {
    send_call(sent, at, false);  // is_due has checked that the actor's process lives
  }
}

bool SimulatedProcess::has_calls_to(PeerId process) const {
  return std::ranges::any_of(
      calls_, [&](const auto& each) { return each.second.call->sent_to == process; });
}

void SimulatedProcess::lose_calls_to(PeerId process) {
  std::vector<Sent> lost;
  for (const auto& [number, sent] : calls_) {
    if (sent.call->sent_to == process) lost.push_back(sent);
  }
  for (const Sent& sent : lost) {
    ActorCall& call = *sent.call;
    calls_.erase(std::exchange(call.number, 0));
    if (call.what.endpoint.is_const && !call.was_lost) {
      call.was_lost = true;
      park(sent);
    } else {
      finish(call, {.error = lost_call_error(name_of(call), "its process")});
    }
  }
}

// --- Ends of calls ---

bool SimulatedProcess::is_awaited(const Asked& asked) { return simulation_->is_awaited(asked); }

void SimulatedProcess::take_answer(std::uint64_t number, detail::Answer answer) {
  const auto found = calls_.find(number);
  if (found == calls_.end()) return;  // the call has ended before
  const std::shared_ptr<ActorCall> call = found->second.call;
  calls_.erase(found);
  call->number = 0;
  answer.process = this;
  simulation_->log(
      fmt::format("call {} ends: {}", number, answer.error ? answer.error->what() : "ok"));
  finish(*call, std::move(answer));
}

void SimulatedProcess::finish(ActorCall& call, detail::Answer answer) {
  if (call.finish(std::move(answer))) --open_calls_[call.what.row];
}

void SimulatedProcess::end(ActorCall& call, detail::Answer answer) {
  if (call.number != 0) {
    simulation_->log(fmt::format("call {} ends: {}", call.number, answer.error->what()));
    calls_.erase(std::exchange(call.number, 0));
  }
  finish(call, std::move(answer));
}

void SimulatedProcess::expire() {
  std::vector<std::shared_ptr<ActorCall>> expired;
  for (const auto& [number, sent] : calls_) expired.push_back(sent.call);
  for (const Sent& sent : parked_) expired.push_back(sent.call);
  std::erase_if(expired,
                [&](const auto& call) { return call->is_done() || call->deadline > now(); });
  std::ranges::stable_sort(expired, {}, [](const auto& call) { return call->deadline; });
  for (const auto& call : expired) {
    const Error error = timeout_error(*call);
    simulation_->log(error.what());
    calls_.erase(std::exchange(call->number, 0));
    finish(*call, {.error = error});
  }
}

SimulatedTime SimulatedProcess::next_deadline() const {
  SimulatedTime next = SimulatedTime::max();
  for (const auto& [number, sent] : calls_) next = std::min(next, sent.call->deadline);
  for (const Sent& sent : parked_) {
    if (!sent.call->is_done()) next = std::min(next, sent.call->deadline);
  }
  return next;
}

bool SimulatedProcess::wait(ActorCall& call, SimulatedTime time) {
  if (simulation_->has_ended() || is_cleared_) return call.is_done();
  simulation_->require_turn();
  const ThreadRole& role = ThreadRole::current();
  if (!role.may_block) {
    throw may_not_wait_error(name_of(call),
                             role.actor ? name(*role.actor) : "a callback of then()");
  }
  const auto is_over = [&] { return call.is_done() || simulation_->has_ended(); };
  if (!role.actor || call.is_done()) {
    if (!call.is_done()) simulation_->wait(is_over, time);
    return call.is_done();
  }
  std::optional<AwaitedCall>& awaited = simulation_->keeper().row(*role.actor).awaited;
  awaited = {.row = call.what.row,
             .endpoint = call.what.endpoint.index,
             .number = time == SimulatedTime::max() ? call.number : 0};
  if (const std::string circle = circle_of(*role.actor, *awaited); !circle.empty()) {
    end(call, {.error = circle_error(circle)});
  }
  if (!call.is_done()) {
    simulation_->log(fmt::format("{} waits for {}", name(*role.actor), name_of(call)));
    simulation_->wait(is_over, time);
    simulation_->log(fmt::format("{} continues", name(*role.actor)));
  }
  awaited.reset();
  return call.is_done();
}

void SimulatedProcess::post(std::function<void()> done, bool is_the_programs) {
  if (is_cleared_ && !simulation_->has_ended()) return;
  auto run = [this, done = std::move(done)] {
    const ThreadRoleScope role({.may_block = false, .may_wait_for_room = false});
    simulation_->log("a callback of then() runs");
    try {
      done();
    } catch (const std::exception& error) {
      logger("weft.worker")->error("actors: a callback of then() threw: {}", error.what());
    }
  };
  auto enter = [this, run = std::move(run)] { simulation_->enter(*this, nullptr, false, run); };
  if (is_the_programs && ready_fd_) {
    ready_.push_back(std::move(enter));
    ready_fd_->wake();
    return;
  }
  simulation_->add_event({SimulatedEvent::callback, id_.slot}, id_, std::move(enter));
}

int SimulatedProcess::ready_fd() {
  if (!ready_fd_) ready_fd_.emplace();
  return ready_fd_->fd();
}

int SimulatedProcess::run_ready() {
  int count = 0;
  while (!ready_.empty()) {
    for (const auto& each : std::exchange(ready_, {})) {
      each();
      ++count;
    }
  }
  if (ready_fd_) ready_fd_->clear();
  return count;
}

}  // namespace weft
