#pragma once
/// ActorTable: the meshes and actors of a system, in shared memory that all processes of a host
/// read.

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

/// The facts of a new system, which its table contains from the start.
struct SystemFacts {
  std::string_view name{};  ///< shown to people
  std::uint32_t threads = 0;
  std::uint64_t heap_bytes = 0;
  double call_timeout_s = 0;
  std::uint64_t key = 0;  ///< ActorTableHead::key; 0: computed from the system's id
  std::uint32_t host = 0;
  std::uint32_t host_count = 1;
};

/// The keeper's process makes the table, and writes it except for the fields of ActorTableRow that
/// an actor's process writes. Thread-safe, but only one thread at a time may use the keeper's
/// functions.
class ActorTable {
 public:
  /// Makes the table of a system. Throws io if the system has a table already, and no_space.
  static ActorTable create(std::string_view system, const SystemFacts& facts);
  /// Opens the table of a system. Throws not_found, version or corrupt.
  static ActorTable open(std::string_view system);

  ActorTableHead& head() const { return *reinterpret_cast<ActorTableHead*>(segment_.data()); }
  std::uint32_t mesh_count() const;
  std::uint32_t row_count() const;
  MeshTableRow& mesh(std::uint32_t mesh) const;
  /// Returns the number of an actor of a mesh.
  ActorNumber number(std::uint32_t mesh, std::uint32_t index) const;
  /// Returns the number of the actor that has the row now.
  ActorNumber number_in(std::uint32_t row) const;
  /// Returns whether the table has this actor, and no later actor has its row.
  bool has(ActorNumber actor) const;
  /// Returns the actor's row. A later actor may have that row now.
  ActorTableRow& row(ActorNumber actor) const;
  /// Returns the actor's position. Its phase is `ended` if a later actor has its row.
  ActorPosition position(ActorNumber actor) const;
  /// Returns the schemas of a mesh's endpoints. Throws no_space if the table has no room for all of
  /// them.
  std::vector<std::string> schemas(std::uint32_t mesh) const;
  std::string job(std::uint32_t mesh) const;  ///< the id of SpawnOptions::lives_with
  std::string type(ActorNumber actor) const;  ///< the registered name of its class
  std::string name(ActorNumber actor) const;  ///< "sieves[3]"
  /// Returns the name of an actor's function, such as "sieves[3].primes".
  std::string function_name(ActorNumber actor, const ActorFunction& function) const;
  /// Returns the mesh of this name that hasn't ended; nothing if there is none.
  std::optional<std::uint32_t> find(std::string_view name) const;
  /// Returns why the actor's mesh has ended. Returns an empty cause if a later mesh has its row.
  MeshCause cause(ActorNumber actor) const;
  /// Returns a ring of a process. The ring of a port belongs to the thread that takes messages from
  /// that port; for port 0, all other threads share it. Throws no_space.
  CallRing& open_ring(std::uint32_t slot, std::uint32_t port);
  /// Returns the word that shows for which pipe a thread waits that runs no actor. Several threads
  /// of the process share it.
  std::atomic<std::uint64_t>& pipe_wait(std::uint32_t slot) const;

  /// Returns the place of the JobSourceRow that has these texts. If no row has them, writes them to
  /// a row. Only the process of this slot calls it. Throws no_space.
  std::uint32_t job_source(std::uint32_t slot, std::string_view job, std::string_view name);

  /// Only the keeper calls the following functions. add() returns the index of the mesh. It throws
  /// no_space if there are too many actors or meshes.
  std::uint32_t add(const MeshFacts& facts);
  void set_position(ActorNumber actor, const ActorPosition& position);
  void set_restarts(std::uint32_t mesh, int restarts);
  /// Sets why actors of a mesh have ended, unless it was set before.
  void set_cause(std::uint32_t mesh, const MeshCause& cause);
  /// Ends a mesh, so that its name is free again. If a cause was set before, it is kept.
  void end(std::uint32_t mesh, const MeshCause& cause);
  /// Called when all actors of an ended mesh are destroyed. A later mesh may then have its rows.
  void release(std::uint32_t mesh);
  /// Sets a function that is called with each change before it is made, so that other hosts learn
  /// of it.
  void set_on_change(std::function<void(const TableChange&)> on_change) {
    on_change_ = std::move(on_change);
  }
  /// Makes a change that was made in the table of host 0. Throws no_space, and corrupt for an
  /// impossible change.
  void apply(const TableChange& change);

 private:
  std::uint32_t place_for(const MeshFacts& facts);
  void tell(const TableChange& change) const {
    if (on_change_) on_change_(change);
  }
  explicit ActorTable(Segment segment) : segment_(std::move(segment)) {}

  Segment segment_;
  std::optional<LifeLock> life_;          ///< the keeper's lock
  std::deque<std::uint32_t> released_{};  ///< released meshes, the oldest first; only in the
                                          ///< keeper's process
  std::function<void(const TableChange&)> on_change_{};
};

}  // namespace weft
