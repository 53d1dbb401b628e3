#include "actors/simulate/simulated_keeper.hpp"

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/keeper/checks.hpp"
#include "actors/simulate/actor_simulation.hpp"
#include "actors/simulate/simulated_process.hpp"
#include "transport/lanes/lane_format.hpp"

namespace weft {
namespace {

/// The seconds that actors have to end before their process is killed.
constexpr double kEndTimeoutS = 5;

}  // namespace

std::string SimulatedKeeper::name(std::uint32_t row) const {
  return fmt::format("{}[{}]", mesh_of(row).name, rows_.at(row).index);
}

// --- Making meshes ---

/// Returns the options with the job that the mesh lives with. Actors beside the loops of the test's
/// job run in the test's process. Throws invalid_argument for other jobs.
SpawnOptions SimulatedKeeper::tied(SpawnOptions options, const std::string& mesh) const {
  if (options.place.beside != nullptr) options.lives_with = options.place.beside;
  if (options.lives_with != nullptr && options.lives_with != simulation_->job().handle()) {
    fail(
        Errc::invalid_argument,
        "mesh \"{}\": {} is another job than that of the ActorTest: set it to test.job().handle()",
        mesh,
        options.place.beside != nullptr ? "the job of beside_loops()" : "SpawnOptions::lives_with");
  }
  return options;
}

std::uint32_t SimulatedKeeper::add(const detail::ActorClass& type, const SpawnOptions& given) {
  require_valid(type, given);
  const std::string& name = mesh_name(type, given);
  const SpawnOptions options = tied(given, name);
  if (failure_) throw failed_before_error(*failure_);
  if (std::ranges::any_of(meshes_, [&](const SimulatedMesh& mesh) {
        return mesh.name == name && !mesh.is_ending;
      })) {
    throw name_taken_error(name);
  }
  const auto count = static_cast<std::uint32_t>(options.count);
  const auto threads = static_cast<std::uint32_t>(simulation_->options().threads);
  const bool needs_ports = options.own_thread && options.place.processes == 0;
  if (needs_ports && count > own_ports_.free()) {
    throw no_ports_error(name, "this process", count, own_ports_.free());
  }
  const auto number = static_cast<std::uint32_t>(meshes_.size());
  meshes_.push_back({.name = name,
                     .type = &type,
                     .options = options,
                     .supervision = MeshSupervision(options.supervision),
                     .first_row = row_count()});
  for (std::uint32_t i = 0; i < count; ++i) {
    rows_.push_back({.mesh = number, .index = i, .position = {.phase = ActorPhase::starting}});
  }
  simulation_->log(
      fmt::format("mesh {}: {} actors in {} processes", name, count, options.place.processes));
  SimulatedMesh& mesh = meshes_.back();
  if (options.place.processes == 0) {
    place_here(mesh);
    return number;
  }
  const auto processes = static_cast<std::uint32_t>(options.place.processes);
  mesh.children.resize(processes);
  for (SimulatedChild& child : mesh.children) child.number = next_child_++;
  std::vector<std::uint32_t> used(processes);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t child = i * processes / count;  // neighbors share a process
    const std::uint32_t n = used[child]++;
    SimulatedRow& its = rows_.at(row_of(mesh, i));
    its.child = static_cast<int>(child);
    its.position.port = 1 + (options.own_thread ? n : n % threads);
  }
  for (std::size_t child = 0; child < processes; ++child) start_child(number, child);
  return number;
}

void SimulatedKeeper::place_here(SimulatedMesh& mesh) {
  const auto threads = static_cast<std::uint32_t>(simulation_->options().threads);
  for (std::size_t i = 0; i < static_cast<std::size_t>(mesh.options.count); ++i) {
    const std::uint32_t port =
        mesh.options.own_thread ? own_ports_.take().value() : 1 + next_runner_++ % threads;
    simulation_->test_process().ports()[port].number = port;
    rows_.at(row_of(mesh, i)).position.port = port;
    make(row_of(mesh, i));
  }
}

void SimulatedKeeper::start_child(std::uint32_t number, std::size_t child) {
  SimulatedMesh& mesh = meshes_.at(number);
  auto threads = static_cast<std::uint32_t>(simulation_->options().threads);
  if (mesh.options.own_thread) threads = static_cast<std::uint32_t>(mesh.options.count);
  const PeerId process = simulation_->start_process(1 + threads);
  mesh.children[child].process = process;
  simulation_->add_event({SimulatedEvent::made, ~std::uint64_t{0}, process.slot}, process,
                         [this, number, child] { on_joined(number, child); });
}

void SimulatedKeeper::on_joined(std::uint32_t number, std::size_t child) {
  SimulatedMesh& mesh = meshes_.at(number);
  mesh.children[child].has_joined = true;
  simulation_->log(fmt::format("process {} begins", mesh.children[child].process->slot));
  for (std::size_t i = 0; i < static_cast<std::size_t>(mesh.options.count); ++i) {
    const std::uint32_t row = row_of(mesh, i);
    if (rows_.at(row).child == static_cast<int>(child) && !mesh.is_ending) make(row);
  }
}

