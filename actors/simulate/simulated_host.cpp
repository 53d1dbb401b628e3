#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/simulate/simulated_process.hpp"
#include "actors/table/actor_protocol.hpp"

namespace weft {
namespace {

constexpr std::size_t kAlignment = 64;

/// The deleter of a loaned HostTensor's owner. It shows that the tensor was loaned.
struct SimulatedLoan {
  void operator()(const void* bytes) const noexcept {
    ::operator delete (const_cast<void*>(bytes), std::align_val_t{kAlignment});
  }
};

LoanedTensor loaned(const TensorType& type) {
  const auto bytes = static_cast<std::size_t>(type.bytes());
  auto* begin = static_cast<std::byte*>(
      ::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{kAlignment}));
  std::shared_ptr<const void> owner(begin, SimulatedLoan{});
  return {std::span(begin, bytes),
          HostTensor(ConstElementSpan(type.dtype, begin, type.shape.num_elements()), type.shape,
                     std::move(owner))};
}

}  // namespace

LoanedTensor SimulatedProcess::loan(const TensorType& type) { return loaned(type); }

/// Packs a message's bytes and tensors. Copies the tensors that weren't loaned.
SimulatedMessage SimulatedProcess::packed(const MessageWriter& body) {
  SimulatedMessage message;
  const std::span<const std::byte> bytes = body.bytes();
  message.bytes.assign(bytes.begin(), bytes.end());
  for (const HostTensor& tensor : body.tensors()) {
    const TensorType type{tensor.elements.dtype(), tensor.shape};
    const auto size = static_cast<std::size_t>(type.bytes());
    HostTensor sent = tensor;
    if (std::get_deleter<SimulatedLoan>(tensor.owner) == nullptr) {
      LoanedTensor copy = loaned(type);
      if (size > 0) std::memcpy(copy.bytes().data(), tensor.elements.data(), size);
      sent = std::move(copy).finish();
      ++simulation_->counts().copied_tensors;
    }
    const auto* data = reinterpret_cast<const std::byte*>(sent.elements.data());
    message.payloads.push_back({.bytes = std::span(data, size), .owner = sent.owner});
  }
  return message;
}

std::size_t SimulatedProcess::least_busy(const std::vector<detail::ActorHandle>& actors) {
  std::vector<std::size_t> best;
  int fewest = 0;
  for (std::size_t i = 0; i < actors.size(); ++i) {
    const int open = open_calls_[actors[i].row];
    if (best.empty() || open < fewest) {
      best.clear();
      fewest = open;
    }
    if (open == fewest) best.push_back(i);
  }
  return best[simulation_->draw(best.size())];
}

detail::MeshOfActors SimulatedProcess::mesh_of(std::uint32_t row) const {
  SimulatedKeeper& keeper = simulation_->keeper();
  if (row >= keeper.row_count()) throw no_such_actor_error(row, keeper.row_count());
  const SimulatedMesh& mesh = keeper.mesh_of(row);
  return {.name = mesh.name,
          .type = mesh.type->name(),
          .first_row = mesh.first_row,
          .count = static_cast<std::uint32_t>(mesh.options.count)};
}

std::vector<detail::MeshOfActors> SimulatedProcess::meshes() const {
  std::vector<detail::MeshOfActors> all;
  for (const SimulatedMesh& mesh : simulation_->keeper().meshes()) {
    if (!mesh.is_ending) all.push_back(mesh_of(mesh.first_row));
  }
  return all;
}

// --- Texts ---

std::string SimulatedProcess::endpoint_name(std::uint32_t row, std::uint32_t endpoint) const {
  const auto& endpoints = simulation_->keeper().mesh_of(row).type->parts().endpoints;
  return fmt::format("{}.{}", name(row),
                     endpoint < endpoints.size() ? endpoints[endpoint].name : "?");
}

std::string SimulatedProcess::function_name(std::uint32_t row,
                                            const ActorFunction& function) const {
  if (function.kind == ActorFunctionKind::work) return name(row) + ".work";
  if (function.kind == ActorFunctionKind::make) return name(row) + ".constructor";
  return endpoint_name(row, function.endpoint);
}

std::string SimulatedProcess::name_of(const ActorCall& call) const {
  return endpoint_name(call.what.row, call.what.endpoint.index);
}

bool SimulatedProcess::find_running(std::uint32_t row, UnansweredCall& why) const {
  const SimulatedRow& actor = simulation_->keeper().row(row);
  if (!actor.since) return false;
  why.running = function_name(row, actor.function);
  why.busy_s = std::chrono::duration<double>(now() - *actor.since).count();
  return true;
}

/// Sets the function that another actor runs on the thread of this one, if there is one.
void SimulatedProcess::find_running_beside(std::uint32_t row, UnansweredCall& why) const {
  SimulatedKeeper& keeper = simulation_->keeper();
  const ActorPosition at = keeper.row(row).position;
  for (std::uint32_t other = 0; other < keeper.row_count(); ++other) {
    const ActorPosition its = keeper.row(other).position;
    if (its.process != at.process || its.port != at.port || !find_running(other, why)) continue;
    why.shared_thread = fmt::format("thread {} of process {}", at.port, at.process.slot);
    return;
  }
}

Error SimulatedProcess::timeout_error(const ActorCall& call) const {
  const SimulatedRow& row = simulation_->keeper().row(call.what.row);
  const auto& endpoints = simulation_->keeper().mesh_of(call.what.row).type->parts().endpoints;
  UnansweredCall why{.is_being_made = row.position.phase == ActorPhase::starting,
                     .replies_later = endpoints.at(call.what.endpoint.index).replies_later};
  if (!find_running(call.what.row, why)) find_running_beside(call.what.row, why);
  return no_answer_error(name_of(call), call.timeout_s, why);
}

Error SimulatedProcess::ended_error(std::uint32_t row) const {
  const std::optional<Error>& cause = simulation_->keeper().mesh_of(row).cause;
  if (!cause) return mesh_ended_error(name(row), 0, "");
  return mesh_ended_error(name(row), static_cast<std::uint8_t>(cause->code()), cause->what());
}

/// Returns the circle of waits that the actor closes; "" if there is none. See waits.hpp.
std::string SimulatedProcess::circle_of(std::uint32_t waiter, AwaitedCall awaited) const {
  SimulatedKeeper& keeper = simulation_->keeper();
  std::string text = function_name(waiter, keeper.row(waiter).function);
  for (int length = 0; length < kCircleLengthMax; ++length) {
    if (awaited.number == 0) return "";
    text += " > " + endpoint_name(awaited.row, awaited.endpoint);
    const SimulatedRow& row = keeper.row(awaited.row);
    const auto& endpoints = keeper.mesh_of(awaited.row).type->parts().endpoints;
    if (!row.awaited || endpoints.at(awaited.endpoint).replies_later ||
        !simulation_->is_alive(row.position.process) || simulation_->has_answer(awaited.number)) {
      return "";
    }
    if (awaited.row == waiter) return text;
    awaited = *row.awaited;
  }
  return "";
}

}  // namespace weft
