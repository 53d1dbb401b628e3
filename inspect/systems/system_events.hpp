#pragma once
/// SystemEvents: the calls that the processes of an actor system have recorded.

#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "inspect/systems/system_snapshot.hpp"
#include "transport/actors/call_ring.hpp"

namespace weft {

/// Identifies a message among all messages of a system.
struct MessageId {
  std::uint32_t slot = 0;         ///< slot of the sending process
  std::uint32_t incarnation = 0;  ///< low 16 bits of the sender's incarnation
  bool is_call = false;           ///< a call; false: a tell, which gets no answer
  std::uint64_t number = 0;
  friend auto operator<=>(const MessageId&, const MessageId&) = default;
};

struct SystemEvent {
  std::uint32_t slot = 0;  ///< slot of the process that wrote the event
  CallEvent event{};
  std::int64_t at_ns = 0;     ///< CLOCK_MONOTONIC
  std::int64_t begin_ns = 0;  ///< for `ran`: when the function began, at most at_ns

  /// Returns the id of the event's message. Only events of calls and tells have a message.
  MessageId message() const;
};

/// A system and its last events. Each thread that runs actors keeps 2,046 events, and all other
/// threads of a process together keep 2,046.
struct SystemEvents {
  SystemSnapshot system{};            ///< read after the events
  std::vector<SystemEvent> events{};  ///< in order of time
  std::set<MessageId> open{};         ///< messages that nobody has begun
  std::set<MessageId> awaited{};      ///< calls in `events` for whose answer the caller waits
  std::int64_t unix_minus_monotonic_ns = 0;
};

/// Reads a system as read_actor_system() does. Leaves out events that can't be true.
SystemEvents read_system_events(const std::string& id);

}  // namespace weft
