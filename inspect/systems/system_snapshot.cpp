#include "inspect/systems/system_snapshot.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weft {

const SystemProcess* SystemSnapshot::process(std::uint32_t slot) const {
  const auto found = std::ranges::find_if(
      processes, [&](const SystemProcess& process) { return process.peer.slot == slot; });
  return found == processes.end() ? nullptr : &*found;
}

int SystemSnapshot::pid(std::uint32_t slot) const {
  const SystemProcess* found = process(slot);
  return found == nullptr ? 0 : found->process.pid;
}

double SystemSnapshot::seconds_since(std::int64_t since_ns) const {
  return static_cast<double>(std::max<std::int64_t>(0, at_ns - since_ns)) * 1e-9;
}

std::size_t SystemSnapshot::actor_count() const {
  return static_cast<std::size_t>(std::ranges::count_if(actors, [](const SystemActor& actor) {
    return actor.exists() && actor.position.phase != ActorPhase::ended;
  }));
}

std::string SystemSnapshot::actor_name(std::uint32_t row) const {
  if (row >= actors.size()) return fmt::format("actor {}", row);
  return fmt::format("{}[{}]", meshes[actors[row].mesh].name, actors[row].index);
}

std::string SystemSnapshot::endpoint_name(std::uint32_t row, std::uint32_t endpoint) const {
  if (row < actors.size()) {
    const std::vector<std::string>& names = meshes[actors[row].mesh].endpoints;
    if (endpoint < names.size()) return names[endpoint];
  }
  return fmt::format("endpoint {}", endpoint);
}

std::string SystemSnapshot::function_name(std::uint32_t row) const {
  const ActorFunction& function = actors.at(row).function;
  switch (function.kind) {
    case ActorFunctionKind::call:
    case ActorFunctionKind::tell: return endpoint_name(row, function.endpoint);
    case ActorFunctionKind::work: return "work";
    case ActorFunctionKind::make: return "constructor";
    case ActorFunctionKind::none: break;
  }
  return "?";
}

std::string SystemSnapshot::pipe_text(const AwaitedPipe& pipe) const {
  const std::string_view wanted = pipe.writes ? "room in a pipe" : "a value of a pipe";
  if (!pipe.other.is_known) return fmt::format("{} whose other end isn't used yet", wanted);
  return fmt::format("{} that {} {}", wanted, user_name(pipe.other),
                     pipe.writes ? "reads" : "writes");
}

std::string SystemSnapshot::job_wait_text(const SystemJobWait& wait) {
  const std::string_view wanted = wait.writes ? "room for rows" : "a version";
  if (wait.name.empty()) return fmt::format("{} of a job", wanted);
  return fmt::format("{} {} \"{}\"", wanted, wait.writes ? "in" : "of", wait.name);
}

std::string SystemSnapshot::user_name(const PipeUser& user) const {
  return user.row == PipeUser::kNoActor ? process_name(user.slot) : actor_name(user.row);
}

std::string SystemSnapshot::process_name(std::uint32_t slot) {
  return slot == 0 ? "the program" : fmt::format("process {}", slot);
}

std::string SystemSnapshot::state() const {
  if (!is_held) return "dead";
  const auto any = [&](bool (ProcessState::*is)() const) {
    return std::ranges::any_of(processes, [&](const SystemProcess& process) {
      return process.process.pid != 0 && (process.process.*is)();
    });
  };
  if (any(&ProcessState::held)) return "held";
  if (any(&ProcessState::stopped)) return "stopped";
  const bool has_failed = std::ranges::any_of(
      meshes, [](const SystemMesh& mesh) { return mesh.escalates && !mesh.cause.empty(); });
  return has_failed ? "failed" : "running";
}

}  // namespace weft
