#pragma once
/// ActorTable: the meshes and actors of a system, in shared memory that all its processes read.

#include <cstdint>
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
  /// `name` is the system's, for people. Throws io if the system has a table, no_space.
  static ActorTable create(std::string_view system, std::string_view name);
  /// Throws not_found, version or corrupt.
  static ActorTable open(std::string_view system);

  ActorTableHead& head() const { return *reinterpret_cast<ActorTableHead*>(segment_.data()); }
  std::uint32_t mesh_count() const;
  std::uint32_t row_count() const;
  MeshTableRow& mesh(std::uint32_t mesh) const;
  ActorTableRow& row(std::uint32_t row) const;
  ActorPosition position(std::uint32_t row) const;
  /// Returns the schemas of a mesh's endpoints. Throws no_space if the table has no room for all of
  /// them.
  std::vector<std::string> schemas(std::uint32_t mesh) const;
  std::string job(std::uint32_t mesh) const;  ///< the id of SpawnOptions::lives_with
  std::string name(std::uint32_t row) const;  ///< "sieves[3]"
  /// Returns the mesh of this name that hasn't ended.
  std::optional<std::uint32_t> find(std::string_view name) const;
  /// Returns why the actor's mesh has ended.
  MeshCause cause(std::uint32_t row) const;

  /// The rest are the keeper's. add() throws no_space if there are too many actors or meshes.
  std::uint32_t add(const MeshFacts& facts);
  void set_position(std::uint32_t row, const ActorPosition& position);
  void set_restarts(std::uint32_t mesh, int restarts);
  /// Sets why actors of a mesh have ended, unless it was set before.
  void set_cause(std::uint32_t mesh, const MeshCause& cause);
  /// Ends a mesh. Its name is free again. An earlier cause is kept.
  void end(std::uint32_t mesh, const MeshCause& cause);

 private:
  explicit ActorTable(Segment segment) : segment_(std::move(segment)) {}

  Segment segment_;
  std::optional<LifeLock> life_;  ///< the keeper's
};

}  // namespace weft
