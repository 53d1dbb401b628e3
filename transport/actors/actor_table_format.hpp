#pragma once
/// Format of the table of an actor system's meshes and actors, version 2 (native byte order):
///
///   "weft-<system>-actors" = ActorTableHead MeshTableRow{kMeshCountMax} ActorTableRow{kActorCountMax}
///
/// The rows are sparse: a page has memory once a mesh needs it. The keeper's process holds the life
/// lock of byte 0 as long as the system exists. A change of this needs a new version.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/lanes/lane_ids.hpp"

namespace weft {

inline constexpr std::uint64_t kActorTableMagic = 0x3172'6f74'6361'6677;  // "wfactor1"
inline constexpr std::uint32_t kActorTableVersion = 2;
inline constexpr std::uint32_t kActorCountMax = 65'535;
inline constexpr std::uint32_t kMeshCountMax = 1024;
inline constexpr std::size_t kActorNameMax = 63;
inline constexpr std::size_t kCauseBytesMax = 2047;
inline constexpr std::size_t kEndpointNamesBytes = 1936;
/// The byte of the segment that the keeper's process locks.
inline constexpr std::uint32_t kActorTableLifeByte = 0;

enum class ActorPhase : std::uint8_t {
  none = 0,
  starting = 1,  ///< it is being made, for the first time or again; its messages wait
  alive = 2,
  ended = 3,  ///< or about to end: its stop is requested
};

/// The phase and the place of an actor. They are one word, so that a reader never combines the
/// phase of one incarnation with the process of another.
struct ActorPosition {
  ActorPhase phase = ActorPhase::none;
  std::uint32_t port = 0;         ///< of its process
  std::uint32_t incarnation = 0;  ///< of the actor; below 2^17
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

/// The kind of function of an actor that its thread runs.
enum class ActorFunctionKind : std::uint8_t { none = 0, call = 1, tell = 2, work = 3, make = 4 };

/// A function of an actor, and the process whose message it handles.
struct ActorFunction {
  ActorFunctionKind kind = ActorFunctionKind::none;
  std::uint32_t caller = 0;    ///< slot of the process; of `call` and `tell`
  std::uint32_t endpoint = 0;  ///< of `call` and `tell`; below 2^24

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

/// The call for whose answer an actor waits. Word 0: it waits for none.
struct AwaitedCall {
  static constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << 35U) - 1;

  std::uint32_t row = 0;       ///< the actor that has to answer
  std::uint32_t endpoint = 0;  ///< below 4096
  /// The low 35 bits of the call's number; 0: it isn't sent, or the wait has a limit of its own.
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

struct ActorTableHead {
  std::uint64_t magic;  ///< written last
  std::uint32_t version;
  std::atomic<std::uint32_t> mesh_count;
  std::atomic<std::uint32_t> row_count;
  std::atomic<std::uint32_t> changes;    ///< how often a position has changed
  std::atomic<std::uint32_t> processes;  ///< that run
  std::uint32_t reserved;
  std::int64_t started_unix_ns;
  char name[kActorNameMax + 1];  ///< of the system
  // All processes of the system count the following up.
  std::atomic<std::uint64_t> copied_tensors;  ///< tensors of messages that weren't in blocks
  std::atomic<std::uint64_t> lost_tells;      ///< messages that were told, but never run
  std::byte reserved2[136];
};
static_assert(sizeof(ActorTableHead) == 256);

/// The keeper writes it. The texts and numbers that aren't atomic are written before mesh_count,
/// and `cause` before is_ended and the actors' phase `ended`.
struct MeshTableRow {
  std::atomic<std::uint32_t> is_ended;
  std::uint32_t first_row;
  std::uint32_t count;
  std::uint32_t endpoint_count;
  char name[kActorNameMax + 1];
  char type[kActorNameMax + 1];
  std::atomic<std::uint32_t> cause_code;  ///< an Errc; 0: none
  char cause[kCauseBytesMax + 1];
  std::atomic<std::uint32_t> restarts;  ///< made so far
  std::int32_t max_restarts;            ///< -1: no limit
  std::uint8_t restart;                 ///< an ActorRestart
  std::uint8_t then;                    ///< an ActorGivesUp
  std::uint8_t own_thread;
  std::uint8_t reserved;
  /// The names of the endpoints in their order, a null character behind each. Only as many as fit.
  char endpoints[kEndpointNamesBytes];
};
static_assert(sizeof(MeshTableRow) == 4144);

/// The keeper writes the first line, and the actor's process the rest.
struct alignas(64) ActorTableRow {
  std::atomic<std::uint64_t> position;  ///< an ActorPosition
  std::uint32_t mesh;
  std::uint32_t index;
  /// When the function that runs began, by the steady clock; 0: none runs. Written after the next
  /// two fields, which are those of the function that ran last if none runs.
  std::atomic<std::uint64_t> since_ns;
  std::atomic<std::uint64_t> function;  ///< an ActorFunction
  std::atomic<std::uint64_t> call;      ///< the number that the caller gave the call; 0: none
  std::atomic<std::uint64_t> awaited;   ///< an AwaitedCall
  std::atomic<std::uint64_t> begun;     ///< functions so far
  std::atomic<std::int32_t> tid;        ///< of the thread that runs the actor; 0: unknown
  std::uint32_t reserved;
};
static_assert(sizeof(ActorTableRow) == 64);

constexpr std::size_t mesh_row_offset(std::uint32_t mesh) {
  return sizeof(ActorTableHead) + mesh * sizeof(MeshTableRow);
}
constexpr std::size_t actor_row_offset(std::uint32_t row) {
  return (mesh_row_offset(kMeshCountMax) + 63) / 64 * 64 + row * sizeof(ActorTableRow);
}
inline constexpr std::size_t kActorTableBytes = actor_row_offset(kActorCountMax);

inline std::string actor_table_name(std::string_view system) {
  return "weft-" + std::string(system) + "-actors";
}

}  // namespace weft
