#include <weft/actor/actor_system.hpp>

#include <utility>

#include "actors/keeper/keeper.hpp"
#include "actors/user/tensor_blocks.hpp"

namespace weft {

const std::string& detail::id_of(const ActorSystem& system) { return system.id(); }

ActorSystem::ActorSystem(SystemOptions options)
    : keeper_(std::make_unique<Keeper>(std::move(options))) {}

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
