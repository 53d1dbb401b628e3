#pragma once
/// ActorTable: the meshes and actors of a system, in shared memory that all its processes read.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/actors/actor_table_format.hpp"
#include "transport/memory/life_lock.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

/// A failure that ended a mesh.
struct MeshCause {
  std::uint8_t code = 0;
  std::string text{};
};

/// The facts of a new system.
struct SystemFacts {
  std::string_view name{};  ///< for people
  std::uint32_t threads = 0;
  std::uint64_t heap_bytes = 0;
  double call_timeout_s = 0;
};

/// The facts of a new mesh.
struct MeshFacts {
  std::string_view name{};
  std::string_view type{};
  std::uint32_t count = 0;
  std::int32_t max_restarts = 0;  ///< -1: no limit
  std::uint8_t restart = 0;       ///< an ActorRestart
  std::uint8_t then = 0;          ///< an ActorGivesUp
  bool own_thread = false;
  std::vector<std::string_view> endpoints{};
  std::vector<std::string_view> schemas{};  ///< of the endpoints
  std::string_view job{};                   ///< the id of SpawnOptions::lives_with; "": none
};

/// The keeper's process makes the table and writes all but those fields of ActorTableRow that an
/// actor's process writes. Thread-safe, but one thread at a time uses the keeper's functions.
class ActorTable {
 public:
  /// Throws io if the system has a table, no_space.
  static ActorTable create(std::string_view system, const SystemFacts& facts);
  /// Throws not_found, version or corrupt.
  static ActorTable open(std::string_view system);

  ActorTableHead& head() const { return *reinterpret_cast<ActorTableHead*>(segment_.data()); }
  std::uint32_t mesh_count() const;
  std::uint32_t row_count() const;
  MeshTableRow& mesh(std::uint32_t mesh) const;
  /// Returns the actor of a mesh.
  ActorNumber number(std::uint32_t mesh, std::uint32_t index) const;
  /// Returns the actor that has the row now.
  ActorNumber number_in(std::uint32_t row) const;
  /// Whether the table has the actor's row, and no later actor has it.
  bool has(ActorNumber actor) const;
  /// The row may have become that of a later actor.
  ActorTableRow& row(ActorNumber actor) const;
  /// An actor whose row a later one has is `ended`.
  ActorPosition position(ActorNumber actor) const;
  /// Returns the schemas of a mesh's endpoints. Throws no_space if the table has no room for all of
  /// them.
  std::vector<std::string> schemas(std::uint32_t mesh) const;
  std::string job(std::uint32_t mesh) const;  ///< the id of SpawnOptions::lives_with
  std::string type(ActorNumber actor) const;  ///< the registered name of its class
  std::string name(ActorNumber actor) const;  ///< "sieves[3]"
  /// Returns the mesh of this name that hasn't ended.
  std::optional<std::uint32_t> find(std::string_view name) const;
  /// Returns why the actor's mesh has ended, as long as no later mesh has its row.
  MeshCause cause(ActorNumber actor) const;
  /// Returns the ring of the thread that takes messages from a port of a process, for that thread
  /// alone, or for port 0 that of all other threads. Throws no_space.
  CallRing& open_ring(std::uint32_t slot, std::uint32_t port);
  /// The word of a thread that waits at a pipe and runs no actor. Several threads share it.
  std::atomic<std::uint64_t>& pipe_wait(std::uint32_t slot) const;

  /// The rest are the keeper's. add() returns the mesh. It throws no_space if there are too many
  /// actors or meshes.
  std::uint32_t add(const MeshFacts& facts);
  void set_position(ActorNumber actor, const ActorPosition& position);
  void set_restarts(std::uint32_t mesh, int restarts);
  /// Sets why actors of a mesh have ended, unless it was set before.
  void set_cause(std::uint32_t mesh, const MeshCause& cause);
  /// Ends a mesh. Its name is free again. An earlier cause is kept.
  void end(std::uint32_t mesh, const MeshCause& cause);
  /// All actors of a mesh that has ended are destroyed, so a later mesh may have its rows.
  void release(std::uint32_t mesh) { released_.push_back(mesh); }

 private:
  std::uint32_t place_for(const MeshFacts& facts);
  explicit ActorTable(Segment segment) : segment_(std::move(segment)) {}

  Segment segment_;
  std::optional<LifeLock> life_;          ///< the keeper's
  std::deque<std::uint32_t> released_{};  ///< in the keeper's process: meshes, the oldest first
};

}  // namespace weft
