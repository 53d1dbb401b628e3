#include <poll.h>
#include <sys/types.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/job/job_control.hpp"
#include "actors/keeper/checks.hpp"
#include "actors/keeper/keeper.hpp"
#include "actors/process/log.hpp"
#include "actors/user/pipe_end.hpp"

namespace weft {
namespace {

/// An actor of this process can't be killed, so there is no limit on the wait for its end.
constexpr double kNoTimeoutS = 1e8;
/// The interval at which a mesh checks whether its job has ended.
constexpr std::chrono::milliseconds kJobInterval{20};

/// Returns a text that says how a process has ended, such as "was killed by SIGKILL".
std::string text_of(const ProcessEnded& ended) {
  if (ended.status_taken) return "has ended";
  if (ended.signal != 0) {
    const char* name = ::sigabbrev_np(ended.signal);
    return fmt::format("was killed by SIG{}{}", name == nullptr ? "?" : name,
                       ended.out_of_memory ? ", for lack of memory" : "");
  }
  return fmt::format("exited with code {}", ended.exit_code);
}

std::string text_of(const SystemHosts* hosts, const KeptProcess& process, int pid) {
  const std::string where = hosts == nullptr ? "" : " on " + hosts->name(process.host);
  return fmt::format("{} (pid {}){}", process.number, pid, where);
}

}  // namespace

void Keeper::on_news(ActorOp op, PeerId from, std::uint32_t target, std::uint64_t call,
                     const Error& error) {
  if (op == ActorOp::joined) {
    const bool is_worker = call != 0 && target < kPeerCountMax;
    const LoopWorker worker{.job = call, .worker = static_cast<int>(target)};
    return on_joined(from, is_worker ? std::optional(worker) : std::nullopt);
  }
  if (op == ActorOp::leave) return attached_->expect_end(from);
  if (!process_->actors().has(target)) return;
  const std::uint32_t index = process_->actors().row(target).index;
  const auto mesh = meshes_.find(target - index);
  if (mesh == meshes_.end() || index >= mesh->second.actors.size()) return;
  const Actor& actor = mesh->second.actors[index];
  if (actor.incarnation != call || actor.has_failed) return;  // the actor has failed before
  on_failure(mesh->second, {index}, error);
}

Keeper::Child* Keeper::child_of(PeerId peer) {
  for (auto& [number, child] : children_) {
    if (child.peer == peer) return &child;
  }
  return nullptr;
}

void Keeper::on_joined(PeerId peer, std::optional<LoopWorker> worker) {
  Child* child = child_of(peer);
  if (child == nullptr) {
    if (!on_attached(peer) || !worker) return;
    workers_.joined(*worker, peer);
    return make_beside(*worker);
  }
  if (child->is_alive) return;
  child->is_alive = true;
  if (hosts_ != nullptr) hosts_->set_alive(peer);
  process_->peers().mark(peer.slot, PeerState::alive);
  if (child->host == 0) process_->actors().head().processes.fetch_add(1);
  Mesh& mesh = meshes_.at(child->mesh);
  for (std::size_t i = 0; i < mesh.actors.size(); ++i) {
    if (mesh.actors[i].child == child->number && !mesh.is_ending) make(mesh, i);
  }
}

/// Called when a process that the keeper hasn't started has taken a slot. Returns whether it can
/// receive messages.
bool Keeper::on_attached(PeerId peer) {
  bury_claims();
  const PeerLife life = process_->peers().life(peer.slot);
  if (life != PeerLife{.state = PeerState::joining, .incarnation = peer.incarnation}) return false;
  try {
    process_->node()->peers().current(peer.slot);  // opens its memory, which answers need
    if (!attached_->add(peer)) {
      bury_soon(peer);
      return false;
    }
  } catch (const Error& error) {
    log_once_a_minute(options_.name, error.what());
    bury_soon(peer);
    return false;
  }
  if (hosts_ != nullptr) {
    hosts_->add_process({.peer = peer,
                         .host = 0,
                         .ports = process_->node()->peers().current(peer.slot).port_count(),
                         .role = process_->peers().role(peer.slot)});
    hosts_->set_alive(peer);
  }
  process_->peers().mark(peer.slot, PeerState::alive);
  process_->actors().head().processes.fetch_add(1);
  process_->actors().head().changes.fetch_add(1);
  kick_all();
  return true;
}

void Keeper::on_detached(PeerId peer) {
  process_->actors().head().processes.fetch_sub(1);
  if (const auto worker = workers_.left(peer)) lose_beside(*worker);
  bury_soon(peer);
}

/// Buries processes that have ended between claiming a slot and attaching.
void Keeper::bury_claims() {
  PeerTable& peers = process_->peers();
  for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
    const PeerLife life = peers.life(slot);
    const PeerId peer{.slot = slot, .incarnation = life.incarnation};
    if (life.state == PeerState::joining && child_of(peer) == nullptr && !peers.is_claimed(slot)) {
      bury_soon(peer);
    }
  }
}

