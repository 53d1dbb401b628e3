#include "inspect/systems/system_views.hpp"

#include <algorithm>
#include <ctime>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "data/files/utf8.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/systems/system_waits.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/why/words.hpp"
#include "transport/lanes/lane_format.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

std::size_t living_processes(const SystemSnapshot& system) {
  return static_cast<std::size_t>(
      std::ranges::count_if(system.processes, [](const SystemProcess& process) {
        return process.process.pid != 0 && !process.process.gone();
      }));
}

std::string_view phase_text(ActorPhase phase) {
  switch (phase) {
    case ActorPhase::starting: return "starting";
    case ActorPhase::alive: return "alive";
    case ActorPhase::ended: return "ended";
    case ActorPhase::none: break;
  }
  return "none";
}

std::string_view kind_text(ActorFunctionKind kind) {
  switch (kind) {
    case ActorFunctionKind::call: return "call";
    case ActorFunctionKind::tell: return "tell";
    case ActorFunctionKind::work: return "work";
    case ActorFunctionKind::make: return "constructor";
    case ActorFunctionKind::none: break;
  }
  return "none";
}

std::uint32_t restarts_of(const SystemActor& actor) {
  return actor.position.incarnation > 0 ? actor.position.incarnation - 1 : 0;
}

/// Returns the state of the actor's process if the process can't continue by itself; otherwise "".
std::string process_trouble(const SystemSnapshot& system, const SystemActor& actor) {
  if (actor.position.process.incarnation == 0) return {};  // the actor isn't placed yet
  const SystemProcess* process = system.process(actor.position.process.slot);
  if (process == nullptr || process->peer != actor.position.process) return "gone";
  if (!is_frozen(system, *process)) return {};
  if (process->state == PeerState::dead || process->process.gone()) return "gone";
  if (process->process.held()) return "held";
  return process->process.stopped() ? "stopped" : "frozen";
}

std::string mailbox_text(const SystemActor& actor) {
  return fmt::format("{}/{}", actor.box, kLaneEntryCount);
}

std::string restarts_text(const SystemMesh& mesh) {
  if (mesh.max_restarts < 0) return fmt::format("{} used", mesh.restarts);
  return fmt::format("{} of {} used", mesh.restarts, mesh.max_restarts);
}

std::string job_text(const SystemJob& job) {
  std::string text = fmt::format("{}  {}", job.label(), job.state);
  if (!job.name.empty()) text += fmt::format("  step {}", job.step);
  for (const LoopRowWait& wait : job.waits) {
    text += fmt::format("  worker {}'s loader has {} in \"{}\"", wait.worker, wait.rows, wait.name);
  }
  return visible(text);
}

/// A version that an actor's process holds, of what the mesh's job publishes.
struct HeldVersion {
  std::string name{};
  std::uint64_t version = 0;
  std::uint64_t lag = 0;  ///< the job's newest version minus this one
};

std::vector<HeldVersion> versions_of(const SystemSnapshot& system, const SystemActor& actor) {
  std::vector<HeldVersion> held;
  const auto job = std::ranges::find(system.jobs, system.meshes[actor.mesh].job, &SystemJob::id);
  if (job == system.jobs.end() || actor.position.process.incarnation == 0) return held;
  for (const VersionStream& stream : job->streams.versions) {
    const auto version = stream.held_by(system.pid(actor.position.process.slot));
    if (!version) continue;
    const std::uint64_t newest = std::max(stream.newest.value_or(0), *version);
    held.push_back({.name = stream.name, .version = *version, .lag = newest - *version});
  }
  return held;
}

/// Returns "  v203  lag 1", with the names if the actor's process holds versions of several.
std::string versions_text(const SystemSnapshot& system, const SystemActor& actor) {
  const std::vector<HeldVersion> held = versions_of(system, actor);
  std::string text;
  for (const HeldVersion& each : held) {
    const std::string name = held.size() > 1 ? visible(each.name) + " " : "";
    text += fmt::format("  {}v{}  lag {}", name, each.version, each.lag);
  }
  return text;
}

