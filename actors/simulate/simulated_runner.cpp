#include <utility>

#include <nlohmann/json.hpp>

#include <weft/message/aggregate.hpp>
#include <weft/message/containers.hpp>
#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "actors/simulate/simulated_process.hpp"
#include "actors/user/late_reply.hpp"

namespace weft {
namespace {

/// While it lives, shows which function an actor runs, and since when.
class SimulatedFunction {
 public:
  SimulatedFunction(SimulatedRow& row, const ActorFunction& function, SimulatedTime now)
      : row_(row) {
    row_.function = function;
    row_.since = now;
  }
  ~SimulatedFunction() { row_.since.reset(); }
  SimulatedFunction(const SimulatedFunction&) = delete;
  SimulatedFunction& operator=(const SimulatedFunction&) = delete;

 private:
  SimulatedRow& row_;
};

}  // namespace

// --- Messages ---

void SimulatedProcess::take(SimulatedPort& port, SimulatedMessage message) {
  const auto found = port.actors.find(message.asked.heading.target);
  const bool may_pause = found != port.actors.end() && found->second.own_thread;
  simulation_->enter(*this, &port, may_pause,
                     [this, &port, message = std::move(message)] { handle(port, message); });
}

void SimulatedProcess::handle(SimulatedPort& port, SimulatedMessage message) {
  const auto found = port.actors.find(message.asked.heading.target);
  if (found == port.actors.end()) return refuse(port, message);
  SimulatedActor& actor = found->second;
  if (actor.object != nullptr) return run_message(port, actor, message);
  if (actor.kept.size() >= kKeptMax) return refuse(port, message);
  simulation_->log(fmt::format("{} keeps a message", name(actor.row)));
  actor.kept.push_back(std::move(message));
}

void SimulatedProcess::refuse(const SimulatedPort& port, const SimulatedMessage& message) {
  const std::uint32_t row = message.asked.heading.target;
  const Error why = port.actors.contains(row) ? kept_too_many_error(name(row)) : ended_error(row);
  if (op_of(message.asked.heading) == ActorOp::call) return answer_error(message.asked, why);
  ++simulation_->counts().lost_tells;
  simulation_->log(fmt::format("a message that was told is lost: {}", why.what()));
}

void SimulatedProcess::run_message(SimulatedPort& port, SimulatedActor& actor,
                                   const SimulatedMessage& message) {
  const Asked& asked = message.asked;
  const bool is_call = op_of(asked.heading) == ActorOp::call;
  const std::uint32_t endpoint = endpoint_of(asked.heading);
  const std::string its_name = endpoint_name(actor.row, endpoint);
  if (is_call && !simulation_->is_awaited(asked)) {
    return simulation_->log(fmt::format("call {} is skipped", asked.heading.call));
  }
  simulation_->log(is_call ? fmt::format("{} begins: call {}", its_name, asked.heading.call)
                           : fmt::format("{} begins", its_name));
  MessageWriter result;
  std::optional<Error> error;
  std::shared_ptr<LateReply> later;
  try {
    const SimulatedFunction running(
        simulation_->keeper().row(actor.row),
        {.kind = is_call ? ActorFunctionKind::call : ActorFunctionKind::tell,
         .caller = asked.by.slot,
         .endpoint = endpoint},
        now());
    const ThreadRoleScope role({.may_block = actor.own_thread,
                                .may_wait_for_room = actor.own_thread,
                                .port = port.number,
                                .actor = actor.row,
                                .host = this});
    const auto& endpoints = actor.type->parts().endpoints;
    if (endpoint >= endpoints.size()) throw no_endpoint_error(endpoint);
    const detail::EndpointEntry& entry = endpoints[endpoint];
    MessageReader reader(message.bytes, message.payloads, this);
    if (entry.replies_later) {
      later = std::make_shared<LateReply>(weak_from_this(), asked, its_name);
    }
    entry.run(actor.object.get(), reader, result, later);
  } catch (const ProcessKilled&) {
    throw;
  } catch (...) {
    error.emplace(Errc::endpoint_failed, fmt::format("{}: {}", its_name, current_exception_text()));
  }
  if (simulation_->is_killed(id_)) throw ProcessKilled{};  // the function has caught ProcessKilled
  if (later != nullptr && error) later->send_error(*error);
  if (is_call && later == nullptr) {
    error ? answer_error(asked, *error) : send_answer(asked, ActorOp::answer, result);
  } else if (!is_call && error) {
    fail_actor(actor, error->what());
  }
}

void SimulatedProcess::answer_error(const Asked& asked, const Error& error) {
  MessageWriter body;
  put_error(body, error);
  send_answer(asked, ActorOp::error, body);
}

// --- work() ---

std::vector<std::uint32_t> SimulatedProcess::workers(const SimulatedPort& port) const {
  std::vector<std::uint32_t> rows;
  for (const auto& [row, actor] : port.actors) {
    if (actor.object != nullptr && actor.type->parts().work != nullptr &&
        !actor.stop.stop_requested()) {
      rows.push_back(row);
    }
  }
  return rows;
}

void SimulatedProcess::work(SimulatedPort& port, std::uint32_t row) {
  simulation_->enter(*this, &port, true, [this, &port, row] {
    SimulatedActor& actor = port.actors.at(row);
    simulation_->log(fmt::format("{}.work begins", name(row)));
    try {
      const SimulatedFunction running(simulation_->keeper().row(row),
                                      {.kind = ActorFunctionKind::work}, now());
      const ThreadRoleScope role({.may_block = true,
                                  .may_wait_for_room = true,
                                  .port = port.number,
                                  .actor = row,
                                  .host = this});
      actor.type->parts().work(actor.object.get());
    } catch (const ProcessKilled&) {
      throw;
    } catch (...) {
      if (actor.stop.stop_requested()) return;  // the stop cancelled a call in work()
      fail_actor(actor, fmt::format("{}.work: {}", name(row), current_exception_text()));
    }
  });
}

// --- Actors ---

void SimulatedProcess::order_make(std::uint32_t row) {
  SimulatedPort* port = &ports_.at(simulation_->keeper().row(row).position.port);
  const bool own_thread = simulation_->keeper().mesh_of(row).options.own_thread;
  simulation_->add({.channel = {SimulatedEvent::order, row},
                    .process = id_,
                    .is_due = [port] { return port->is_free(); },
                    .happen =
                        [this, port, row, own_thread] {
                          simulation_->enter(*this, port, own_thread,
                                             [this, port, row] { make(*port, row); });
                        }});
}

void SimulatedProcess::make(SimulatedPort& port, std::uint32_t row) {
  SimulatedKeeper& keeper = simulation_->keeper();
  const SimulatedMesh& mesh = keeper.mesh_of(row);
  SimulatedRow& its = keeper.row(row);
  const std::uint32_t incarnation = its.position.incarnation;
  simulation_->log(
      fmt::format("{} is made in process {}: incarnation {}", name(row), id_.slot, incarnation));
  SimulatedActor& made = port.actors[row];
  std::optional<Error> error;
  try {
    made.row = row;
    destroy(made);
    made.stop = {};
    made.type = mesh.type;
    made.own_thread = mesh.options.own_thread;
    made.context = std::make_unique<ActorContext>(
        ActorContext::Facts{
            .mesh = mesh.name,
            .index = static_cast<int>(its.index),
            .count = mesh.options.count,
            .incarnation = incarnation,
            .seed = actor_seed(simulation_->options().seed, its.mesh, its.index, incarnation),
            .config =
                mesh.options.config.is_null() ? nlohmann::json::object() : mesh.options.config,
            .job = mesh.options.lives_with == nullptr ? "" : SimulatedJob::id()},
        made.stop.get_token(), shared_from_this());
    its.awaited.reset();
    const SimulatedFunction running(its, {.kind = ActorFunctionKind::make}, now());
    const ThreadRoleScope role({.may_block = made.own_thread,
                                .may_wait_for_room = made.own_thread,
                                .port = port.number,
                                .actor = row,
                                .host = this});
    made.object = made.type->parts().make(*made.context);
  } catch (const ProcessKilled&) {
    throw;
  } catch (...) {
    error = constructor_error(name(row), current_exception_text());
  }
  simulation_->add_event({SimulatedEvent::made, row, incarnation}, kTestProcess,
                         [this_keeper = &keeper, row, incarnation, error] {
                           this_keeper->on_made(row, incarnation, error);
                         });
  while (made.object != nullptr && !made.kept.empty()) {
    const SimulatedMessage message = std::move(made.kept.front());
    made.kept.pop_front();
    run_message(port, made, message);
  }
}

void SimulatedProcess::request_stop(std::uint32_t row) {
  for (auto& [number, port] : ports_) {
    const auto found = port.actors.find(row);
    if (found != port.actors.end()) found->second.stop.request_stop();
  }
}

void SimulatedProcess::order_end(std::uint32_t row) {
  SimulatedPort* port = &ports_.at(simulation_->keeper().row(row).position.port);
  simulation_->add({.channel = {SimulatedEvent::order, row},
                    .process = id_,
                    .is_due = [port] { return port->is_free(); },
                    .happen =
                        [this, port, row] {
                          simulation_->enter(*this, port, false,
                                             [this, port, row] { end_actor(*port, row); });
                          if (!simulation_->is_killed(id_))
                            simulation_->keeper().on_actor_ended(row);
                        }});
}

void SimulatedProcess::end_actor(SimulatedPort& port, std::uint32_t row) {
  const auto found = port.actors.find(row);
  if (found == port.actors.end()) return;
  simulation_->log(fmt::format("{} ends", name(row)));
  SimulatedActor ended = std::move(found->second);
  port.actors.erase(found);
  destroy(ended);
  for (const SimulatedMessage& each : ended.kept) refuse(port, each);
}

/// Destroys a failed actor and tells the keeper, which makes it again or ends its mesh.
void SimulatedProcess::fail_actor(SimulatedActor& actor, const std::string& why) {
  const std::uint32_t row = actor.row;
  simulation_->log(fmt::format("{} has failed: {}", name(row), why));
  destroy(actor);
  SimulatedKeeper* keeper = &simulation_->keeper();
  const std::uint32_t incarnation = keeper->row(row).position.incarnation;
  simulation_->add_event({SimulatedEvent::failed, row, incarnation}, kTestProcess,
                         [keeper, row, incarnation, error = Error(Errc::actor_failed, why)] {
                           keeper->on_failed(row, incarnation, error);
                         });
}

void SimulatedProcess::destroy(SimulatedActor& actor) {
  const ThreadRoleScope role(
      {.may_block = false, .may_wait_for_room = false, .actor = actor.row, .host = this});
  ++destroyed_;
  actor.object.reset();  // destroyed before the context, to which it may refer
  actor.context.reset();
  --destroyed_;
}

void SimulatedProcess::clear(const Error& error) {
  is_cleared_ = true;
  for (auto& [number, port] : ports_) {
    for (auto& [row, actor] : port.actors) {
      for (const SimulatedMessage& each : actor.kept) {
        if (op_of(each.asked.heading) == ActorOp::tell) ++simulation_->counts().lost_tells;
      }
      destroy(actor);
    }
  }
  ports_.clear();
  std::vector<Sent> open = std::exchange(parked_, {});
  for (auto& [number, sent] : std::exchange(calls_, {})) open.push_back(sent);
  for (const Sent& sent : open) {
    sent.call->number = 0;
    finish(*sent.call, {.error = error});
  }
}

}  // namespace weft
