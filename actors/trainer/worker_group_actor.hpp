#pragma once
/// WorkerGroup: sends messages to the actors of the workers that have joined the job.

#include <cstdint>
#include <map>
#include <optional>

#include "actors/link/messages.hpp"
#include "actors/link/watched_actor.hpp"
#include "actors/supervision/members.hpp"

namespace weft {

/// Only the trainer's actor may use it.
class WorkerGroup {
 public:
  /// From now on, records the messages to the members as events.
  void record_by(const EventWriter& events) { events_ = events; }
  void add(int worker, const WorkerActor& actor) {
    members_.add(worker, actor);
    counts_[worker] = {};
  }
  bool has(const caf::strong_actor_ptr& sender) const;
  /// Removes an actor that has ended. Returns the actor's worker, or nothing if it wasn't a member.
  std::optional<int> remove(const caf::actor_addr& actor);
  /// Forgets the worker, and sends its actor the reason why the job continues without it.
  void drop(int worker, const std::string& why);
  /// Sends the action as a message to the members that it concerns.
  void tell(const Action& action);
  /// Sends the addresses to all members.
  void tell(const WireAddresses& addresses);
  /// Send messages about commands: hold() and let_go() to all members, read() to all except one.
  void hold();
  void let_go(const CommandList& commands);
  void read(const ReadElsewhere& read);
  /// Counts a message of a member, and returns the message's origin.
  MessageOrigin origin(const caf::strong_actor_ptr& sender);

 private:
  template <typename Name, typename... Content>
  void send(int but, Name name, const Content&... content);
  void note(int worker, const std::string& name);

  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  Members<WorkerActor> members_;
  EventWriter events_;
  std::map<int, Counts> counts_;  // by worker: numbers of messages since it joined
};

}  // namespace weft
