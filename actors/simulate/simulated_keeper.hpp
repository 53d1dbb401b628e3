#pragma once
/// SimulatedKeeper: makes the actors of a simulated system, and supervises them.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <weft/actor/actor_options.hpp>
#include <weft/actor/actor_type.hpp>

#include "actors/keeper/own_ports.hpp"
#include "actors/simulate/simulated_rows.hpp"

namespace weft {

class ActorSimulation;

/// It decides in the same way as Keeper.
class SimulatedKeeper {
 public:
  /// `threads` is the number of threads that the actors of a process share.
  SimulatedKeeper(ActorSimulation& simulation, int threads)
      : simulation_(&simulation), own_ports_(static_cast<std::uint32_t>(threads)) {}

  /// Adds a mesh. Returns its number. Throws invalid_argument or actor_failed.
  std::uint32_t add(const detail::ActorClass& type, const SpawnOptions& given);
  /// Returns the number of the mesh with this name. Throws not_found.
  std::uint32_t find(const std::string& mesh) const;
  void end_mesh(std::uint32_t mesh, const std::optional<Error>& cause);
  bool has_ended(std::uint32_t mesh) const;
  const std::deque<SimulatedMesh>& meshes() const { return meshes_; }
  std::uint32_t row_count() const { return static_cast<std::uint32_t>(rows_.size()); }
  SimulatedRow& row(std::uint32_t row) { return rows_.at(row); }
  const SimulatedMesh& mesh_of(std::uint32_t row) const { return meshes_.at(rows_.at(row).mesh); }
  std::string name(std::uint32_t row) const;  ///< such as "sieves[3]"
  const std::optional<Error>& failure() const { return failure_; }

  void on_made(std::uint32_t row, std::uint32_t incarnation, const std::optional<Error>& error);
  void on_failed(std::uint32_t row, std::uint32_t incarnation, const Error& error);
  void on_actor_ended(std::uint32_t row);
  void on_process_ended(PeerId process, const std::string& why);
  void on_job_ended();
  /// Returns the processes of meshes that are ready or have been ready.
  std::vector<PeerId> killable() const;
  /// Returns the first time at which a function will have run for hang_timeout_s; the maximum if
  /// none will.
  SimulatedTime next_hang() const;
  void kill_hanging();

 private:
  SimulatedTime hangs_at(const SimulatedRow& row) const;
  std::uint32_t row_of(const SimulatedMesh& mesh, std::size_t index) const {
    return mesh.first_row + static_cast<std::uint32_t>(index);
  }
  SpawnOptions tied(SpawnOptions options, const std::string& mesh) const;
  void place_here(SimulatedMesh& mesh);
  void start_child(std::uint32_t mesh, std::size_t child);
  void on_joined(std::uint32_t mesh, std::size_t child);
  void make(std::uint32_t row);
  void on_failure(std::uint32_t mesh, std::vector<std::uint32_t> failed, const Error& error);
  void leave_failed(SimulatedMesh& mesh, const std::vector<std::uint32_t>& failed,
                    const Error& error);
  void restart(std::uint32_t mesh, const std::vector<std::uint32_t>& rows);

  ActorSimulation* simulation_;
  std::optional<Error> failure_;
  std::deque<SimulatedMesh> meshes_;  // references to elements stay valid
  std::deque<SimulatedRow> rows_;     // the same
  OwnPorts own_ports_;                ///< the ports of the test's process
  std::uint32_t next_runner_ = 0;
  std::uint32_t next_child_ = 0;
};

}  // namespace weft
