#include <weft/actor/actor_system.hpp>

#include <atomic>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/keeper/checks.hpp"
#include "actors/keeper/keeper.hpp"
#include "actors/launch/worker_entry.hpp"
#include "actors/relay/actors_agent.hpp"
#include "actors/user/tensor_blocks.hpp"

namespace weft {

namespace {

/// Throws unavailable if this program has had a system on several hosts before, because the other
/// hosts have ended with that one.
void require_first_over_hosts(const std::string& name) {
  static std::atomic<bool> has_been{false};
  if (!has_been.exchange(true)) return;
  fail(Errc::unavailable,
       "actor system \"{}\" is the second one of this program on several hosts, and the other "
       "hosts have ended with the first: make one system, and spawn several meshes in it",
       name);
}

}  // namespace

const std::string& detail::id_of(const ActorSystem& system) { return system.id(); }

ActorSystem::ActorSystem(SystemOptions options) {
  options = checked(std::move(options));
  const HostPlace place = options.hosts ? actors_place(*options.hosts) : HostPlace{};
  if (place.is_agent()) end_worker_process(run_actors_agent(options, place));
  if (place.count > 1) require_first_over_hosts(options.name);
  keeper_ = std::make_unique<Keeper>(std::move(options), place);
}

ActorSystem::~ActorSystem() = default;

std::vector<detail::ActorHandle> ActorSystem::spawn_class(const detail::ActorClass& type,
                                                          const SpawnOptions& options) {
  return keeper_->spawn(type, options);
}

std::shared_ptr<detail::ActorHost> ActorSystem::host() const { return keeper_->process(); }

void ActorSystem::stop(const std::string& mesh) { keeper_->stop(mesh); }

LoanedTensor ActorSystem::loan(const TensorType& type) {
  return loan_tensor(keeper_->process()->node(), type);
}

int ActorSystem::fd() { return keeper_->process()->replies().ready_fd(); }

int ActorSystem::run_ready() { return keeper_->process()->replies().run_ready(); }

ActorCounts ActorSystem::counts() const {
  const ActorTableHead& head = keeper_->process()->actors().head();
  return {.copied_tensors = head.copied_tensors.load(), .lost_tells = head.lost_tells.load()};
}

std::optional<Error> ActorSystem::failure() const { return keeper_->failure(); }

const std::string& ActorSystem::id() const { return keeper_->id(); }

}  // namespace weft
