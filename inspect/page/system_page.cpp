#include "inspect/page/system_page.hpp"

#include <array>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspect/page/metrics.hpp"
#include "inspect/process/stack.hpp"
#include "inspect/systems/system_views.hpp"
#include "inspect/systems/system_waits.hpp"
#include "inspect/why/stack_places.hpp"
#include "transport/blackbox/box_clock.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

bool is_shown(const SystemActor& actor) {
  return actor.position.phase == ActorPhase::alive || actor.position.phase == ActorPhase::starting;
}

/// Returns the state of an actor as one of the page's states.
std::string page_state_of(const SystemSnapshot& system, const SystemActor& actor) {
  const SystemProcess* process = system.process(actor.position.process.slot);
  const bool is_placed = actor.position.process.incarnation != 0;
  if (!system.is_held) return "gone";
  if (is_placed && (process == nullptr || process->peer != actor.position.process)) return "gone";
  if (is_placed && is_frozen(system, *process)) {
    if (process->process.held()) return "held";
    return process->process.gone() || process->state == PeerState::dead ? "gone" : "stopped";
  }
  if (actor.awaits) return "waiting";
  if (actor.runs()) return "running";
  return actor.position.phase == ActorPhase::alive ? "idle" : "starting";
}

/// Returns a time as seconds of CLOCK_BOOTTIME, which the page uses for all times; null if it is 0.
Json since_json(std::int64_t monotonic_ns) {
  if (monotonic_ns == 0) return {};
  static const std::int64_t offset = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
  return static_cast<double>(monotonic_ns + offset) / 1e9;
}

/// Calls `use` with the labels of each actor that is shown.
template <typename Use>
void for_each_actor(std::span<const SystemSnapshot> systems, Use use) {
  for (const SystemSnapshot& system : systems) {
    for (std::uint32_t row = 0; row < system.actors.size(); ++row) {
      if (!is_shown(system.actors[row])) continue;
      use(system, system.actors[row],
          fmt::format("{{system={},actor={}}}", label_value(system.id),
                      label_value(system.actor_name(row))));
    }
  }
}

}  // namespace

Json page_actors(std::span<const SystemSnapshot> systems) {
  Json rows = Json::array();
  for (const SystemSnapshot& system : systems) {
    for (std::uint32_t row = 0; row < system.actors.size(); ++row) {
      const SystemActor& actor = system.actors[row];
      if (!is_shown(actor)) continue;
      const std::uint32_t incarnation = actor.position.incarnation;
      rows.push_back({{"name", system.actor_name(row)},
                      {"kind", "actor"},
                      {"worker", -1},
                      {"chip", -1},
                      {"pid", system.pid(actor.position.process.slot)},
                      {"tid", actor.tid},
                      {"state", page_state_of(system, actor)},
                      {"letter", "."},
                      {"since", since_json(actor.since_ns)},
                      {"step", 0},
                      {"mailbox", actor.unread},
                      {"box", actor.box},
                      {"restarts", incarnation > 0 ? incarnation - 1 : 0},
                      {"message", ""},
                      {"doing", doing_text(system, row, false)},
                      {"source", ""},
                      {"cores", nullptr},
                      {"came_last", nullptr},
                      {"waited_s", nullptr}});
    }
  }
  return rows;
}

std::string system_page_state(const SystemSnapshot& system, const Why& why) {
  Json explanation = Json::parse(to_json(why));
  if (explanation["roots"].empty()) explanation.erase("idle_s");
  const Json json{
      {"schema", "weft.page/1"},
      {"job", system.id},
      {"name", system.name},
      {"state", system.state()},
      {"live", system.is_held},
      {"over", !system.is_held},
      {"step", 0},
      {"steps_per_s", nullptr},
      {"loss", nullptr},
      {"metrics", Json::object()},
      {"workers", 0},
      {"num_chips", 0},
      {"trainer_pid", system.pid(0)},
      {"started_unix_s", static_cast<double>(system.started_unix_ns) / 1e9},
      {"run_dir", ""},
      {"committed", nullptr},
      {"generation", nullptr},
      {"ended_by", nullptr},
      {"why", std::move(explanation)},
      {"mesh", {{"shape", Json::array()}, {"axes", Json::array()}, {"chips", Json::array()}}},
      {"actors", page_actors(std::span(&system, 1))}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string system_stack_json(const SystemSnapshot& system, const std::string& actor) {
  Json json{{"frames", Json::array()}, {"why_not", "the actor has no thread that can be read"}};
  for (std::uint32_t row = 0; row < system.actors.size(); ++row) {
    const SystemActor& found = system.actors[row];
    const SystemProcess* process = system.process(found.position.process.slot);
    if (system.actor_name(row) != actor || process == nullptr ||
        process->process.thread(found.tid) == nullptr) {
      continue;
    }
    for (const ThreadStack& stack : read_stacks(process->process.pid, std::array{found.tid})) {
      json["why_not"] = stack.why_not;
      for (const StackFrame& frame : stack.frames) {
        json["frames"].push_back(
            {{"function", short_name(frame.function)}, {"file", frame.file}, {"line", frame.line}});
      }
    }
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string system_metrics_text(std::span<const SystemSnapshot> systems) {
  std::string text;
  if (systems.empty()) return text;
  begin_metric(text, "weft_actor_system_info", "gauge", "An actor system; always 1.");
  for (const SystemSnapshot& system : systems) {
    text +=
        fmt::format("weft_actor_system_info{{system={},name={},state={}}} 1\n",
                    label_value(system.id), label_value(system.name), label_value(system.state()));
  }
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       auto value) {
    begin_metric(text, name, type, help);
    for_each_actor(systems, [&](const SystemSnapshot& system, const SystemActor& actor,
                                const std::string& labels) {
      text += fmt::format("{}{} {}\n", name, labels, value(system, actor));
    });
  };
  add("weft_actor_unread_messages", "gauge", "Messages that an actor hasn't begun.",
      [](const SystemSnapshot&, const SystemActor& actor) { return actor.unread; });
  add("weft_actor_box_messages", "gauge",
      "Messages, of the process that has most of them, that wait for an actor's thread; at most "
      "64.",
      [](const SystemSnapshot&, const SystemActor& actor) { return actor.box; });
  add("weft_actor_busy_seconds", "gauge",
      "Time for which the function of an actor has run; 0 if none runs.",
      [](const SystemSnapshot& system, const SystemActor& actor) {
        return actor.runs() && system.is_held ? system.for_s(actor) : 0.0;
      });
  add("weft_actor_functions_total", "counter", "Functions that an actor has begun.",
      [](const SystemSnapshot&, const SystemActor& actor) { return actor.begun; });
  add("weft_actor_restarts_total", "counter", "How often an actor was made again.",
      [](const SystemSnapshot&, const SystemActor& actor) {
        return actor.position.incarnation > 0 ? actor.position.incarnation - 1 : 0;
      });
  return text;
}

}  // namespace weft
