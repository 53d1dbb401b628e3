#include "actors/keeper/keeper.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <weft/message/aggregate.hpp>
#include <weft/message/containers.hpp>
#include <weft/tensor/error.hpp>

#include "actors/join/child_process.hpp"
#include "actors/keeper/checks.hpp"
#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kBurialInterval{20};

MeshFacts facts_of(const std::string& name, const detail::ActorClass& type,
                   const SpawnOptions& options, const std::string& job) {
  MeshFacts facts{.name = name,
                  .type = type.name(),
                  .count = static_cast<std::uint32_t>(options.count),
                  .max_restarts = options.supervision.max_restarts,
                  .hang_timeout_s = options.supervision.hang_timeout_s,
                  .restart = static_cast<std::uint8_t>(ActorRestart{options.supervision.restart}),
                  .then = static_cast<std::uint8_t>(ActorGivesUp{options.supervision.then}),
                  .own_thread = options.own_thread,
                  .job = job};
  for (const auto& endpoint : type.parts().endpoints) {
    facts.endpoints.emplace_back(endpoint.name);
    facts.schemas.emplace_back(endpoint.schema);
  }
  return facts;
}

}  // namespace

Keeper::Keeper(SystemOptions options, const HostPlace& place)
    : options_(std::move(options)),
      place_(false),
      workers_(static_cast<std::uint32_t>(options_.threads)),
      ports_(static_cast<std::uint32_t>(options_.threads)),
      processes_(
          {}, [](int) {}, options_.name) {
  PeerTable peers = PeerTable::create(id());
  const PeerId self = peers.add();
  WEFT_CHECK(self.slot == kKeeperSlot, self.slot);
  peers.mark(self.slot, PeerState::alive);
  const auto runners = static_cast<std::uint32_t>(options_.threads);
  ActorTable actors =
      ActorTable::create(id(), {.name = options_.name,
                                .threads = runners,
                                .heap_bytes = options_.heap_bytes,
                                .call_timeout_s = options_.call_timeout_s,
                                .host_count = static_cast<std::uint32_t>(place.count)});
  actors.head().processes.store(1);
  process_ =
      detail::ActorProcess::join(std::move(peers), std::move(actors), self,
                                 {.port_count = kPortCountMax,
                                  .runners = runners,
                                  .heap_bytes = options_.heap_bytes,
                                  .call_timeout_s = options_.call_timeout_s},
                                 [this](ActorOp op, PeerId from, std::uint32_t target,
                                        std::uint64_t call, const Error& error) {
                                   call_soon([=, this] { on_news(op, from, target, call, error); });
                                 });
  attached_.emplace(process_->peers());
  if (place.count > 1) {
    hosts_ = std::make_unique<SystemHosts>(
        place, options_, process_->peers(), process_->actors(),
        PeerFacts{.peer = self, .host = 0, .ports = kPortCountMax},
        SystemHosts::Hooks{
            .on_ended =
                [this](const EndedNews& news) {
                  call_soon([this, news] { on_ended_elsewhere(news); });
                },
            .on_lost =
                [this](int host, const std::string& why) {
                  call_soon([this, host, why] { on_host_lost(host, why); });
                },
            .on_hung =
                [this](const HungNews& news) { call_soon([this, news] { on_hung(news); }); }});
  }
  thread_ = start_job_thread("weft.keeper", [this] { run(); });
}

Keeper::~Keeper() {
  std::vector<std::future<void>> ended;
  std::promise<void> asked;
  call_soon([&] {
    for (auto& [index, mesh] : meshes_) {
      ended.push_back(mesh.ended.emplace_back().get_future());
      end_mesh(mesh, std::nullopt);
    }
    asked.set_value();
  });
  asked.get_future().wait();
  for (std::future<void>& each : ended) {
    if (each.wait_for(nanoseconds(2 * kEndTimeoutS)) == std::future_status::ready) continue;
    logger("weft.trainer")
        ->error(
            "actor system {}: an actor of this process hasn't ended after {} "
            "s; waiting for it",
            options_.name, 2 * kEndTimeoutS);
  }
  std::promise<void> told;
  call_soon([&] {
    for (const PeerId peer : attached_->all()) process_->tell_process(peer, ActorOp::leave);
    told.set_value();
  });
  told.get_future().wait();
  process_->stop();
  call_soon([this] { must_stop_ = true; });
  thread_.join();
}

