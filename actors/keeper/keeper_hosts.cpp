#include <algorithm>
#include <map>
#include <vector>

#include <weft/tensor/error.hpp>

#include "actors/join/child_process.hpp"
#include "actors/keeper/checks.hpp"
#include "actors/keeper/keeper.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

/// Returns the host of process `number` of a mesh. Each host that isn't lost gets an equal part of
/// the processes.
int host_for(const SystemHosts* hosts, const ActorPlace& place, std::size_t number) {
  if (hosts == nullptr) return 0;
  if (place.host >= 0) return place.host;
  std::vector<int> up;
  for (int host = 0; host < hosts->count(); ++host) {
    if (hosts->is_up(host)) up.push_back(host);
  }
  return up[number * up.size() / static_cast<std::size_t>(place.processes)];
}

/// Returns the host that runs the fewest processes, for a process whose host is lost.
int next_host(const SystemHosts& hosts, const std::map<int, KeptProcess>& processes,
              const KeptProcess& moved) {
  const auto count_on = [&](int host) {
    return std::ranges::count_if(processes, [&](const auto& entry) {
      return entry.second.host == host && entry.second.number != moved.number;
    });
  };
  int best = 0;
  for (int host = 1; host < hosts.count(); ++host) {
    if (hosts.is_up(host) && count_on(host) < count_on(best)) best = host;
  }
  return best;
}

}  // namespace

void Keeper::place_in_children(Mesh& mesh) {
  if (command_ == nullptr) command_ = std::make_unique<WorkerCommand>(ScalingConfig{}, true);
  const auto count = mesh.actors.size();
  const int processes = mesh.options.place.processes;
  for (int number = 0; std::ssize(mesh.children) < processes; ++number) {
    const int host = host_for(hosts_.get(), mesh.options.place, mesh.children.size());
    const Child child{.number = number, .host = host, .mesh = mesh.first};
    if (children_.try_emplace(number, child).second) mesh.children.push_back(number);
  }
  std::vector<std::uint32_t> used(static_cast<std::size_t>(processes));
  for (std::size_t i = 0; i < count; ++i) {
    const auto child = static_cast<std::size_t>(process_of_actor(i, count, processes));
    const std::uint32_t n = used[child]++;
    mesh.actors[i].child = mesh.children[child];
    mesh.actors[i].port =
        1 + (mesh.options.own_thread ? n : n % static_cast<std::uint32_t>(options_.threads));
    process_->actors().set_position(number_of(mesh, i),
                                    {.phase = ActorPhase::starting, .port = mesh.actors[i].port});
  }
  for (const int number : mesh.children) start_child(children_.at(number));
}

void Keeper::start_child(Child& child) {
  const Mesh& mesh = meshes_.at(child.mesh);
  std::uint32_t ports = 1 + static_cast<std::uint32_t>(options_.threads);
  if (mesh.options.own_thread) {
    ports = 1 + static_cast<std::uint32_t>(
                    std::ranges::count(mesh.actors, child.number, &Actor::child));
  }
  bury_claims();
  if (hosts_ != nullptr && !hosts_->is_up(child.host)) {
    child.host = next_host(*hosts_, children_, child);
  }
  child.peer = process_->peers().add();
  child.is_alive = false;
  try {
    if (hosts_ != nullptr) {
      hosts_->add_process(
          {.peer = child.peer, .host = static_cast<std::uint32_t>(child.host), .ports = ports});
    }
    if (child.host != 0) {
      hosts_->start(child.host, {.number = child.number,
                                 .slot = child.peer.slot,
                                 .incarnation = child.peer.incarnation,
                                 .ports = ports});
    } else {
      processes_.start(
          child.number, *command_,
          to_variables(ChildVariables{.system = id(), .peer = child.peer, .port_count = ports}));
    }
  } catch (...) {
    bury_soon(child.peer);  // other hosts may already know the process
    throw;
  }
  child.is_running = true;
  call_in(nanoseconds(kMakeTimeoutS), [this, peer = child.peer] {
    Child* late = child_of(peer);
    if (late == nullptr || !late->is_running || late->is_alive) return;
    late->why_killed = fmt::format(
        "was killed because it hadn't joined the actor system within {} s", kMakeTimeoutS);
    kill_child(*late);
  });
}

void Keeper::kill_child(const Child& child) {
  if (child.host == 0) return processes_.kill(child.number, false);
  hosts_->kill(child.host, child.number);
}

/// Called when a process of another host has ended, or couldn't be started. If that host was lost
/// before, its processes have already counted as ended.
void Keeper::on_ended_elsewhere(const EndedNews& news) {
  const auto found = children_.find(news.ended.worker);
  if (found == children_.end() || !found->second.is_running) return;
  if (!news.why.empty()) found->second.why_killed = news.why;
  on_process_ended(news.ended);
}

/// Handles the loss of a host. It counts as one failure of each mesh with processes there, even if
/// these still run.
void Keeper::on_host_lost(int host, const std::string& why) {
  std::map<ActorNumber, std::vector<std::size_t>> failed;
  for (auto& [number, child] : children_) {
    if (child.host != host || !child.is_running) continue;
    const std::vector<std::size_t> actors = lose_child(child);
    auto& its = failed[child.mesh];
    its.insert(its.end(), actors.begin(), actors.end());
  }
  for (auto& [first, actors] : failed) {
    Mesh& mesh = meshes_.at(first);
    if (mesh.is_ending) {
      tell_ended(mesh);
      continue;
    }
    std::ranges::sort(actors);
    on_failure(mesh, actors,
               host_lost_error(mesh.is_ready, mesh.name, hosts_->name(host), actors.front(),
                               actors.back(), why));
  }
}

void Keeper::on_hung(const HungNews& news) {
  Child* const child = child_of({.slot = news.slot, .incarnation = news.incarnation});
  if (child == nullptr || !child->is_running || !process_->actors().has(news.actor)) return;
  const Mesh& mesh = meshes_.at(child->mesh);
  if (mesh.is_ending) return;
  child->why_killed =
      hang_text(process_->actors().name(news.actor), mesh.options.supervision.hang_timeout_s);
  kill_child(*child);
}

/// Makes all processes check the table of actors.
void Keeper::kick_all() {
  if (hosts_ != nullptr) hosts_->kick();
  wake_all(process_->actors().head().changes);
  for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
    if (process_->peers().life(slot).state != PeerState::alive) continue;
    try {
      PortHead& port = process_->node()->peers().current(slot).port(kReplyPort);
      port.rung.fetch_add(1, std::memory_order_seq_cst);
      wake_all(port.rung);
    } catch (const Error& error) {
      log_once_a_minute(options_.name, error.what());
    }
  }
}

}  // namespace weft
