#pragma once
/// Reads the calls that the processes of an actor system have recorded.

#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "inspect/systems/system_snapshot.hpp"
#include "transport/actors/call_ring.hpp"

namespace weft {

/// Identifies a message among those of a system.
struct MessageId {
  std::uint32_t slot = 0;         ///< of the process that sent it
  std::uint32_t incarnation = 0;  ///< its low 16 bits
  bool is_call = false;           ///< false: it was told
  std::uint64_t number = 0;
  friend auto operator<=>(const MessageId&, const MessageId&) = default;
};

struct SystemEvent {
  std::uint32_t slot = 0;  ///< of the process that has written it
  CallEvent event{};
  std::int64_t at_ns = 0;     ///< CLOCK_MONOTONIC
  std::int64_t begin_ns = 0;  ///< of `ran`: at most at_ns

  /// Returns the message of the event. Only calls and tells have one.
  MessageId message() const;
};

/// A system and its last events: 2,046 of each thread that runs actors, and 2,046 of all other
/// threads of a process together.
struct SystemEvents {
  SystemSnapshot system{};            ///< was read after the events
  std::vector<SystemEvent> events{};  ///< by time
  std::set<MessageId> open{};         ///< messages that nobody has begun
  std::set<MessageId> awaited{};      ///< calls in `events` whose callers wait for the answer
  std::int64_t unix_minus_monotonic_ns = 0;
};

/// Reads a system as read_actor_system() does. Events that can't be true are left out.
SystemEvents read_system_events(const std::string& id);

}  // namespace weft
