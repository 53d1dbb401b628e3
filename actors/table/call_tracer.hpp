#pragma once
/// CallTracer: records the calls of one process of an actor system, and the functions that it runs.

#include <atomic>
#include <cstdint>
#include <optional>

#include "actors/table/actor_protocol.hpp"
#include "actors/table/actor_table.hpp"
#include "transport/actors/call_ring.hpp"

namespace weft {

/// Writes to the calling thread's ring in the table of actors. Thread-safe.
class CallTracer {
 public:
  /// `table` must outlive this object. Records nothing if WEFT_TRACE is off, or if there is no
  /// memory. Throws invalid_argument for an invalid WEFT_TRACE.
  CallTracer(ActorTable& table, PeerId self);

  /// Gives the calling thread the ring of a port, from which it takes messages until it ends.
  void begin_thread(std::uint32_t port);
  const CallRingWriter& writer() const;

  /// Records that a call of this number is about to be sent. `from` is a result of caller().
  void called(std::uint32_t row, std::uint32_t endpoint, std::uint64_t number,
              std::uint32_t from) const;
  /// Records that a message is about to be told, and returns its number.
  std::uint64_t told(std::uint32_t row, std::uint32_t endpoint, std::uint32_t from);
  /// Records that a call has ended. `error` is an Errc, 0: it was answered with a value.
  void answered(std::uint32_t row, std::uint32_t endpoint, std::uint64_t number, std::uint32_t from,
                std::uint8_t error) const;
  /// Records that a Reply is about to be sent.
  void replied(const Asked& asked) const;
  /// Returns the row of the actor that calls, plus 1; 0: no actor.
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
