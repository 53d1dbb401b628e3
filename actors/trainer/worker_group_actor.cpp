#include "actors/trainer/worker_group_actor.hpp"

#include <algorithm>

#include <caf/all.hpp>

namespace weft {

std::optional<int> WorkerGroup::remove(const caf::actor_addr& actor) {
  const auto found = std::ranges::find_if(workers_, [&](const auto& entry) {
    return caf::actor_cast<caf::actor_addr>(entry.second) == actor;
  });
  if (found == workers_.end()) return {};
  return workers_.extract(found).key();
}

bool WorkerGroup::has(const caf::strong_actor_ptr& actor) const {
  return actor != nullptr && std::ranges::any_of(workers_, [&](const auto& entry) {
           return caf::actor_cast<caf::strong_actor_ptr>(entry.second) == actor;
         });
}

void WorkerGroup::tell(const Start& start) const {
  for (const auto& [rank, worker] : workers_) caf::anon_send(worker, start_a::value, start);
}

void WorkerGroup::tell(const Action& action) const {
  using Kind = Action::Kind;
  for (const auto& [rank, worker] : workers_) {
    switch (action.kind) {
      case Kind::asked:
        if (rank != action.worker) {
          caf::anon_send(worker, asked_a::value, action.sequence, action.number);
        }
        break;
      case Kind::admit:
        caf::anon_send(worker, admit_a::value, static_cast<std::uint32_t>(action.number));
        break;
      case Kind::grant: caf::anon_send(worker, grant_a::value, action.number); break;
      case Kind::pause: caf::anon_send(worker, pause_a::value); break;
      case Kind::end_at: caf::anon_send(worker, end_at_a::value, action.number); break;
      case Kind::loop_ended:
        if (rank != action.worker) {
          caf::anon_send(worker, peer_ended_a::value, std::int32_t{action.worker}, action.number,
                         action.text);
        }
        break;
      case Kind::unwind: caf::anon_send(worker, unwind_a::value, action.text); break;
      case Kind::cancel: caf::anon_send(worker, cancel_a::value, action.text); break;
      case Kind::stop: caf::anon_send(worker, stop_a::value); break;
      case Kind::start:  // has a message of its own
      case Kind::kill:
      case Kind::delay:
      case Kind::restart: break;
    }
  }
}

}  // namespace weft
