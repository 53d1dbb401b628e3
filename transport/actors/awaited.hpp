#pragma once
/// Awaited: the word of the table of actors that shows for what an actor waits. It stores an
/// AwaitedCall, an AwaitedPipe or an AwaitedJob; 0: the actor waits for none of them. The last two
/// have endpoint numbers from 4092 on, which no endpoint has.

#include <cstdint>
#include <optional>

namespace weft {

/// The call for whose answer an actor waits.
struct AwaitedCall {
  static constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << 35U) - 1;
  std::uint32_t row = 0;       ///< row of the actor that has to answer; below 2^16
  std::uint32_t endpoint = 0;  ///< below 4092
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

/// When a wait began, in the 35 bits of AwaitedCall::number: in the upper 26 bits the time in units
/// of 17 ms, and in the lower 9 bits another number.
struct WaitBegin {
  std::int64_t since_ns = 0;  ///< by CLOCK_MONOTONIC
  std::uint32_t other = 0;    ///< below 512

  /// `now_ns` is at most 13 days later than since_ns.
  static WaitBegin of(std::uint64_t number, std::int64_t now_ns) noexcept {
    const std::uint64_t passed = (units(now_ns) - (number >> kOtherBits)) & kUnitsMask;
    return {.since_ns = now_ns - static_cast<std::int64_t>(passed << kUnitBits),
            .other = static_cast<std::uint32_t>(number & ((1U << kOtherBits) - 1))};
  }
  std::uint64_t number() const noexcept {
    return (units(since_ns) & kUnitsMask) << kOtherBits | other;
  }

 private:
  static constexpr std::uint64_t kOtherBits = 9;
  static constexpr std::uint64_t kUnitBits = 24;
  static constexpr std::uint64_t kUnitsMask = (std::uint64_t{1} << 26U) - 1;
  static std::uint64_t units(std::int64_t ns) noexcept {
    return static_cast<std::uint64_t>(ns) >> kUnitBits;
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

/// A wait at one end of a pipe.
struct AwaitedPipe {
  bool writes = false;        ///< true: waits for room; false: for a value
  PipeUser other{};           ///< the user of the other end
  std::int64_t since_ns = 0;  ///< when the wait began, by CLOCK_MONOTONIC

  /// Returns the wait that a word stores, if any. See WaitBegin for `now_ns`.
  static std::optional<AwaitedPipe> of(std::uint64_t word, std::int64_t now_ns) noexcept {
    const AwaitedCall call = AwaitedCall::of(word);
    if (word == 0 || (call.endpoint != kWrites && call.endpoint != kReads)) return std::nullopt;
    const WaitBegin begin = WaitBegin::of(call.number, now_ns);
    return AwaitedPipe{
        .writes = call.endpoint == kWrites,
        .other = {.is_known = begin.other >> 8U != 0, .slot = begin.other & 0xffU, .row = call.row},
        .since_ns = begin.since_ns};
  }
  std::uint64_t word() const noexcept {
    const std::uint32_t user = std::uint32_t{other.is_known} << 8U | (other.slot & 0xffU);
    return AwaitedCall{.row = other.row,
                       .endpoint = writes ? kWrites : kReads,
                       .number = WaitBegin{.since_ns = since_ns, .other = user}.number()}
        .word();
  }

 private:
  static constexpr std::uint32_t kWrites = 0xfff;
  static constexpr std::uint32_t kReads = 0xffe;
};

/// A wait for what a job's loop does.
struct AwaitedJob {
  static constexpr std::uint32_t kUnnamed = 0xffff;
  bool writes = false;  ///< true: for room for rows (ExperienceWriter); false: for a version
  /// The place of the JobSourceRow among those of the actor's process; kUnnamed: there was no room.
  std::uint32_t source = kUnnamed;
  std::int64_t since_ns = 0;  ///< when the wait began, by CLOCK_MONOTONIC

  /// Returns the wait that a word stores, if any. See WaitBegin for `now_ns`.
  static std::optional<AwaitedJob> of(std::uint64_t word, std::int64_t now_ns) noexcept {
    const AwaitedCall call = AwaitedCall::of(word);
    if (word == 0 || (call.endpoint != kRoom && call.endpoint != kVersion)) return std::nullopt;
    return AwaitedJob{.writes = call.endpoint == kRoom,
                      .source = call.row,
                      .since_ns = WaitBegin::of(call.number, now_ns).since_ns};
  }
  std::uint64_t word() const noexcept {
    return AwaitedCall{.row = source,
                       .endpoint = writes ? kRoom : kVersion,
                       .number = WaitBegin{.since_ns = since_ns}.number()}
        .word();
  }

 private:
  static constexpr std::uint32_t kRoom = 0xffd;
  static constexpr std::uint32_t kVersion = 0xffc;
};

}  // namespace weft
