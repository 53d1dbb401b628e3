#pragma once
/// CallTracer: records the calls of one process of an actor system, and the functions that it runs.

#include <atomic>
#include <cstdint>
#include <optional>

#include "actors/table/actor_protocol.hpp"
#include "actors/table/actor_table.hpp"
#include "transport/actors/call_ring.hpp"

namespace weft {

/// Writes to the calling thread's ring in the table of actors, or to the process's shared ring.
/// Thread-safe.
class CallTracer {
 public:
  /// `table` must outlive this object. If WEFT_TRACE is off or there is no memory, nothing is
  /// recorded. Throws invalid_argument for an invalid WEFT_TRACE.
  CallTracer(ActorTable& table, PeerId self);

  /// Gives the calling thread the ring of the port from which it takes messages, until the thread
  /// ends.
  void begin_thread(std::uint32_t port);
  const CallRingWriter& writer() const;

  /// Records that call `number` is about to be sent. `from` is a result of caller().
  void called(std::uint32_t row, std::uint32_t endpoint, std::uint64_t number,
              std::uint32_t from) const;
  /// Records that a message without an answer is about to be sent. Returns the message's number.
  std::uint64_t told(std::uint32_t row, std::uint32_t endpoint, std::uint32_t from);
  /// Records that a call has ended. `error` is an Errc; 0: the call was answered with a value.
  void answered(std::uint32_t row, std::uint32_t endpoint, std::uint64_t number, std::uint32_t from,
                std::uint8_t error) const;
  /// Records that a Reply is about to send its answer.
  void replied(const Asked& asked) const;
  /// Returns the row + 1 of the actor that calls; 0: no actor.
  static std::uint32_t caller(const std::optional<ActorNumber>& actor);

 private:
  CallRingWriter open(std::uint32_t port) const;
  void put_sent(ActorFunctionKind function, std::uint32_t row, std::uint32_t endpoint,
                std::uint64_t number, std::uint32_t from) const;

  ActorTable* table_;
  PeerId self_;
  bool is_on_;
  std::atomic<std::uint64_t> tells_{0};
  CallRingWriter shared_;
};

}  // namespace weft