Json actor_json(const SystemSnapshot& system, std::uint32_t row) {
  const SystemActor& actor = system.actors[row];
  const bool is_placed = actor.position.process.incarnation != 0;
  Json json{{"name", system.actor_name(row)},
            {"index", actor.index},
            {"process", is_placed ? Json(actor.position.process.slot) : Json()},
            {"pid", is_placed ? Json(system.pid(actor.position.process.slot)) : Json()},
            {"phase", phase_text(actor.position.phase)},
            {"doing", doing_text(system, row)},
            {"incarnation", actor.position.incarnation},
            {"restarts", restarts_of(actor)},
            {"begun", actor.begun},
            {"unread", actor.unread},
            {"box", actor.box},
            {"runs", nullptr},
            {"awaits", nullptr},
            {"pipe", nullptr},
            {"job_wait", nullptr},
            {"versions", Json::array()}};
  if (actor.runs()) {
    const bool has_caller = actor.function.kind == ActorFunctionKind::call ||
                            actor.function.kind == ActorFunctionKind::tell;
    json["runs"] = {{"function", system.function_name(row)},
                    {"kind", kind_text(actor.function.kind)},
                    {"for_s", system.is_held ? Json(system.for_s(actor)) : Json()},
                    {"caller", has_caller ? Json(actor.function.caller) : Json()},
                    {"awaited", actor.is_awaited}};
  }
  if (actor.awaits) {
    json["awaits"] = {
        {"actor", system.actor_name(actor.awaits->row)},
        {"endpoint", system.endpoint_name(actor.awaits->row, actor.awaits->endpoint)}};
  }
  if (actor.pipe) {
    json["pipe"] = {{"writes", actor.pipe->writes}, {"other", nullptr}};
    if (actor.pipe->other.is_known) json["pipe"]["other"] = system.user_name(actor.pipe->other);
  }
  for (const HeldVersion& each : versions_of(system, actor)) {
    json["versions"].push_back({{"name", each.name}, {"version", each.version}, {"lag", each.lag}});
  }
  if (actor.job_wait) {
    json["job_wait"] = {{"writes", actor.job_wait->writes},
                        {"job", actor.job_wait->job},
                        {"name", actor.job_wait->name}};
  }
  return json;
}

std::string remarks_text(const SystemSnapshot& system) {
  std::string text;
  for (const std::string& remark : system.remarks) text += visible(remark) + "\n";
  return text;
}

}  // namespace

std::string systems_text(std::span<const SystemSnapshot> systems) {
  if (systems.empty()) return {};
  Table table({columns::kSystem, columns::kName, columns::kState, columns::kProcesses,
               columns::kMeshes, columns::kActors, columns::kPid, columns::kStarted});
  for (const SystemSnapshot& system : systems) {
    const std::time_t started = system.started_unix_ns / 1'000'000'000;
    table.add({system.id, system.name, system.state(), std::to_string(living_processes(system)),
               std::to_string(system.meshes.size()), std::to_string(system.actor_count()),
               std::to_string(system.pid(0)),
               fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(started))});
  }
  return table.to_string();
}

Json systems_json(std::span<const SystemSnapshot> systems) {
  Json json = Json::array();
  for (const SystemSnapshot& system : systems) {
    json.push_back({{"system", system.id},
                    {"name", system.name},
                    {"state", system.state()},
                    {"processes", living_processes(system)},
                    {"meshes", system.meshes.size()},
                    {"actors", system.actor_count()},
                    {"pid", system.pid(0)},
                    {"started_unix_ns", system.started_unix_ns}});
  }
  return json;
}

std::string doing_text(const SystemSnapshot& system, std::uint32_t row, bool with_time) {
  const SystemActor& actor = system.actors[row];
  if (actor.position.phase == ActorPhase::ended && !actor.runs()) return "ended";
  std::string text = process_trouble(system, actor);
  if (actor.runs()) {
    if (!text.empty()) text += " in ";
    text += system.function_name(row) + "()";
    if (system.is_held && with_time) text += " for " + time_text(system.for_s(actor));
    if (actor.awaits) {
      text += fmt::format(", waits for {}.{}", system.actor_name(actor.awaits->row),
                          system.endpoint_name(actor.awaits->row, actor.awaits->endpoint));
    }
    if (actor.pipe) text += ", waits for " + system.pipe_text(*actor.pipe);
    if (actor.job_wait) text += ", waits for " + SystemSnapshot::job_wait_text(*actor.job_wait);
    return text;
  }
  if (!text.empty()) return text;
  return actor.position.phase == ActorPhase::alive ? "idle"
                                                   : std::string(phase_text(actor.position.phase));
}

std::string system_actors_text(const SystemSnapshot& system) {
  Table table({columns::kActor, columns::kPid, columns::kUnread, columns::kMailbox,
               columns::kRestarts, columns::kBegun, columns::kDoing});
  for (std::uint32_t row = 0; row < system.actors.size(); ++row) {
    const SystemActor& actor = system.actors[row];
    if (!actor.exists()) continue;
    const int pid = system.pid(actor.position.process.slot);
    table.add({system.actor_name(row),
               actor.position.process.incarnation == 0 ? "-" : std::to_string(pid),
               std::to_string(actor.unread), mailbox_text(actor),
               std::to_string(restarts_of(actor)), std::to_string(actor.begun),
               doing_text(system, row)});
  }
  return table.to_string() + remarks_text(system);
}

