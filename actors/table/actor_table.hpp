#pragma once
/// ActorTable: the meshes and actors of a system, in shared memory that all its processes read.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/table/table_change.hpp"
#include "transport/actors/actor_table_format.hpp"
#include "transport/memory/life_lock.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

/// The facts of a new system.
struct SystemFacts {
  std::string_view name{};  ///< for people
  std::uint32_t threads = 0;
  std::uint64_t heap_bytes = 0;
  double call_timeout_s = 0;
  std::uint64_t key = 0;  ///< ActorTableHead::key; 0: one that is made of the system's id
  std::uint32_t host = 0;
  std::uint32_t host_count = 1;
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
  void release(std::uint32_t mesh);
  /// Sets a function that gets each change before it is made, for the tables of other hosts.
  void set_on_change(std::function<void(const TableChange&)> on_change) {
    on_change_ = std::move(on_change);
  }
  /// Repeats a change of the table of host 0. Throws no_space, and corrupt for a change that can't
  /// be.
  void apply(const TableChange& change);

 private:
  std::uint32_t place_for(const MeshFacts& facts);
  void tell(const TableChange& change) const {
    if (on_change_) on_change_(change);
  }
  explicit ActorTable(Segment segment) : segment_(std::move(segment)) {}

  Segment segment_;
  std::optional<LifeLock> life_;          ///< the keeper's
  std::deque<std::uint32_t> released_{};  ///< in the keeper's process: meshes, the oldest first
  std::function<void(const TableChange&)> on_change_{};
};

}  // namespace weft
