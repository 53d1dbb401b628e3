#pragma once
/// The words of the table of actors that combine several values. A reader of such a word never sees
/// values of different moments.

#include <cstdint>

#include "transport/lanes/lane_ids.hpp"

namespace weft {

enum class ActorPhase : std::uint8_t {
  none = 0,
  starting = 1,  ///< the actor is being made, for the first time or again; its messages wait
  alive = 2,
  ended = 3,  ///< the actor has ended, or is about to: its stop is requested
};

/// The phase and the place of an actor in one word, so that a reader never combines the phase of
/// one incarnation with the process of another.
struct ActorPosition {
  ActorPhase phase = ActorPhase::none;
  std::uint32_t port = 0;         ///< the port of the actor's process
  std::uint32_t incarnation = 0;  ///< the actor's incarnation; below 2^17
  PeerId process{};

  static ActorPosition of(std::uint64_t word) noexcept {
    return {.phase = static_cast<ActorPhase>(word & 7U),
            .port = static_cast<std::uint32_t>(word >> 3U & 63U),
            .incarnation = static_cast<std::uint32_t>(word >> 17U & 0x1'ffffU),
            .process = {.slot = static_cast<std::uint32_t>(word >> 9U & 255U),
                        .incarnation = static_cast<std::uint32_t>(word >> 34U)}};
  }
  std::uint64_t word() const noexcept {
    return static_cast<std::uint64_t>(phase) | std::uint64_t{port} << 3U |
           std::uint64_t{process.slot} << 9U | std::uint64_t{incarnation & 0x1'ffffU} << 17U |
           std::uint64_t{process.incarnation} << 34U;
  }
  friend bool operator==(const ActorPosition&, const ActorPosition&) = default;
};

/// Identifies an actor of a system, even among actors that have had its row before. The low 16 bits
/// are the row. The others are the row's turn: how many meshes have had the row before, modulo
/// 65,536.
using ActorNumber = std::uint32_t;
constexpr std::uint32_t row_of(ActorNumber actor) { return actor & 0xffffU; }
constexpr std::uint32_t turn_of(ActorNumber actor) { return actor >> 16U; }
constexpr ActorNumber actor_number(std::uint32_t row, std::uint32_t turn) {
  return row | turn << 16U;
}

/// The kind of function that an actor's thread runs.
enum class ActorFunctionKind : std::uint8_t { none = 0, call = 1, tell = 2, work = 3, make = 4 };

/// A function of an actor, and the process whose message the function handles.
struct ActorFunction {
  ActorFunctionKind kind = ActorFunctionKind::none;
  std::uint32_t caller = 0;    ///< slot of the calling process; for `call` and `tell`
  std::uint32_t endpoint = 0;  ///< for `call` and `tell`; below 2^24

  static ActorFunction of(std::uint64_t word) noexcept {
    return {.kind = static_cast<ActorFunctionKind>(word & 0xffU),
            .caller = static_cast<std::uint32_t>(word >> 8U & 0xffU),
            .endpoint = static_cast<std::uint32_t>(word >> 16U & 0xff'ffffU)};
  }
  std::uint64_t word() const noexcept {
    return static_cast<std::uint64_t>(kind) | std::uint64_t{caller} << 8U |
           std::uint64_t{endpoint} << 16U;
  }
};

}  // namespace weft
