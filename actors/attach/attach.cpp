#include <chrono>
#include <cmath>
#include <set>
#include <thread>
#include <utility>

#include <fmt/ranges.h>

#include <weft/actor/attach.hpp>
#include <weft/tensor/error.hpp>

#include "actors/attach/attached_host.hpp"
#include "actors/join/claimed_process.hpp"
#include "inspect/systems/system_reader.hpp"
#include "transport/job/post_socket.hpp"
#include "transport/memory/life_lock.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// The time that the keeper has to accept a program. It needs only milliseconds, unless its process
/// is stopped or overloaded.
constexpr std::chrono::seconds kAcceptWithin{10};

struct FoundSystems {
  std::vector<std::string> ids{};  ///< running systems whose host 0 is this host
  /// This host's number in a system with that name whose host 0 is another host; 0: there is none.
  std::uint32_t other_host = 0;
};

FoundSystems running_systems(std::string_view asked) {
  FoundSystems found;
  for (std::string& id : find_actor_systems(asked)) {
    if (!system_runs(id)) continue;
    try {
      const std::uint32_t host = ActorTable::open(id).head().host;
      if (host != 0) {
        found.other_host = host;
        continue;
      }
    } catch (const Error&) {  // attach() reports why it can't be opened
    }
    found.ids.push_back(std::move(id));
  }
  return found;
}

std::string names_of(const std::vector<std::string>& ids) {
  std::vector<std::string> names;
  for (const std::string& id : ids) {
    try {
      names.push_back(fmt::format("{} ({})", ActorTable::open(id).head().name, id.substr(0, 8)));
    } catch (const Error&) {
      continue;  // the system has ended since
    }
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// Returns the id of the only running system with this name or beginning of its id. Waits for that
/// system up to `wait_s` seconds. Throws not_found, unavailable on another host of the system, and
/// invalid_argument if there are several.
std::string find_running(std::string_view asked, double wait_s) {
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(wait_s));
  FoundSystems found;
  for (;;) {
    found = running_systems(asked);
    const std::vector<std::string>& ids = found.ids;
    if (ids.size() == 1) return ids.front();
    if (ids.size() > 1) {
      fail(Errc::invalid_argument,
           "attach(\"{}\"): {} actor systems have this name: {}; give the first digits of an id",
           asked, ids.size(), names_of(ids));
    }
    if (Clock::now() >= until) break;
    std::this_thread::sleep_for(kSleepSlice);
  }
  if (found.other_host != 0) {
    fail(Errc::unavailable,
         "attach(\"{}\"): this machine is host {} of the actor system, and only programs on host 0 "
         "can attach in this version: start the program there",
         asked, found.other_host);
  }
  fail(
      Errc::not_found,
      "attach(\"{}\"): this user has no running actor system of this name on this host; those that "
      "run: {}. SystemOptions::name gives a system its name",
      asked, names_of(running_systems("").ids));
}

void require_valid(std::string_view asked, const AttachOptions& options) {
  if (asked.empty()) {
    fail(Errc::invalid_argument,
         "attach(\"\"): expected the name of an actor system, or the first digits of its id");
  }
  constexpr std::size_t kHeapMin = std::size_t{1} << 20;
  constexpr std::size_t kHeapMax = std::size_t{1} << 40;
  if (options.heap_bytes < kHeapMin || options.heap_bytes > kHeapMax) {
    fail(Errc::invalid_argument,
         "attach(\"{}\"): AttachOptions::heap_bytes = {}: expected {} to {}", asked,
         options.heap_bytes, kHeapMin, kHeapMax);
  }
  if (!(options.wait_s >= 0) || !(options.wait_s < 1e9) || !(options.call_timeout_s > 0)) {
    fail(Errc::invalid_argument,
         "attach(\"{}\"): AttachOptions{{wait_s = {}, call_timeout_s = {}}}: expected 0 to 1e9 "
         "seconds, and more than 0 seconds",
         asked, options.wait_s, options.call_timeout_s);
  }
}

/// Waits until the keeper has accepted this process.
void await_acceptance(detail::ActorProcess& process, PeerId self, const std::string& id) {
  const auto until = Clock::now() + kAcceptWithin;
  ActorTableHead& head = process.actors().head();
  for (;;) {
    const std::uint32_t changes = head.changes.load(std::memory_order_seq_cst);
    const PeerLife life = process.peers().life(self.slot);  // once, since it may change at any time
    if (life == PeerLife{.state = PeerState::alive, .incarnation = self.incarnation}) return;
    if (life != PeerLife{.state = PeerState::joining, .incarnation = self.incarnation}) {
      fail(Errc::unavailable,
           "attach: the program of actor system {} has refused this one; its log says why", id);
    }
    if (!system_runs(id)) fail(Errc::unavailable, "attach: actor system {} has ended", id);
    if (Clock::now() >= until) {
      fail(Errc::unavailable,
           "attach: the program of actor system {} (pid {}) didn't answer within {} s; "
           "`weft inspect why {}` shows why",
           id, process.peers().pid(kKeeperSlot), kAcceptWithin.count(), id.substr(0, 8));
    }
    sleep_on(head.changes, changes, kSleepSlice);
  }
}

}  // namespace

