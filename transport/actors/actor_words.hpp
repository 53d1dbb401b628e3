#pragma once
/// The words of the table of actors that combine several values. A reader of such a word never sees
/// values of different moments.

#include <cstdint>
#include <optional>

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

/// The call for whose answer an actor waits. Word 0: the actor waits for no answer. See
/// AwaitedPipe.
struct AwaitedCall {
  static constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << 35U) - 1;
  std::uint32_t row = 0;       ///< row of the actor that has to answer; below 2^16
  std::uint32_t endpoint = 0;  ///< below 4094; see AwaitedPipe
  /// The low 35 bits of the call's number. 0: the call isn't sent yet, or the wait has its own time
  /// limit.
  std::uint64_t number = 0;

  static AwaitedCall of(std::uint64_t word) noexcept {
    return {.row = static_cast<std::uint32_t>(word >> 1U & 0xffffU),
            .endpoint = static_cast<std::uint32_t>(word >> 17U & 0xfffU),
            .number = word >> 29U};
  }
  std::uint64_t word() const noexcept {
    return 1U | std::uint64_t{row} << 1U | std::uint64_t{endpoint & 0xfffU} << 17U |
           (number & kNumberMask) << 29U;
  }
};

/// The user of one end of a pipe: an actor, or a thread that runs no actor.
struct PipeUser {
  static constexpr std::uint32_t kNoActor = 0xffff;
  bool is_known = false;
  std::uint32_t slot = 0;  ///< slot of the user's process
  std::uint32_t row = kNoActor;

  static PipeUser of(std::uint32_t word) noexcept {
    return {.is_known = word >> 31U != 0, .slot = word >> 16U & 0xffU, .row = word & 0xffffU};
  }
  std::uint32_t word() const noexcept {
    return std::uint32_t{is_known} << 31U | (slot & 0xffU) << 16U | (row & 0xffffU);
  }
};

/// A wait at one end of a pipe. It is stored in the same word as an AwaitedCall, with 4094 or 4095
/// as the endpoint number, which no endpoint has.
struct AwaitedPipe {
  bool writes = false;        ///< true: waits for room; false: for a value
  PipeUser other{};           ///< the user of the other end
  std::int64_t since_ns = 0;  ///< when the wait began, by CLOCK_MONOTONIC

  /// Returns the wait that a word stores, if any. `now_ns` is at most 13 days later than since_ns.
  static std::optional<AwaitedPipe> of(std::uint64_t word, std::int64_t now_ns) noexcept {
    const AwaitedCall call = AwaitedCall::of(word);
    if (word == 0 || (call.endpoint != kWrites && call.endpoint != kReads)) return std::nullopt;
    const std::uint64_t passed = (units(now_ns) - (call.number >> 9U)) & kUnitsMask;
    return AwaitedPipe{.writes = call.endpoint == kWrites,
                       .other = {.is_known = (call.number >> 8U & 1U) != 0,
                                 .slot = static_cast<std::uint32_t>(call.number & 0xffU),
                                 .row = call.row},
                       .since_ns = now_ns - static_cast<std::int64_t>(passed << kUnitBits)};
  }
  std::uint64_t word() const noexcept {
    return AwaitedCall{.row = other.row,
                       .endpoint = writes ? kWrites : kReads,
                       .number = (units(since_ns) & kUnitsMask) << 9U |
                                 std::uint64_t{other.is_known} << 8U | other.slot}
        .word();
  }

 private:
  static constexpr std::uint32_t kWrites = 0xfff;
  static constexpr std::uint32_t kReads = 0xffe;
  static constexpr std::uint64_t kUnitBits = 24;  ///< a unit is 17 ms
  static constexpr std::uint64_t kUnitsMask = (std::uint64_t{1} << 26U) - 1;
  static std::uint64_t units(std::int64_t ns) noexcept {
    return static_cast<std::uint64_t>(ns) >> kUnitBits;
  }
};

}  // namespace weft
