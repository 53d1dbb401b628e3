#pragma once
/// The messages between the processes of an actor system, as lanes carry them.

#include <cstddef>
#include <cstdint>
#include <string>

#include <weft/message/bytes.hpp>
#include <weft/tensor/error.hpp>

#include "transport/actors/actor_op.hpp"
#include "transport/lanes/lane_message.hpp"

namespace weft {

/// The keeper is the process that has the ActorSystem: slot 0.
inline constexpr std::uint32_t kKeeperSlot = 0;
/// Each process takes answers and news at this port. Actors have the ports behind it.
inline constexpr std::uint32_t kReplyPort = 0;

inline LaneHeading heading_of(ActorOp op, std::uint64_t call, std::uint32_t row,
                              std::uint32_t endpoint = 0) {
  return {.call = call, .target = row, .kind = static_cast<std::uint32_t>(op) | endpoint << 8U};
}
inline ActorOp op_of(const LaneHeading& heading) { return op_of_kind(heading.kind); }
inline std::uint32_t endpoint_of(const LaneHeading& heading) {
  return endpoint_of_kind(heading.kind);
}

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
  std::string job{};     ///< the id of SpawnOptions::lives_with; "": none
};

}  // namespace weft
