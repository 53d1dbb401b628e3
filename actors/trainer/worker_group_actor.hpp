#pragma once
/// WorkerGroup: the workers' actors, as the trainer's sees them.

#include <map>
#include <optional>

#include "actors/link/messages.hpp"
#include "actors/supervision/action.hpp"

namespace weft {

/// Used by the trainer's actor.
class WorkerGroup {
 public:
  /// In the place of the one before, if there is one.
  void add(int rank, const WorkerActor& worker) { workers_.insert_or_assign(rank, worker); }
  bool has(int rank) const { return workers_.contains(rank); }
  bool has(const caf::strong_actor_ptr& actor) const;
  void remove(int rank) { workers_.erase(rank); }
  /// Whose actor it was; nothing for one that has been replaced.
  std::optional<int> remove(const caf::actor_addr& actor);

  /// To all of them, but for what is about one of them, which knows.
  void tell(const Action& action) const;
  void tell(const Start& start) const;

 private:
  std::map<int, WorkerActor> workers_;
};

}  // namespace weft