void Keeper::bury_soon(PeerId dead) {
  if (hosts_ != nullptr) hosts_->set_dead(dead);
  burials_.push_back(std::make_unique<Burial>(process_->peers(), process_->node()->peers(), dead));
  kick_all();
}

void Keeper::on_made(ActorNumber index, std::size_t actor, std::uint32_t incarnation,
                     const std::optional<Error>& error) {
  const auto found = meshes_.find(index);
  if (found == meshes_.end() || found->second.is_ending) return;
  Mesh& mesh = found->second;
  if (mesh.actors[actor].incarnation != incarnation || mesh.actors[actor].has_failed) return;
  if (error && error->code() == Errc::overloaded) return make_later(mesh, actor);
  if (error) {
    // The process has ended, which is handled as a failure and says more than the lost order.
    if (error->code() != Errc::peer_lost) on_failure(mesh, {actor}, *error);
    return;
  }
  if (!process_of(mesh, mesh.actors[actor])) return;  // its worker was lost since
  mesh.actors[actor].is_made = true;
  set_phase(mesh, actor, ActorPhase::alive);
  kick_all();
  if (mesh.is_ready || !std::ranges::all_of(mesh.actors, &Actor::is_made)) return;
  mesh.is_ready = true;
  mesh.ready.set_value();
}

/// Called when a process has ended or its host is lost. Returns the actors in it.
std::vector<std::size_t> Keeper::lose_child(Child& child) {
  if (child.is_alive && child.host == 0) process_->actors().head().processes.fetch_sub(1);
  child.is_alive = false;
  child.is_running = false;
  bury_soon(child.peer);
  const Mesh& mesh = meshes_.at(child.mesh);
  std::vector<std::size_t> actors;
  for (std::size_t i = 0; i < mesh.actors.size(); ++i) {
    if (mesh.actors[i].child == child.number) actors.push_back(i);
  }
  return actors;
}

void Keeper::on_process_ended(const ProcessEnded& ended) {
  const auto found = children_.find(ended.worker);
  if (found == children_.end()) return;
  Child& child = found->second;
  Mesh& mesh = meshes_.at(child.mesh);
  const std::vector<std::size_t> failed = lose_child(child);
  if (mesh.is_ending) return tell_ended(mesh);
  on_failure(mesh, failed,
             process_ended_error(mesh.is_ready, mesh.name, text_of(hosts_.get(), child, ended.pid),
                                 failed.front(), failed.back(),
                                 child.why_killed.empty() ? text_of(ended) : child.why_killed));
  child.why_killed.clear();
}

void Keeper::on_failure(Mesh& mesh, std::vector<std::size_t> failed, const Error& error) {
  if (mesh.is_ending) return;
  if (!mesh.is_ready) return end_mesh(mesh, error);
  const ActorRestart restarted = mesh.options.supervision.restart;
  if (restarted == ActorRestart::none) return leave_failed(mesh, failed, error);
  if (restarted == ActorRestart::process) {
    Child& child = children_.at(mesh.actors[failed.front()].child);
    if (child.is_running) {  // the end of the process counts as the failure
      child.why_killed = failed_actor_text(error);
      return kill_child(child);
    }
  }
  const auto delay = mesh.supervision.on_failure(Clock::now());
  if (!delay) return give_up(mesh, error);
  process_->actors().set_restarts(mesh.index, mesh.supervision.restarts());
  logger("weft.trainer")
      ->warn("actor system {}: {}; restart {}", options_.name, error.what(),
             mesh.supervision.restarts());
  if (restarted == ActorRestart::mesh) {
    failed.resize(mesh.actors.size());
    for (std::size_t i = 0; i < failed.size(); ++i) failed[i] = i;
  }
  for (const std::size_t i : failed) {
    set_phase(mesh, i, ActorPhase::starting);
    mesh.actors[i].is_made = false;
    mesh.actors[i].has_failed = true;
  }
  call_in(*delay, [this, index = mesh.first, failed] { restart(index, failed); });
}

