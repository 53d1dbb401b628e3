#pragma once
/// Format of the table of an actor system's meshes and actors, version 5 (native byte order):
///
///   "weft-<system>-actors" =
///       ActorTableHead MeshTableRow{kMeshCountMax} ActorTableRow{kActorCountMax}
///       ports{kPeerCountMax} wait{kPeerCountMax} CallRing{kPeerCountMax}{kPortCountMax}
///   ports = u64: bit n says that the process of this slot has, or had, the ring of port n
///   wait  = u64: the AwaitedPipe of a thread of this process that runs no actor; 0: none waits
/// The rows and rings are sparse: a page has memory once a mesh or a thread needs it. The keeper's
/// process holds the life lock of byte 0 as long as the system exists. A change of this needs a new
/// version.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/actors/actor_words.hpp"
#include "transport/actors/call_ring.hpp"
#include "transport/blackbox/box_format.hpp"
#include "transport/lanes/lane_format.hpp"

namespace weft {

inline constexpr std::uint64_t kActorTableMagic = 0x3172'6f74'6361'6677;  // "wfactor1"
inline constexpr std::uint32_t kActorTableVersion = 5;
inline constexpr std::uint32_t kActorCountMax = 65'535;
inline constexpr std::uint32_t kMeshCountMax = 1024;
inline constexpr std::size_t kActorNameMax = 63;
inline constexpr std::size_t kCauseBytesMax = 2047;
inline constexpr std::size_t kEndpointNamesBytes = 1936;
inline constexpr std::size_t kEndpointSchemasBytes = 4096;
/// The byte of the segment that the keeper's process locks.
inline constexpr std::uint32_t kActorTableLifeByte = 0;

struct ActorTableHead {
  std::uint64_t magic;  ///< written last
  std::uint32_t version;
  std::atomic<std::uint32_t> mesh_count;
  std::atomic<std::uint32_t> row_count;
  std::atomic<std::uint32_t> changes;    ///< how often a position has changed
  std::atomic<std::uint32_t> processes;  ///< that run
  std::uint32_t tick_source;             ///< a TickSource: of the ticks in all rings
  std::int64_t started_unix_ns;
  char name[kActorNameMax + 1];  ///< of the system
  // All processes of the system count the following up.
  std::atomic<std::uint64_t> copied_tensors;  ///< tensors of messages that weren't in blocks
  std::atomic<std::uint64_t> lost_tells;      ///< messages that were told, but never run
  // Options of the system, for the processes that join it.
  std::uint64_t heap_bytes;  ///< of each process
  double call_timeout_s;
  box_format::ClockPairV2 start;  ///< the clocks when the system was made
  std::uint64_t key;      ///< by which references to its actors are known on all hosts; never 0
  std::uint32_t threads;  ///< of each process, for actors that share them
  std::uint32_t host;     ///< number of this host; on another than 0 the table is a copy
  std::uint32_t host_count;
  std::byte reserved[76];
};
static_assert(sizeof(ActorTableHead) == 256);

/// The keeper writes it. The texts and numbers that aren't atomic are written before mesh_count,
/// or before is_ended becomes 0 in a row that is used again, and `cause` once, before is_ended and
/// the phase `ended` of actors that have failed. A mesh that has ended leaves its row and the rows
/// of its actors to a later one of at most as many actors; `turn` is counted up before they are
/// written again.
struct MeshTableRow {
  std::atomic<std::uint32_t> is_ended;
  std::atomic<std::uint32_t> turn;  ///< meshes that have had this row before
  std::uint32_t first_row;
  std::uint32_t count;
  std::uint32_t row_count;  ///< rows from first_row on; `count` or more
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
  /// Their schemas, in the same form. Programs of other builds read them.
  char schemas[kEndpointSchemasBytes];
  char job[40];  ///< the id of SpawnOptions::lives_with; "": none
};
static_assert(sizeof(MeshTableRow) == 8288);

/// The keeper writes position, mesh, index and turn, and clears the rest for a new mesh. The
/// actor's process writes the rest.
struct alignas(64) ActorTableRow {
  std::atomic<std::uint64_t> position;  ///< an ActorPosition
  std::uint32_t mesh;
  std::uint32_t index;
  /// When the function that runs began, by the steady clock; 0: none runs. Written after the next
  /// two fields, which are those of the function that ran last if none runs.
  std::atomic<std::uint64_t> since_ns;
  std::atomic<std::uint64_t> function;  ///< an ActorFunction
  std::atomic<std::uint64_t> call;      ///< the number that the caller gave the call; 0: none
  std::atomic<std::uint64_t> awaited;   ///< an AwaitedCall or AwaitedPipe
  std::atomic<std::uint64_t> begun;     ///< functions so far
  std::atomic<std::int32_t> tid;        ///< of the thread that runs the actor; 0: unknown
  std::atomic<std::uint32_t> turn;      ///< of the ActorNumber; the keeper writes it
};
static_assert(sizeof(ActorTableRow) == 64);

constexpr std::size_t mesh_row_offset(std::uint32_t mesh) {
  return sizeof(ActorTableHead) + mesh * sizeof(MeshTableRow);
}
constexpr std::size_t actor_row_offset(std::uint32_t row) {
  return (mesh_row_offset(kMeshCountMax) + 63) / 64 * 64 + row * sizeof(ActorTableRow);
}
constexpr std::size_t ring_ports_offset(std::uint32_t slot) {
  return (actor_row_offset(kActorCountMax) + 4095) / 4096 * 4096 + slot * sizeof(std::uint64_t);
}
constexpr std::size_t pipe_wait_offset(std::uint32_t slot) {
  return ring_ports_offset(kPeerCountMax) + slot * sizeof(std::uint64_t);
}
constexpr std::size_t call_ring_offset(std::uint32_t slot, std::uint32_t port) {
  return pipe_wait_offset(kPeerCountMax) +
         (std::size_t{slot} * kPortCountMax + port) * sizeof(CallRing);
}
static_assert(call_ring_offset(0, 0) % 4096 == 0);
inline constexpr std::size_t kActorTableBytes = call_ring_offset(kPeerCountMax, 0);

inline std::string actor_table_name(std::string_view system) {
  return "weft-" + std::string(system) + "-actors";
}

}  // namespace weft
