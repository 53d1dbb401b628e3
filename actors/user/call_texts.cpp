#include <algorithm>

#include <weft/tensor/error.hpp>

#include "actors/user/actor_process.hpp"
#include "actors/user/registry.hpp"

namespace weft::detail {
namespace {

/// Sets `running` and `busy_s` if a function of the actor runs. Returns whether one does.
bool find_running(const ActorTable& table, ActorNumber actor, UnansweredCall& why) {
  const ActorTableRow& row = table.row(actor);
  const std::uint64_t since = row.since_ns.load(std::memory_order_acquire);
  if (since == 0) return false;
  why.running =
      table.function_name(actor, ActorFunction::of(row.function.load(std::memory_order_relaxed)));
  const auto now =
      static_cast<std::uint64_t>(ActorProcess::Clock::now().time_since_epoch().count());
  why.busy_s = static_cast<double>(now - std::min(now, since)) * 1e-9;
  return true;
}

/// Sets the function that another actor runs on the thread of this one, if there is one.
void find_running_beside(const ActorTable& table, ActorNumber actor, UnansweredCall& why) {
  const ActorPosition at = table.position(actor);
  for (std::uint32_t row = 0; row < table.row_count(); ++row) {
    const ActorNumber other = table.number_in(row);
    const ActorPosition its = table.position(other);
    if (its.process != at.process || its.port != at.port) continue;
    if (!find_running(table, other, why)) continue;
    why.shared_thread = fmt::format("thread {} of process {}", at.port, at.process.slot);
    return;
  }
}

}  // namespace

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
  const EndpointEntry* endpoint = endpoint_of(call);
  UnansweredCall why{.is_being_made = actors().position(row).phase == ActorPhase::starting,
                     .replies_later = endpoint != nullptr && endpoint->replies_later};
  if (actors().has(row) && !find_running(actors(), row, why)) {
    find_running_beside(actors(), row, why);
  }
  return no_answer_error(name_of(call), call.timeout_s, why);
}

Error ActorProcess::ended_error(std::uint32_t row) const {
  const MeshCause cause = members_->actors.cause(row);
  return mesh_ended_error(name(row), cause.code, cause.text);
}

}  // namespace weft::detail
