#pragma once
/// WorkerGroup: the actors of the job's members.

#include <optional>

#include "actors/link/messages.hpp"
#include "actors/supervision/members.hpp"

namespace weft {

/// Used by the trainer's actor.
class WorkerGroup {
 public:
  void add(int worker, const WorkerActor& actor) { members_.add(worker, actor); }
  bool has(const caf::strong_actor_ptr& sender) const;
  /// The actor has ended. Returns its worker; nothing if it is no member any more.
  std::optional<int> remove(const caf::actor_addr& actor);
  /// Sends the action as a message to the members that it is for.
  void tell(const Action& action);

 private:
  Members<WorkerActor> members_;
};

}  // namespace weft
