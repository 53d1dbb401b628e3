#pragma once
/// The messages between the processes of an actor system, as lanes carry them.

#include <cstddef>
#include <cstdint>
#include <string>

#include <weft/message/bytes.hpp>
#include <weft/tensor/error.hpp>

#include "transport/lanes/lane_message.hpp"

namespace weft {

/// The keeper is the process that has the ActorSystem: slot 0.
inline constexpr std::uint32_t kKeeperSlot = 0;
/// Each process takes answers and news at this port. Actors have the ports behind it.
inline constexpr std::uint32_t kReplyPort = 0;

/// The kind of a message: the low byte of LaneHeading::kind. The index of the endpoint is in the
/// bits above it. LaneHeading::target is a row of the ActorTable.
enum class ActorOp : std::uint8_t {
  call = 1,    ///< to an actor's port; arguments
  tell = 2,    ///< to an actor's port; arguments; no answer
  answer = 3,  ///< to the caller's port 0; the value
  error = 4,   ///< to the caller's port 0; an Error
  make = 5,    ///< a call: to the port of an actor that shall be made; a MakeOrder
  end = 6,     ///< a call: to the port of an actor that shall be destroyed
  joined = 7,  ///< to the keeper's port 0: the process has its memory
  failed = 8,  ///< to the keeper's port 0: actor `target`, incarnation `call`, has failed; an Error
  leave = 9,   ///< to port 0 of a process that the keeper has started: its actors have ended
};

inline LaneHeading heading_of(ActorOp op, std::uint64_t call, std::uint32_t row,
                              std::uint32_t endpoint = 0) {
  return {.call = call, .target = row, .kind = static_cast<std::uint32_t>(op) | endpoint << 8U};
}
inline ActorOp op_of(const LaneHeading& heading) {
  return static_cast<ActorOp>(heading.kind & 0xffU);
}
inline std::uint32_t endpoint_of(const LaneHeading& heading) { return heading.kind >> 8U; }

/// The body of `error` and `failed`. The text is cut to 16 KiB. get_error() throws corrupt.
void put_error(MessageWriter& out, const Error& error);
Error get_error(MessageReader& in);

/// Identifies the message that is answered.
struct Asked {
  PeerId by{};
  LaneHeading heading{};
};

/// The body of `make`.
struct MakeOrder {
  std::string type{};
  std::uint64_t seed = 0;
  bool own_thread = false;
  std::string config{};  ///< JSON
};

}  // namespace weft
