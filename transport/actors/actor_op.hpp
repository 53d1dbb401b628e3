#pragma once
/// ActorOp: the kinds of messages between the processes of an actor system.

#include <cstdint>

namespace weft {

/// The kind of a message: the low byte of LaneHeading::kind. The index of the endpoint is in the
/// bits above it. LaneHeading::target is an ActorNumber, unless something else is said here.
enum class ActorOp : std::uint8_t {
  call = 1,    ///< to an actor's port; arguments
  tell = 2,    ///< to an actor's port; arguments; no answer
  answer = 3,  ///< to the caller's port 0; the value
  error = 4,   ///< to the caller's port 0; an Error
  make = 5,    ///< a call: to the port of an actor that shall be made; a MakeOrder
  end = 6,     ///< a call: to the port of an actor that shall be destroyed
  /// To the keeper's port 0: the process has its memory. It is worker `target` of the job whose
  /// job_key() is `call`; 0: it isn't a worker.
  joined = 7,
  failed = 8,  ///< to the keeper's port 0: actor `target`, incarnation `call`, has failed; an Error
  leave = 9,   ///< to port 0 of a process: its actors have ended; to the keeper's: it leaves
  run = 10,    ///< to port 0 of a job's worker: it starts a thread for the actors of port `target`
};

constexpr ActorOp op_of_kind(std::uint32_t kind) { return static_cast<ActorOp>(kind & 0xffU); }
constexpr std::uint32_t endpoint_of_kind(std::uint32_t kind) { return kind >> 8U; }

}  // namespace weft