/// Orders that the next incarnation of an actor is made.
void SimulatedKeeper::make(std::uint32_t row) {
  SimulatedRow& its = rows_.at(row);
  its.is_made = false;
  its.has_failed = false;
  its.position.phase = ActorPhase::starting;
  its.position.process = its.child < 0
                             ? kTestProcess
                             : *mesh_of(row).children[static_cast<std::size_t>(its.child)].process;
  ++its.position.incarnation;
  if (const auto process = simulation_->find(its.position.process)) process->order_make(row);
}

void SimulatedKeeper::on_made(std::uint32_t row, std::uint32_t incarnation,
                              const std::optional<Error>& error) {
  SimulatedRow& its = rows_.at(row);
  SimulatedMesh& mesh = meshes_.at(its.mesh);
  if (mesh.is_ending || its.position.incarnation != incarnation || its.has_failed) return;
  if (error) return on_failure(its.mesh, {row}, *error);
  its.is_made = true;
  its.position.phase = ActorPhase::alive;
  mesh.is_ready = mesh.is_ready || std::ranges::all_of(rows_, [&](const SimulatedRow& each) {
                    return each.mesh != its.mesh || each.is_made;
                  });
  if (mesh.is_ready && simulation_->job().has_ended()) on_job_ended();
}

// --- Failures ---

void SimulatedKeeper::on_failed(std::uint32_t row, std::uint32_t incarnation, const Error& error) {
  const SimulatedRow& its = rows_.at(row);
  if (its.position.incarnation != incarnation || its.has_failed) return;
  on_failure(its.mesh, {row}, error);
}

void SimulatedKeeper::on_process_ended(PeerId process, const std::string& why) {
  for (std::uint32_t number = 0; number < meshes_.size(); ++number) {
    SimulatedMesh& mesh = meshes_[number];
    const auto found =
        std::ranges::find(mesh.children, std::optional(process), &SimulatedChild::process);
    if (found == mesh.children.end()) continue;
    const auto child = found - mesh.children.begin();
    found->process.reset();
    found->has_joined = false;
    std::vector<std::uint32_t> failed;
    for (std::size_t i = 0; i < static_cast<std::size_t>(mesh.options.count); ++i) {
      if (rows_.at(row_of(mesh, i)).child == child) failed.push_back(row_of(mesh, i));
    }
    if (mesh.is_ending) {
      for (const std::uint32_t row : failed) rows_.at(row).has_ended = true;
      return;
    }
    return on_failure(
        number, failed,
        process_ended_error(mesh.is_ready, mesh.name, fmt::format("{}", found->number),
                            rows_.at(failed.front()).index, rows_.at(failed.back()).index, why));
  }
}

void SimulatedKeeper::on_job_ended() {
  for (std::uint32_t number = 0; number < meshes_.size(); ++number) {
    const SimulatedMesh& mesh = meshes_[number];
    if (mesh.options.lives_with == nullptr || !mesh.is_ready || mesh.is_ending) continue;
    end_mesh(number, job_ended_error(mesh.name, SimulatedJob::id()));
  }
}

void SimulatedKeeper::on_failure(std::uint32_t number, std::vector<std::uint32_t> failed,
                                 const Error& error) {
  SimulatedMesh& mesh = meshes_.at(number);
  if (mesh.is_ending) return;
  if (!mesh.is_ready) return end_mesh(number, error);
  const ActorRestart restarted = mesh.options.supervision.restart;
  if (restarted == ActorRestart::none) return leave_failed(mesh, failed, error);
  if (restarted == ActorRestart::process) {
    const auto child = static_cast<std::size_t>(rows_.at(failed.front()).child);
    if (mesh.children[child].process) {  // the end of its process counts as the failure
      return simulation_->kill(*mesh.children[child].process, failed_actor_text(error));
    }
  }
  const auto delay = mesh.supervision.on_failure(simulation_->now());
  if (!delay) {
    if (mesh.options.supervision.then == ActorGivesUp::escalate && !failure_) {
      failure_ = error;
      simulation_->log(fmt::format("the system has failed: {}", error.what()));
      for (std::uint32_t each = 0; each < meshes_.size(); ++each) end_mesh(each, error);
    }
    end_mesh(number, error);
    if (mesh.options.lives_with != nullptr) simulation_->job().end();
    return;
  }
  simulation_->log(fmt::format("{}; restart {} of mesh {} in {} s", error.what(),
                               mesh.supervision.restarts(), mesh.name,
                               std::chrono::duration<double>(*delay).count()));
  if (restarted == ActorRestart::mesh) {
    failed.resize(static_cast<std::size_t>(mesh.options.count));
    for (std::size_t i = 0; i < failed.size(); ++i) failed[i] = row_of(mesh, i);
  }
  for (const std::uint32_t row : failed) {
    rows_.at(row).position.phase = ActorPhase::starting;
    rows_.at(row).is_made = false;
    rows_.at(row).has_failed = true;
  }
  simulation_->call_in(*delay, [this, number, failed] { restart(number, failed); });
}

