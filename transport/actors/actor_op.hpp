#pragma once
/// ActorOp: the kinds of messages between the processes of an actor system.

#include <cstdint>

namespace weft {

/// The kind of a message, in the low byte of LaneHeading::kind. The bits above it are the index of
/// the endpoint. LaneHeading::target is an ActorNumber, unless a comment here says otherwise.
enum class ActorOp : std::uint8_t {
  call = 1,    ///< to an actor's port: a call's arguments
  tell = 2,    ///< to an actor's port: the arguments of a call without an answer
  answer = 3,  ///< to the caller's port 0: the value of a call
  error = 4,   ///< to the caller's port 0: the Error of a call
  make = 5,    ///< to the port for a new actor, as a call: the actor's MakeOrder
  end = 6,     ///< to an actor's port, as a call: destroy the actor
  /// To the keeper's port 0: the process has made its memory. The process is worker `target` of the
  /// job whose job_key() is `call`, or no worker if `call` is 0.
  joined = 7,
  /// To the keeper's port 0: the Error with which actor `target`, incarnation `call`, has failed.
  failed = 8,
  /// To a process's port 0: its actors have ended. To the keeper's port 0: the process leaves.
  leave = 9,
  run = 10,  ///< to port 0 of a job's worker: start a thread for the actors of port `target`
};

constexpr ActorOp op_of_kind(std::uint32_t kind) { return static_cast<ActorOp>(kind & 0xffU); }
constexpr std::uint32_t endpoint_of_kind(std::uint32_t kind) { return kind >> 8U; }

}  // namespace weft
