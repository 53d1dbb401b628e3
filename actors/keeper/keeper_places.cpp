#include <algorithm>
#include <set>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/keeper/checks.hpp"
#include "actors/keeper/keeper.hpp"
#include "actors/table/actor_protocol.hpp"

namespace weft {

/// Throws no_space if a process has too few ports for actors with their own threads.
void Keeper::require_ports(const std::string& name, const SpawnOptions& options,
                           const JobTie& job) {
  if (!options.own_thread || options.place.processes > 0) return;
  const auto require = [&](const OwnPorts& ports, const std::string& process,
                           std::uint32_t needed) {
    if (needed > ports.free()) throw no_ports_error(name, process, needed, ports.free());
  };
  const auto count = static_cast<std::size_t>(options.count);
  if (options.place.beside == nullptr || job.workers == 0) {
    return require(ports_, "this process", static_cast<std::uint32_t>(count));
  }
  std::vector<std::uint32_t> needed(static_cast<std::size_t>(job.workers));
  for (std::size_t i = 0; i < count; ++i) {
    ++needed[static_cast<std::size_t>(process_of_actor(i, count, job.workers))];
  }
  for (int worker = 0; worker < job.workers; ++worker) {
    require(workers_.ports({.job = job_key(job.id), .worker = worker}),
            fmt::format("worker {}", worker), needed[static_cast<std::size_t>(worker)]);
  }
}

/// Called when an actor was destroyed. If it had its own thread, another actor may use its port.
void Keeper::give_back_port(const Mesh& mesh, const Actor& actor) {
  if (!mesh.options.own_thread || actor.child >= 0) return;
  OwnPorts& ports = actor.worker < 0 ? ports_ : workers_.ports(worker_of(mesh, actor));
  ports.give_back(actor.port);
}

void Keeper::place(Mesh& mesh) {
  const ActorPlace& where = mesh.options.place;
  if (where.processes > 0) return place_in_children(mesh);
  if (where.beside != nullptr && mesh.job.workers > 0) return place_beside_loops(mesh);
  place_here(mesh);
}

void Keeper::place_here(Mesh& mesh) {
  for (std::size_t i = 0; i < mesh.actors.size(); ++i) {
    Actor& actor = mesh.actors[i];
    actor.port = mesh.options.own_thread ? ports_.take().value() : shared_port();
    if (mesh.options.own_thread) process_->start_runner(actor.port);
    make(mesh, i);
  }
}

void Keeper::place_beside_loops(Mesh& mesh) {
  const std::size_t count = mesh.actors.size();
  for (std::size_t i = 0; i < count; ++i) {
    Actor& actor = mesh.actors[i];
    actor.worker = process_of_actor(i, count, mesh.job.workers);
    OwnPorts& ports = workers_.ports(worker_of(mesh, actor));
    actor.port = mesh.options.own_thread ? ports.take().value() : shared_port();
    process_->actors().set_position(number_of(mesh, i),
                                    {.phase = ActorPhase::starting, .port = actor.port});
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (process_of(mesh, mesh.actors[i])) make(mesh, i);  // the others once their process joins
  }
  call_in(nanoseconds(kMakeTimeoutS), [this, first = mesh.first] {
    const auto late = meshes_.find(first);
    if (late == meshes_.end() || late->second.is_ready) return;
    end_mesh(late->second, not_joined_error(late->second.name, late->second.job.id, kMakeTimeoutS));
  });
}

std::uint32_t Keeper::shared_port() {
  return 1 + next_shared_++ % static_cast<std::uint32_t>(options_.threads);
}

/// Calls `use` for each mesh beside the worker's loop that hasn't ended, with the index of each of
/// its actors there that hasn't been left.
template <typename Use>
void Keeper::for_each_beside(LoopWorker worker, Use use) {
  for (auto& [first, mesh] : meshes_) {
    if (mesh.is_ending || mesh.job.id.empty() || job_key(mesh.job.id) != worker.job) continue;
    for (std::size_t i = 0; i < mesh.actors.size(); ++i) {
      const Actor& actor = mesh.actors[i];
      const bool is_left =
          actor.has_failed && mesh.options.supervision.restart == ActorRestart::none;
      if (actor.worker == worker.worker && !is_left) use(mesh, i);
    }
  }
}

/// Called when a worker's process has joined. Makes its actors.
void Keeper::make_beside(LoopWorker worker) {
  for_each_beside(worker, [this](Mesh& mesh, std::size_t i) { make(mesh, i); });
}

/// Called when a worker's process has ended. Its actors are made again if the job starts the worker
/// again.
void Keeper::lose_beside(LoopWorker worker) {
  for_each_beside(worker, [this](Mesh& mesh, std::size_t i) {
    mesh.actors[i].is_made = false;
    set_phase(mesh, i, ActorPhase::starting);
  });
  // Actors of ended meshes that hadn't ended in time have ended with the process.
  for (const StuckActor& stuck : stuck_) {
    if (stuck.worker == worker && stuck.own_thread) workers_.ports(worker).give_back(stuck.port);
  }
  std::set<std::uint32_t> meshes;
  std::erase_if(stuck_, [&](const StuckActor& stuck) {
    if (stuck.worker != worker) return false;
    meshes.insert(stuck.mesh);
    return true;
  });
  for (const std::uint32_t mesh : meshes) release_rows(mesh);
}

/// If all actors of a mesh have ended and none is stuck, lets a later mesh use its rows.
void Keeper::release_rows(std::uint32_t mesh) {
  const auto is_its = [&](const auto& entry) { return entry.second.index == mesh; };
  if (std::ranges::any_of(meshes_, is_its)) return;
  if (std::ranges::count(stuck_, mesh, &StuckActor::mesh) != 0) return;
  process_->actors().release(mesh);
}

}  // namespace weft