void SimulatedKeeper::leave_failed(SimulatedMesh& mesh, const std::vector<std::uint32_t>& failed,
                                   const Error& error) {
  simulation_->log(fmt::format("{}; it isn't made again", error.what()));
  if (!mesh.cause) mesh.cause = error;
  for (const std::uint32_t row : failed) {
    SimulatedRow& its = rows_.at(row);
    its.has_failed = true;
    its.position.phase = ActorPhase::ended;
    if (const auto process = simulation_->find(its.position.process)) process->order_end(row);
  }
}

void SimulatedKeeper::restart(std::uint32_t number, const std::vector<std::uint32_t>& rows) {
  SimulatedMesh& mesh = meshes_.at(number);
  if (mesh.is_ending) return;
  for (const std::uint32_t row : rows) {
    SimulatedRow& its = rows_.at(row);
    if (!its.has_failed) continue;
    const auto child = static_cast<std::size_t>(its.child);
    if (its.child < 0 || mesh.children[child].has_joined) {
      make(row);
      continue;
    }
    its.has_failed = false;
    if (!mesh.children[child].process) start_child(number, child);
  }
}

SimulatedTime SimulatedKeeper::hangs_at(const SimulatedRow& row) const {
  const double limit = meshes_.at(row.mesh).options.supervision.hang_timeout_s;
  if (limit == 0 || !row.since || !row.is_made || !simulation_->is_alive(row.position.process)) {
    return SimulatedTime::max();
  }
  return *row.since + nanoseconds(limit);
}

SimulatedTime SimulatedKeeper::next_hang() const {
  SimulatedTime next = SimulatedTime::max();
  for (const SimulatedRow& row : rows_) next = std::min(next, hangs_at(row));
  return next;
}

void SimulatedKeeper::kill_hanging() {
  for (std::uint32_t row = 0; row < row_count(); ++row) {
    if (hangs_at(rows_[row]) > simulation_->now()) continue;
    simulation_->kill(rows_[row].position.process,
                      hang_text(name(row), mesh_of(row).options.supervision.hang_timeout_s));
  }
}

std::vector<PeerId> SimulatedKeeper::killable() const {
  std::vector<PeerId> all;
  for (const SimulatedMesh& mesh : meshes_) {
    for (const SimulatedChild& child : mesh.children) {
      if (mesh.is_ready && child.process && !simulation_->is_killed(*child.process)) {
        all.push_back(*child.process);
      }
    }
  }
  return all;
}

// --- Ends ---

std::uint32_t SimulatedKeeper::find(const std::string& mesh) const {
  for (std::uint32_t number = 0; number < meshes_.size(); ++number) {
    if (meshes_[number].name == mesh && !meshes_[number].is_ending) return number;
  }
  throw no_mesh_error(mesh);
}

void SimulatedKeeper::end_mesh(std::uint32_t number, const std::optional<Error>& cause) {
  SimulatedMesh& mesh = meshes_.at(number);
  if (mesh.is_ending) return;
  mesh.is_ending = true;
  if (!mesh.cause) mesh.cause = cause;
  simulation_->log(fmt::format("mesh {} ends", mesh.name));
  for (std::size_t i = 0; i < static_cast<std::size_t>(mesh.options.count); ++i) {
    rows_.at(row_of(mesh, i)).position.phase = ActorPhase::ended;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(mesh.options.count); ++i) {
    const std::uint32_t row = row_of(mesh, i);
    const SimulatedRow& its = rows_.at(row);
    const auto process = simulation_->find(its.position.process);
    if (its.position.incarnation == 0 || process == nullptr) {
      on_actor_ended(row);
      continue;
    }
    process->request_stop(row);
    process->order_end(row);
  }
  simulation_->call_in(nanoseconds(kEndTimeoutS), [this, number] {
    for (const SimulatedChild& child : meshes_.at(number).children) {
      if (!child.process) continue;
      simulation_->kill(*child.process, "was killed because its actors hadn't ended");
    }
  });
}

void SimulatedKeeper::on_actor_ended(std::uint32_t row) {
  const bool was_left = std::exchange(rows_.at(row).has_ended, true);  // the actor was left before
                                                                       // its mesh ended
  const std::uint32_t number = rows_.at(row).mesh;
  const SpawnOptions& options = meshes_.at(number).options;
  if (options.own_thread && options.place.processes == 0 && !was_left) {
    own_ports_.give_back(rows_.at(row).position.port);
  }
  if (std::ranges::any_of(rows_, [&](const SimulatedRow& each) {
        return each.mesh == number && !each.has_ended;
      })) {
    return;
  }
  for (SimulatedChild& child : meshes_.at(number).children) {
    if (child.process) simulation_->leave(*std::exchange(child.process, std::nullopt));
  }
}

bool SimulatedKeeper::has_ended(std::uint32_t mesh) const {
  return meshes_.at(mesh).is_ending && std::ranges::all_of(rows_, [&](const SimulatedRow& each) {
           return each.mesh != mesh || each.has_ended;
         });
}

}  // namespace weft
