#pragma once
/// KeptMesh: a mesh, its actors and their processes, as the keeper knows them.

#include <cstddef>
#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include <weft/actor/actor_options.hpp>

#include "actors/keeper/job_tie.hpp"
#include "actors/keeper/mesh_supervision.hpp"
#include "transport/actors/actor_words.hpp"
#include "transport/lanes/lane_ids.hpp"

namespace weft {

/// A process that the system has started for actors of one mesh.
struct KeptProcess {
  int number = 0;  ///< its number in WorkerProcesses
  int host = 0;    ///< the host on which it runs, or will run
  PeerId peer{};
  bool is_running = false;
  bool is_alive = false;     ///< whether it has joined
  ActorNumber mesh = 0;      ///< KeptMesh::first
  std::string why_killed{};  ///< why the keeper has killed it
};

struct KeptActor {
  int child = -1;   ///< number of its KeptProcess; -1: none
  int worker = -1;  ///< the job's worker beside whose loop it runs; -1: none
  std::uint32_t port = 0;
  std::uint32_t incarnation = 0;
  bool is_made = false;
  bool has_failed = false;  ///< a restart is due, or the actor isn't made again
};

struct KeptMesh {
  std::uint32_t index = 0;  ///< its row in the table of actors, which a later mesh may get
  ActorNumber first = 0;    ///< the number of its actor 0, which identifies the mesh
  std::string name{};
  std::string type{};
  SpawnOptions options{};
  JobTie job{};
  MeshSupervision supervision;
  std::vector<KeptActor> actors{};
  std::vector<int> children{};
  bool is_ready = false;
  bool is_ending = false;
  int not_ended = 0;  ///< number of actors that haven't answered the order to end
  std::promise<void> ready{};
  std::vector<std::promise<void>> ended{};
};

/// Returns the index of the process, among a mesh's `processes`, in which an actor is. Neighbors
/// share a process.
inline int process_of_actor(std::size_t index, std::size_t count, int processes) {
  return static_cast<int>(index * static_cast<std::size_t>(processes) / count);
}

}  // namespace weft