void Keeper::give_up(Mesh& mesh, const Error& error) {
  if (!mesh.job.id.empty()) {
    JobControl::cancel_job(mesh.job.id,
                           fmt::format("mesh \"{}\" of actors, which lives with the job, "
                                       "has failed: {}",
                                       mesh.name, error.what()));
  }
  // A caller that is told of the end must already see the system's failure.
  if (mesh.options.supervision.then == ActorGivesUp::escalate) fail_system(error);
  end_mesh(mesh, error);
}

/// Ends the actors that have failed, and lets the others run on.
void Keeper::leave_failed(Mesh& mesh, const std::vector<std::size_t>& failed, const Error& error) {
  logger("weft.trainer")
      ->warn("actor system {}: {}; it isn't made again", options_.name, error.what());
  process_->actors().set_cause(
      mesh.index, {.code = static_cast<std::uint8_t>(error.code()), .text = error.what()});
  for (const std::size_t i : failed) {
    Actor& actor = mesh.actors[i];
    actor.has_failed = true;
    set_phase(mesh, i, ActorPhase::ended);
    if (const std::optional<PeerId> process = process_of(mesh, actor)) {
      process_->order(ActorOp::end, number_of(mesh, i), *process, actor.port, MessageWriter(),
                      kEndTimeoutS);
    }
  }
  kick_all();
}

void Keeper::restart(ActorNumber index, const std::vector<std::size_t>& actors) {
  const auto found = meshes_.find(index);
  if (found == meshes_.end() || found->second.is_ending) return;
  Mesh& mesh = found->second;
  for (const std::size_t i : actors) {
    if (!mesh.actors[i].has_failed) continue;
    if (process_of(mesh, mesh.actors[i])) {
      make(mesh, i);
      continue;
    }
    mesh.actors[i].has_failed = false;
    if (mesh.actors[i].worker >= 0) continue;  // the actor is made when its worker joins
    const int number = mesh.actors[i].child;
    if (children_.at(number).is_running) continue;  // the process makes its actors when it joins
    try {
      start_child(children_.at(number));
    } catch (const Error& error) {
      on_failure(mesh, {i}, error);
    }
  }
}

void Keeper::end_mesh(Mesh& mesh, const std::optional<Error>& cause) {
  if (mesh.is_ending) return;
  mesh.is_ending = true;
  if (!mesh.is_ready) {
    mesh.ready.set_exception(std::make_exception_ptr(cause ? *cause : stopped_error(mesh.name)));
  }
  MeshCause written;
  if (cause) written = {.code = static_cast<std::uint8_t>(cause->code()), .text = cause->what()};
  process_->actors().end(mesh.index, written);
  for (std::size_t i = 0; i < mesh.actors.size(); ++i) set_phase(mesh, i, ActorPhase::ended);
  kick_all();  // tells actors to stop even if their lanes are full
  mesh.not_ended = static_cast<int>(mesh.actors.size());
  for (std::size_t i = 0; i < mesh.actors.size(); ++i) order_end(mesh.first, i);
}

/// Orders that an actor is destroyed. Calls on_ended() afterwards, also if the actor doesn't exist.
void Keeper::order_end(ActorNumber index, std::size_t actor) {
  const Mesh& mesh = meshes_.at(index);
  const Actor& its = mesh.actors[actor];
  const std::optional<PeerId> process = process_of(mesh, its);
  if (its.incarnation == 0 || !process) {
    give_back_port(mesh, its);
    return call_soon([this, index] { on_ended(index); });
  }
  const bool is_here = *process == process_->node()->self();
  const auto order = process_->order(ActorOp::end, number_of(mesh, actor), *process, its.port,
                                     MessageWriter(), is_here ? kNoTimeoutS : kEndTimeoutS);
  order->when_done([this, order, index, actor] {
    call_soon([this, error = order->answer().error, index, actor] {
      if (error && error->code() == Errc::overloaded) {
        return call_in(kRetryAfter, [this, index, actor] { order_end(index, actor); });
      }
      Mesh& ending = meshes_.at(index);
      if (!error || error->code() == Errc::peer_lost) {
        give_back_port(ending, ending.actors[actor]);
      } else if (ending.actors[actor].worker >= 0) {
        stuck_.push_back({.worker = worker_of(ending, ending.actors[actor]),
                          .mesh = ending.index,
                          .port = ending.actors[actor].port,
                          .own_thread = ending.options.own_thread});
      }
      on_ended(index);
    });
  });
}