std::optional<Error> Keeper::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Keeper::run() {
  std::vector<pollfd> waits;
  while (!must_stop_) {
    int timeout_ms = run_timers();  // may start processes, so it comes before add_to()
    waits.assign(1, {.fd = commands_.fd(), .events = POLLIN, .revents = 0});
    attached_->add_to(waits);
    const std::size_t first_child = waits.size();
    processes_.add_to(waits);
    if (!burials_.empty() || attached_->expects_end()) {
      const auto interval = static_cast<int>(kBurialInterval.count());
      timeout_ms = timeout_ms < 0 ? interval : std::min(timeout_ms, interval);
    }
    ::poll(waits.data(), waits.size(), timeout_ms);
    for (const PeerId peer : attached_->take_ended(waits.data() + 1)) on_detached(peer);
    processes_.serve(waits.data() + first_child,
                     [this](const ProcessEnded& ended) { on_process_ended(ended); });
    while (auto what = commands_.pop()) attempt(*what);
    bury();
  }
  processes_.clear();
}

/// Calls a function that may fail for lack of memory, threads or descriptors.
void Keeper::attempt(const std::function<void()>& what) const {
  try {
    what();
  } catch (const std::exception& error) {
    log_once_a_minute(options_.name, error.what());
  }
}

void Keeper::call_in(std::chrono::nanoseconds time, std::function<void()> what) {
  timers_.emplace(Clock::now() + time, std::move(what));
}

/// Runs the timers that are due. Returns the milliseconds until the next one; -1 if there is none.
int Keeper::run_timers() {
  for (;;) {
    if (timers_.empty()) return -1;
    const auto wait = timers_.begin()->first - Clock::now();
    if (wait > Clock::duration::zero()) {
      return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
    }
    const std::function<void()> what = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    attempt(what);
  }
}

std::vector<detail::ActorHandle> Keeper::spawn(const detail::ActorClass& type,
                                               const SpawnOptions& options) {
  require_may_wait("spawn()");
  require_valid(type, options);
  require_worker_main(type, options);
  const JobTie job = tie_to(options, mesh_name(type, options), id());
  std::promise<std::vector<detail::ActorHandle>> added;
  std::future<void> ready;
  call_soon([&] {
    try {
      added.set_value(add_mesh(type, options, job, ready));
    } catch (...) {
      added.set_exception(std::current_exception());
    }
  });
  std::vector<detail::ActorHandle> actors = added.get_future().get();
  ready.get();
  return actors;
}

std::vector<detail::ActorHandle> Keeper::add_mesh(const detail::ActorClass& type,
                                                  const SpawnOptions& options, const JobTie& job,
                                                  std::future<void>& ready) {
  if (const auto failed = failure()) throw failed_before_error(*failed);
  const std::string& name = mesh_name(type, options);
  ActorTable& table = process_->actors();
  if (table.find(name)) throw name_taken_error(name);
  require_ports(name, options, job);
  require_host(options, name, hosts_.get());
  const std::uint32_t index = table.add(facts_of(name, type, options, job.id));
  const ActorNumber first = table.number(index, 0);
  Mesh& mesh = meshes_
                   .emplace(first, Mesh{.index = index,
                                        .first = first,
                                        .name = name,
                                        .type = type.name(),
                                        .options = options,
                                        .job = job,
                                        .supervision = MeshSupervision(options.supervision)})
                   .first->second;
  mesh.actors.resize(static_cast<std::size_t>(options.count));
  ready = mesh.ready.get_future();
  std::vector<detail::ActorHandle> handles;
  for (std::size_t i = 0; i < mesh.actors.size(); ++i) {
    handles.push_back({process_, number_of(mesh, i)});
  }
  try {
    place(mesh);
  } catch (const Error& error) {
    on_failure(mesh, {}, error);
  } catch (const std::exception& error) {  // for example, a thread can't be started
    on_failure(mesh, {},
               Error(Errc::unavailable, fmt::format("mesh \"{}\": {}", name, error.what())));
  }
  if (options.supervision.hang_timeout_s > 0) look_for_hangs(first);
  if (!job.id.empty()) look_for_end_of_job(first);
  return handles;
}

