#pragma once
/// Format of the table of an actor system's meshes and actors, version 6 (native byte order):
///
///   "weft-<system>-actors" =
///       ActorTableHead MeshTableRow{kMeshCountMax} ActorTableRow{kActorCountMax}
///       ports{kPeerCountMax} wait{kPeerCountMax} JobSourceRow{kPeerCountMax}{kJobSourceCountMax}
///       CallRing{kPeerCountMax}{kPortCountMax}
///   ports = u64: bit n is set if a process of this slot has, or had, the ring of port n
///   wait  = u64: the AwaitedPipe of a thread of this process that runs no actor; 0: no wait
/// The rows and rings are sparse: a page gets memory when a mesh or a thread needs it. The keeper's
/// process holds the life lock of byte 0 as long as the system exists. A change of the format needs
/// a new version.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/actors/actor_words.hpp"
#include "transport/actors/awaited.hpp"
#include "transport/actors/call_ring.hpp"
#include "transport/blackbox/box_format.hpp"
#include "transport/lanes/lane_format.hpp"

namespace weft {

inline constexpr std::uint64_t kActorTableMagic = 0x3172'6f74'6361'6677;  // "wfactor1"
inline constexpr std::uint32_t kActorTableVersion = 6;
inline constexpr std::uint32_t kActorCountMax = 65'535;
inline constexpr std::uint32_t kMeshCountMax = 1024;
inline constexpr std::uint32_t kJobSourceCountMax = 32;
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
  std::atomic<std::uint32_t> processes;  ///< processes that run
  std::uint32_t tick_source;             ///< the TickSource of the ticks in all rings
  std::int64_t started_unix_ns;
  char name[kActorNameMax + 1];  ///< the system's name
  // All processes of the system increment the next two words.
  std::atomic<std::uint64_t> copied_tensors;  ///< tensors of messages that weren't in blocks
  std::atomic<std::uint64_t> lost_tells;      ///< tells that no actor ever handled
  // Options of the system, for the processes that join it.
  std::uint64_t heap_bytes;  ///< the heap size of each process
  double call_timeout_s;
  box_format::ClockPairV2 start;  ///< the clocks when the system was made
  std::uint64_t key;      ///< identifies references to this system's actors on all hosts; never 0
  std::uint32_t threads;  ///< threads of each process for actors that share threads
  std::uint32_t host;     ///< the host's number; except on host 0 the table is a copy
  std::uint32_t host_count;
  std::byte reserved[76];
};
static_assert(sizeof(ActorTableHead) == 256);

/// The row of a mesh, which the keeper writes. It writes the texts and the numbers that aren't
/// atomic before it raises mesh_count, or before is_ended becomes 0 in a row that is used again. It
/// writes `cause` once, before is_ended and before the phase `ended` of actors that have failed. A
/// mesh that has ended leaves its row and its actors' rows to a later mesh with at most as many
/// actors. The keeper increments `turn` before it writes them again.
struct MeshTableRow {
  std::atomic<std::uint32_t> is_ended;
  std::atomic<std::uint32_t> turn;  ///< how many meshes have had this row before
  std::uint32_t first_row;
  std::uint32_t count;
  std::uint32_t row_count;  ///< number of rows from first_row on; at least `count`
  std::uint32_t endpoint_count;
  char name[kActorNameMax + 1];
  char type[kActorNameMax + 1];
  std::atomic<std::uint32_t> cause_code;  ///< an Errc; 0: no cause
  char cause[kCauseBytesMax + 1];
  std::atomic<std::uint32_t> restarts;  ///< restarts so far
  std::int32_t max_restarts;            ///< -1: no limit
  std::uint8_t restart;                 ///< an ActorRestart
  std::uint8_t then;                    ///< an ActorGivesUp
  std::uint8_t own_thread;
  std::uint8_t reserved;
  /// The names of the endpoints in order, a null character after each; only as many as fit.
  char endpoints[kEndpointNamesBytes];
  /// The schemas of the endpoints, in the same form, for programs of other builds.
  char schemas[kEndpointSchemasBytes];
  char job[40];  ///< the id of the job in SpawnOptions::lives_with; "": none
};
static_assert(sizeof(MeshTableRow) == 8288);

/// The row of an actor. The keeper writes position, mesh, index and turn, and clears the rest for a
/// new mesh. The actor's process writes the rest.
struct alignas(64) ActorTableRow {
  std::atomic<std::uint64_t> position;  ///< an ActorPosition
  std::uint32_t mesh;
  std::uint32_t index;
  /// When the running function began, by the steady clock; 0: no function runs. Written after
  /// `function` and `call`, which describe the last function if none runs.
  std::atomic<std::uint64_t> since_ns;
  std::atomic<std::uint64_t> function;  ///< an ActorFunction
  std::atomic<std::uint64_t> call;      ///< the number that the caller gave the call; 0: no call
  std::atomic<std::uint64_t> awaited;   ///< see awaited.hpp
  std::atomic<std::uint64_t> begun;     ///< how many functions have begun
  std::atomic<std::int32_t> tid;        ///< the thread that runs the actor; 0: unknown
  std::atomic<std::uint32_t> turn;      ///< the turn in the actor's ActorNumber
};
static_assert(sizeof(ActorTableRow) == 64);

/// The name of a Publisher or of an experience of a job, for which actors of a process wait. The
/// process writes the row at its first wait. A row is used again when all have been used.
struct JobSourceRow {
  std::atomic<std::uint32_t> is_set;  ///< 1: the texts are written
  char job[40];                       ///< the job's id
  char name[84];
};
static_assert(sizeof(JobSourceRow) == 128);

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
constexpr std::size_t job_source_offset(std::uint32_t slot, std::uint32_t source) {
  return pipe_wait_offset(kPeerCountMax) +
         (std::size_t{slot} * kJobSourceCountMax + source) * sizeof(JobSourceRow);
}
constexpr std::size_t call_ring_offset(std::uint32_t slot, std::uint32_t port) {
  return job_source_offset(kPeerCountMax, 0) +
         (std::size_t{slot} * kPortCountMax + port) * sizeof(CallRing);
}
static_assert(call_ring_offset(0, 0) % 4096 == 0);
inline constexpr std::size_t kActorTableBytes = call_ring_offset(kPeerCountMax, 0);

inline std::string actor_table_name(std::string_view system) {
  return "weft-" + std::string(system) + "-actors";
}

}  // namespace weft
