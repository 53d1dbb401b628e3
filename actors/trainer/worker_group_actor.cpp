#include "actors/trainer/worker_group_actor.hpp"

#include <caf/all.hpp>

namespace weft {

namespace {

/// Sends the message that the action needs, if any. Before that, calls `note` with its name.
template <typename Note>
void send(const WorkerActor& worker, const Action& action, const Note& note) {
  const auto to = [&](auto name, auto... content) {
    note(to_string(name));
    post(worker, name, content...);
  };
  std::visit(
      Overloaded{
          [&](const Start& start) { to(start_a_v, start); },
          [&](const action::Asked& asked) { to(asked_a_v, asked.sequence, asked.run); },
          [&](const action::Admit& admit) {
            to(admit_a_v, static_cast<std::uint32_t>(admit.programs));
          },
          [&](const action::Grant& grant) { to(grant_a_v, grant.steps); },
          [&](const action::Pause&) { to(pause_a_v); },
          [&](const action::EndAt& end) { to(end_at_a_v, end.step); },
          [&](const action::PeerEnded& ended) {
            to(peer_ended_a_v, std::int32_t{ended.worker}, ended.runs, ended.last);
          },
          [&](const action::Unwind& over) { to(unwind_a_v, over.why); },
          [&](const action::Cancel& cancel) { to(cancel_a_v, cancel.why); },
          [&](const action::Stop&) { to(stop_a_v); },
          [&](const action::DropParts& parts) { to(drop_parts_a_v, parts.generation, parts.save); },
          [&](const action::TellSaved& saved) { to(saved_a_v, saved.ended); },
          [&](const action::JoinParts& parts) { to(join_parts_a_v, parts.generation, parts.save); },
          [](const auto&) {},  // the others aren't for workers
      },
      action);
}

}  // namespace

std::optional<int> WorkerGroup::remove(const caf::actor_addr& actor) {
  return members_.remove(actor);
}

void WorkerGroup::drop(int worker, const std::string& why) {
  members_.each([&](int member, const WorkerActor& actor) {
    if (member == worker) post(actor, cancel_a_v, why);
  });
  members_.remove_worker(worker);
}

bool WorkerGroup::has(const caf::strong_actor_ptr& sender) const {
  return sender != nullptr && members_.has(caf::actor_cast<caf::actor_addr>(sender));
}

void WorkerGroup::note(int worker, const std::string& name) {
  events_.put(EventKind::message_out,
              {.number = ++counts_[worker].sent, .peer = worker, .text = events_.intern(name)});
}

void WorkerGroup::tell(const Action& action) {
  members_.tell(action, [&](int worker, const WorkerActor& actor) {
    weft::send(actor, action, [&](const std::string& name) { note(worker, name); });
  });
}

template <typename Name, typename... Content>
void WorkerGroup::send(int but, Name name, const Content&... content) {
  members_.each([&](int worker, const WorkerActor& actor) {
    if (worker == but) return;
    note(worker, to_string(name));
    post(actor, name, content...);
  });
}

void WorkerGroup::tell(const WireAddresses& addresses) { send(-1, wires_a_v, addresses); }
void WorkerGroup::hold() { send(-1, hold_a_v); }
void WorkerGroup::let_go(const CommandList& commands) { send(-1, let_go_a_v, commands); }
void WorkerGroup::read(const ReadElsewhere& read) { send(read.worker, read_a_v, read); }

MessageOrigin WorkerGroup::origin(const caf::strong_actor_ptr& sender) {
  if (sender == nullptr) return {};
  const auto worker = members_.find(caf::actor_cast<caf::actor_addr>(sender));
  if (!worker) return {};
  return {.peer = *worker, .sequence = ++counts_[*worker].received};
}

}  // namespace weft