ActorNumber Keeper::number_of(const Mesh& mesh, std::size_t index) {
  return mesh.first + static_cast<ActorNumber>(index);
}

LoopWorker Keeper::worker_of(const Mesh& mesh, const Actor& actor) {
  return {.job = job_key(mesh.job.id), .worker = actor.worker};
}

/// Returns the process of an actor; nothing if it doesn't run, or hasn't joined.
std::optional<PeerId> Keeper::process_of(const Mesh& mesh, const Actor& actor) const {
  if (actor.worker >= 0) return workers_.peer(worker_of(mesh, actor));
  if (actor.child < 0) return process_->node()->self();
  const Child& child = children_.at(actor.child);
  return child.is_alive ? std::optional(child.peer) : std::nullopt;
}

void Keeper::set_phase(const Mesh& mesh, std::size_t index, ActorPhase phase) {
  const ActorNumber actor = number_of(mesh, index);
  ActorPosition position = process_->actors().position(actor);
  position.phase = phase;
  process_->actors().set_position(actor, position);
}

/// Makes the next incarnation of an actor. Its process must have joined.
void Keeper::make(Mesh& mesh, std::size_t index) {
  Actor& actor = mesh.actors[index];
  actor.is_made = false;
  actor.has_failed = false;
  ++actor.incarnation;
  process_->actors().set_position(number_of(mesh, index), {.phase = ActorPhase::starting,
                                                           .port = actor.port,
                                                           .incarnation = actor.incarnation,
                                                           .process = *process_of(mesh, actor)});
  order_make(mesh, index);
}

void Keeper::order_make(const Mesh& mesh, std::size_t index) {
  const Actor& actor = mesh.actors[index];
  const std::optional<PeerId> process = process_of(mesh, actor);
  if (!process) return;  // the process has ended since, which is handled later
  if (actor.worker >= 0 && mesh.options.own_thread &&
      !process_->tell_process(*process, ActorOp::run, actor.port)) {
    return make_later(mesh, index);
  }
  MessageWriter body;
  MessageCodec<MakeOrder>::put(body, {.type = mesh.type,
                                      .seed = options_.seed,
                                      .own_thread = mesh.options.own_thread,
                                      .config = config_text(mesh.name, mesh.options.config),
                                      .job = mesh.job.id});
  const auto order = process_->order(ActorOp::make, number_of(mesh, index), *process, actor.port,
                                     body, kMakeTimeoutS);
  order->when_done([this, order, mesh = mesh.first, index, incarnation = actor.incarnation] {
    call_soon([this, error = order->answer().error, mesh, index, incarnation] {
      on_made(mesh, index, incarnation, error);
    });
  });
}

void Keeper::make_later(const Mesh& mesh, std::size_t index) {
  call_in(kRetryAfter,
          [this, mesh = mesh.first, index, incarnation = mesh.actors[index].incarnation] {
            const auto late = meshes_.find(mesh);
            if (late == meshes_.end() || late->second.is_ending) return;
            const Actor& its = late->second.actors[index];
            if (its.incarnation == incarnation && !its.has_failed) order_make(late->second, index);
          });
}

/// Throws invalid_argument on a thread that runs actors of this process. Such a thread must not
/// wait for the keeper, because the keeper may wait for answers of its actors.
void Keeper::require_may_wait(const char* what, const std::string& mesh) const {
  const ThreadRole& role = ThreadRole::current();
  const auto actor = role.actor_in(*process_);
  const bool is_shared = actor && role.port <= static_cast<std::uint32_t>(options_.threads);
  const bool is_of_mesh = actor && !mesh.empty() && process_->mesh_of(*actor).name == mesh;
  if (role.may_block && !is_shared && !is_of_mesh) return;
  throw may_not_wait_error(what,
                           role.actor ? role.host->name(*role.actor) : "a callback of then()");
}

void Keeper::stop(const std::string& name) {
  require_may_wait("stop()", name);
  std::promise<std::future<void>> asked;
  call_soon([&] {
    for (auto& [index, mesh] : meshes_) {
      if (mesh.name != name || mesh.is_ending) continue;
      asked.set_value(mesh.ended.emplace_back().get_future());
      return end_mesh(mesh, std::nullopt);
    }
    asked.set_exception(std::make_exception_ptr(no_mesh_error(name)));
  });
  asked.get_future().get().get();
}

}  // namespace weft
