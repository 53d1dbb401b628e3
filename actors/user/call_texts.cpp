#include <algorithm>

#include <weft/tensor/error.hpp>

#include "actors/user/actor_process.hpp"
#include "actors/user/registry.hpp"

namespace weft::detail {

/// Returns the endpoint of a call; null if this process doesn't know the actor's class.
const EndpointEntry* ActorProcess::endpoint_of(const ActorCall& call) {
  if (call.what.op != ActorOp::call || !actors().has(call.what.row)) return nullptr;
  try {
    return &find_actor_class(actors().type(call.what.row))
                .parts()
                .endpoints.at(call.what.endpoint.index);
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::string ActorProcess::name_of(const ActorCall& call) {
  const EndpointEntry* endpoint = endpoint_of(call);
  const std::string name = actors().name(call.what.row);
  return endpoint == nullptr ? name : fmt::format("{}.{}", name, endpoint->name);
}

/// Returns "its process". In a system on several hosts the text also has the process's slot and
/// host.
std::string ActorProcess::name_of(PeerId process) const {
  if (members_->actors.head().host_count == 1) return "its process";
  return fmt::format("its process (slot {}, on host {})", process.slot,
                     members_->peers.host(process.slot));
}

Error ActorProcess::timeout_error(const ActorCall& call) {
  const std::uint32_t row = call.what.row;
  const std::uint64_t since =
      actors().has(row) ? actors().row(row).since_ns.load(std::memory_order_acquire) : 0;
  const EndpointEntry* endpoint = endpoint_of(call);
  UnansweredCall why{.is_being_made = actors().position(row).phase == ActorPhase::starting,
                     .replies_later = endpoint != nullptr && endpoint->replies_later};
  if (since != 0) {
    const auto now = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
    why.busy_s = static_cast<double>(now - std::min(now, since)) * 1e-9;
  }
  return no_answer_error(name_of(call), call.timeout_s, why);
}

Error ActorProcess::ended_error(std::uint32_t row) const {
  const MeshCause cause = members_->actors.cause(row);
  return mesh_ended_error(name(row), cause.code, cause.text);
}

}  // namespace weft::detail
