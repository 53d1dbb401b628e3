#pragma once
/// WorkerGroup: the actors of the job's members.

#include <cstdint>
#include <map>
#include <optional>

#include "actors/link/messages.hpp"
#include "actors/link/watched_actor.hpp"
#include "actors/supervision/members.hpp"

namespace weft {

/// Used by the trainer's actor.
class WorkerGroup {
 public:
  /// Messages to the members are events from now on.
  void record_by(const EventWriter& events) { events_ = events; }
  void add(int worker, const WorkerActor& actor) {
    members_.add(worker, actor);
    counts_[worker] = {};
  }
  bool has(const caf::strong_actor_ptr& sender) const;
  /// The actor has ended. Returns its worker; nothing if it is no member any more.
  std::optional<int> remove(const caf::actor_addr& actor);
  /// Sends the action as a message to the members that it is for.
  void tell(const Action& action);
  /// Counts a message of a member.
  MessageOrigin origin(const caf::strong_actor_ptr& sender);

 private:
  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  Members<WorkerActor> members_;
  EventWriter events_;
  std::map<int, Counts> counts_;  // of messages, by worker, since it joined
};

}  // namespace weft