AttachedSystem attach(std::string_view system, const AttachOptions& options) {
  require_valid(system, options);
  const std::string id = find_running(system, options.wait_s);
  auto end = std::make_shared<WakeFd>();
  auto process =
      join_by_claim(id,
                    {.port_count = 1,
                     .runners = 0,
                     .heap_bytes = options.heap_bytes,
                     .call_timeout_s = options.call_timeout_s},
                    [end](ActorOp op, PeerId, std::uint32_t, std::uint64_t, const Error&) {
                      if (op == ActorOp::leave) end->wake();
                    });
  await_acceptance(*process, process->node()->self(), id);
  return AttachedSystem(std::make_shared<detail::AttachedHost>(std::move(process), std::move(end)));
}

AttachedSystem::AttachedSystem(AttachedSystem&&) noexcept = default;

AttachedSystem& AttachedSystem::operator=(AttachedSystem&& other) noexcept {
  std::swap(host_, other.host_);
  return *this;
}

AttachedSystem::~AttachedSystem() {
  if (host_ != nullptr) host_->detach();
}

std::vector<detail::ActorHandle> AttachedSystem::find_handles(std::string_view mesh,
                                                              std::string_view type) const {
  return detail::find_actors(host_, mesh, type);
}

std::vector<std::string> AttachedSystem::meshes() const {
  std::vector<std::string> names;
  for (const detail::MeshOfActors& mesh : host_->meshes()) names.push_back(mesh.name);
  return names;
}

std::shared_ptr<detail::ActorHost> AttachedSystem::host() const { return host_; }

LoanedTensor AttachedSystem::loan(const TensorType& type) const { return host_->loan(type); }

std::uint64_t AttachedSystem::post(const Command& command, double timeout_s,
                                   std::string_view job) const {
  if (!(timeout_s >= 0) || !(timeout_s < 1e9)) {
    fail(Errc::invalid_argument, "post(\"{}\"): timeout_s = {}: expected 0 to 1e9 seconds",
         command.name, timeout_s);
  }
  const ActorTable& actors = host_->process().actors();
  std::set<std::string> jobs;
  for (std::uint32_t mesh = 0; mesh < actors.mesh_count(); ++mesh) {
    if (actors.mesh(mesh).is_ended.load() == 0) jobs.insert(actors.job(mesh));
  }
  jobs.erase("");
  std::set<std::string> fitting = jobs;
  std::erase_if(fitting, [&](const auto& id) { return !id.starts_with(job); });
  if (fitting.size() != 1) {
    fail(fitting.empty() ? Errc::not_found : Errc::invalid_argument,
         "post(\"{}\"): job = \"{}\" fits {} of the jobs that meshes of actor system {} live with: "
         "expected 1; these jobs are: {}",
         command.name, job, fitting.size(), name(),
         jobs.empty() ? "none (SpawnOptions::lives_with)"
                      : fmt::format("{}", fmt::join(jobs, ", ")));
  }
  const auto step =
      post_command(*fitting.begin(), command.name, command.payload,
                   std::chrono::milliseconds(std::llround(std::ceil(1000 * timeout_s))));
  if (!step) {
    fail(Errc::timeout,
         "post(\"{}\"): not all loops of job {} have read it within {} s; it stays posted, and a "
         "loop reads it when it calls ctx.commands()",
         command.name, *fitting.begin(), timeout_s);
  }
  return *step;
}

int AttachedSystem::fd() { return host_->process().replies().ready_fd(); }

int AttachedSystem::run_ready() { return host_->process().replies().run_ready(); }

const std::string& AttachedSystem::id() const { return host_->process().peers().system(); }

std::string AttachedSystem::name() const { return host_->process().actors().head().name; }

bool AttachedSystem::has_ended() const { return host_->has_ended(); }

}  // namespace weft
