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
  const auto all = [this](auto... message) {
    for (const auto& [rank, worker] : workers_) caf::anon_send(worker, message...);
  };
  const auto others = [this](int but, auto... message) {
    for (const auto& [rank, worker] : workers_) {
      if (rank != but) caf::anon_send(worker, message...);
    }
  };
  std::visit(Overloaded{
                 [&](const action::Asked& asked) {
                   others(asked.worker, asked_a::value, asked.sequence, asked.run);
                 },
                 [&](const action::Admit& admit) {
                   all(admit_a::value, static_cast<std::uint32_t>(admit.programs));
                 },
                 [&](const action::Grant& grant) { all(grant_a::value, grant.steps); },
                 [&](const action::Pause&) { all(pause_a::value); },
                 [&](const action::EndAt& end) { all(end_at_a::value, end.step); },
                 [&](const action::PeerEnded& ended) {
                   others(ended.worker, peer_ended_a::value, std::int32_t{ended.worker}, ended.runs,
                          ended.last);
                 },
                 [&](const action::Unwind& over) { all(unwind_a::value, over.why); },
                 [&](const action::Cancel& cancel) { all(cancel_a::value, cancel.why); },
                 [&](const action::Stop&) { all(stop_a::value); },
                 [&](const action::DropParts& parts) {
                   all(drop_parts_a::value, parts.generation, parts.save);
                 },
                 [&](const action::TellSaved& saved) { all(saved_a::value, saved.ended); },
                 [&](const action::JoinParts& parts) {
                   const auto first = workers_.find(0);
                   if (first == workers_.end()) return;
                   caf::anon_send(first->second, join_parts_a::value, parts.generation, parts.save);
                 },
                 [](const auto&) {},  // Start has a message of its own; the rest is not for workers
             },
             action);
}

}  // namespace weft