/// Counts the ends of a mesh's actors. After the last actor's end, ends the mesh's processes.
void Keeper::on_ended(ActorNumber index) {
  Mesh& mesh = meshes_.at(index);
  if (--mesh.not_ended > 0) return;
  for (const int number : mesh.children) {
    Child& child = children_.at(number);
    if (child.is_alive) process_->tell_process(child.peer, ActorOp::leave);
    const PeerId peer = child.peer;
    call_in(nanoseconds(child.is_alive ? kEndTimeoutS : 0), [this, peer] {
      const Child* it = child_of(peer);
      if (it != nullptr && it->is_running) kill_child(*it);
    });
  }
  tell_ended(mesh);
}

/// Forgets a mesh if its actors and processes have ended, and tells those that wait for its end.
void Keeper::tell_ended(const Mesh& mesh) {
  if (mesh.not_ended > 0 || runs(mesh)) return;
  auto ended = meshes_.extract(mesh.first);
  release_rows(ended.mapped().index);
  for (const int number : ended.mapped().children) children_.erase(number);
  for (std::promise<void>& each : ended.mapped().ended) each.set_value();
}

bool Keeper::runs(const Mesh& mesh) const {
  return std::ranges::any_of(mesh.children,
                             [&](int number) { return children_.at(number).is_running; });
}

void Keeper::fail_system(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = error;
  }
  logger("weft.trainer")->error("actor system {} has failed: {}", options_.name, error.what());
  for (auto& [index, mesh] : meshes_) end_mesh(mesh, error);
}

void Keeper::look_for_hangs(ActorNumber index) {
  const auto found = meshes_.find(index);
  if (found == meshes_.end() || found->second.is_ending) return;
  const Mesh& mesh = found->second;
  const auto limit = nanoseconds(mesh.options.supervision.hang_timeout_s);
  const Clock::time_point now = Clock::now();
  for (std::size_t i = 0; i < mesh.actors.size(); ++i) {
    const ActorNumber row = number_of(mesh, i);
    const std::uint64_t since = process_->actors().row(row).since_ns.load();
    if (since == 0 || !mesh.actors[i].is_made) continue;
    if (now.time_since_epoch().count() - static_cast<std::int64_t>(since) < limit.count()) continue;
    children_.at(mesh.actors[i].child).why_killed =
        hang_text(process_->actors().name(row), mesh.options.supervision.hang_timeout_s);
    kill_child(children_.at(mesh.actors[i].child));
  }
  call_in(limit / 4, [this, index] { look_for_hangs(index); });
}

/// Ends the mesh if its job has ended; otherwise checks again later.
void Keeper::look_for_end_of_job(ActorNumber index) {
  const auto found = meshes_.find(index);
  if (found == meshes_.end() || found->second.is_ending) return;
  Mesh& mesh = found->second;
  pollfd end{.fd = *mesh.job.end_fd, .events = POLLIN, .revents = 0};
  if (::poll(&end, 1, 0) != 1) {
    return call_in(kJobInterval, [this, index] { look_for_end_of_job(index); });
  }
  end_mesh(mesh, job_ended_error(mesh.name, mesh.job.id));
}

void Keeper::bury() {
  std::erase_if(burials_, [this](const std::unique_ptr<Burial>& burial) {
    try {
      if (hosts_ != nullptr && !hosts_->may_free(burial->dead())) return false;
      if (!burial->finish()) return false;
    } catch (const Error& error) {
      log_once_a_minute(options_.name, error.what());
      return false;
    }
    remove_pipes(id(), burial->dead().slot, burial->dead().incarnation);
    return true;
  });
}

}  // namespace weft