std::string system_tree_text(const SystemSnapshot& system) {
  const std::size_t living = living_processes(system);
  std::string text =
      visible(fmt::format("{}  {}  {}  pid {}  {} process{}", system.name, system.id,
                          system.state(), system.pid(0), living, living == 1 ? "" : "es")) +
      "\n";
  for (const SystemJob& job : system.jobs) text += "+ job " + job_text(job) + "\n";
  for (const SystemMesh& mesh : system.meshes) {
    std::string line = fmt::format("+ {}  {} x {}  restart {}, {}", mesh.name, mesh.type,
                                   mesh.count, mesh.restart, restarts_text(mesh));
    if (mesh.has_ended) line += mesh.cause.empty() ? "  stopped" : "  failed: " + mesh.cause;
    text += visible(line) + "\n";
    std::size_t width = 0;
    for (std::uint32_t i = 0; i < mesh.count; ++i) {
      width = std::max(width, visible(doing_text(system, mesh.first_row + i)).size());
    }
    for (std::uint32_t i = 0; i < mesh.count; ++i) {
      const SystemActor& actor = system.actors[mesh.first_row + i];
      std::string place = "not placed";
      if (actor.position.process.incarnation != 0) {
        place = fmt::format("pid {}", system.pid(actor.position.process.slot));
      }
      std::string row =
          fmt::format("  + [{}] {}  {:<{}}  mailbox {}", i, place,
                      visible(doing_text(system, mesh.first_row + i)), width, mailbox_text(actor));
      row += versions_text(system, actor);
      if (restarts_of(actor) > 0) row += fmt::format("  restarts {}", restarts_of(actor));
      text += row + "\n";
    }
  }
  return text + remarks_text(system);
}

std::string system_json(const SystemSnapshot& system) {
  Json json{{"schema", "weft.system/1"},   {"system", system.id},
            {"name", system.name},         {"state", system.state()},
            {"pid", system.pid(0)},        {"started_unix_ns", system.started_unix_ns},
            {"processes", Json::array()},  {"meshes", Json::array()},
            {"jobs", Json::array()},       {"open", Json::array()},
            {"unreadable", system.remarks}};
  for (const SystemProcess& process : system.processes) {
    json["processes"].push_back(
        {{"process", process.peer.slot},
         {"incarnation", process.peer.incarnation},
         {"pid", process.process.pid},
         {"alive", process.state == PeerState::alive && !is_frozen(system, process)},
         {"state", describe(process.process)}});
  }
  for (const SystemMesh& mesh : system.meshes) {
    Json actors = Json::array();
    for (std::uint32_t i = 0; i < mesh.count; ++i) {
      actors.push_back(actor_json(system, mesh.first_row + i));
    }
    json["meshes"].push_back({{"name", mesh.name},
                              {"type", mesh.type},
                              {"count", mesh.count},
                              {"own_thread", mesh.own_thread},
                              {"endpoints", mesh.endpoints},
                              {"restart", mesh.restart},
                              {"restarts", mesh.restarts},
                              {"max_restarts", mesh.max_restarts},
                              {"job", mesh.job.empty() ? Json() : Json(mesh.job)},
                              {"then", mesh.escalates ? "escalate" : "stop"},
                              {"ended", mesh.has_ended},
                              {"cause", mesh.cause},
                              {"actors", std::move(actors)}});
  }
  for (const SystemJob& job : system.jobs) {
    Json waits = Json::array();
    for (const LoopRowWait& wait : job.waits) {
      waits.push_back({{"worker", wait.worker},
                       {"experience", wait.name},
                       {"rows", wait.rows},
                       {"for_s", wait.for_s}});
    }
    json["jobs"].push_back({{"job", job.id},
                            {"name", job.name},
                            {"state", job.state},
                            {"step", job.step},
                            {"waits", std::move(waits)}});
  }
  for (const OpenMessages& open : system.open) {
    json["open"].push_back({{"from", open.from},
                            {"actor", system.actor_name(open.row)},
                            {"endpoint", system.endpoint_name(open.row, open.endpoint)},
                            {"count", open.count},
                            {"awaited", open.awaited}});
  }
  return json_text(json);
}

}  // namespace weft
