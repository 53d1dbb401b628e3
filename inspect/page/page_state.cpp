#include "inspect/page/page_state.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspect/page/system_page.hpp"
#include "inspect/views/actor_view.hpp"
#include "inspect/why/stack_places.hpp"
#include "inspect/why/wait_graph.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

Json or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

/// Rounds to a hundredth, so that the JSON changes only when the page would show another number.
Json rounded(const std::optional<double>& number) {
  return number ? Json(std::round(*number * 100) / 100) : Json();
}

Json since(const Snapshot& job, std::int64_t since_ns) {
  if (!job.live || since_ns == 0) return {};
  return static_cast<double>(since_ns) / 1e9;
}

Json to_json(const Snapshot& job, const ActorView& actor, const ActorRow& row) {
  return {{"name", actor.name},
          {"kind", actor.kind},
          {"worker", actor.worker},
          {"chip", actor.chip},
          {"pid", actor.pid},
          {"tid", row.tid},
          {"state", actor.state},
          {"letter", std::string(1, actor.letter)},
          {"since", since(job, row.since_ns)},
          {"step", actor.step},
          {"mailbox", actor.mailbox},
          {"message", actor.message},
          {"doing", actor.doing},
          {"source", row.source},
          {"cores", rounded(actor.cores)},
          {"came_last", or_null(actor.came_last)},
          {"waited_s", or_null(actor.waited_s)}};
}

Json actors_of(const Snapshot& job, const Snapshot* before) {
  const std::vector<ActorView> views = view_actors(job, before);
  Json actors = Json::array();
  for (std::size_t i = 0; i < views.size(); ++i) {
    actors.push_back(to_json(job, views[i], job.rows[i]));
  }
  return actors;
}

/// Returns a row for each host that doesn't answer.
Json silent_hosts_of(const Snapshot& job) {
  Json rows = Json::array();
  for (const HostSight& host : job.hosts) {
    if (host.silence.empty()) continue;
    const double since_s = static_cast<double>(job.at_ns) / 1e9 - host.silent_s;
    rows.push_back({{"name", fmt::format("host {} ({})", host.host, host.machine)},
                    {"kind", "host"},
                    {"worker", -1},
                    {"chip", -1},
                    {"pid", 0},
                    {"tid", 0},
                    {"state", "silent"},
                    {"letter", "?"},
                    {"since", job.live ? rounded(since_s) : Json()},
                    {"step", 0},
                    {"mailbox", 0},
                    {"message", ""},
                    {"doing", host.silence},
                    {"source", ""},
                    {"cores", nullptr},
                    {"came_last", nullptr},
                    {"waited_s", nullptr}});
  }
  return rows;
}

Json frames_of(const std::vector<StackFrame>& stack) {
  Json frames = Json::array();
  for (const StackFrame& frame : stack) {
    frames.push_back(
        {{"function", short_name(frame.function)}, {"file", frame.file}, {"line", frame.line}});
  }
  return frames;
}

/// Returns the stack of the actor's thread; null if the snapshot doesn't have it.
const ThreadStack* stack_of(const Snapshot& job, const ActorRow& row) {
  const ProcessSight* sight = job.sight(job.id_of(row));
  if (sight == nullptr) return nullptr;
  const int tid = row.inside_tid != 0 ? row.inside_tid : row.tid;
  for (const ThreadSight& thread : sight->threads) {
    if (thread.stack.tid == (tid != 0 ? tid : row.pid)) return &thread.stack;
  }
  return nullptr;
}

/// Returns the last numbers that the loop reported, by name. Numbers that aren't finite become
/// null.
Json metrics_of(const Snapshot& job) {
  Json metrics = Json::object();
  for (const ReportedMetric& metric : job.metrics) metrics[metric.name] = metric.value;
  return metrics;
}

/// Returns the chips by their positions in the mesh; no chips if the board has no mesh that fits
/// them.
Json mesh_of(const Snapshot& job) {
  Json json{{"shape", Json::array()}, {"axes", Json::array()}, {"chips", Json::array()}};
  const std::optional<Mesh> mesh = job.mesh();
  if (!mesh || mesh->size() != job.header.num_chips) return json;
  json["shape"] = mesh->shape();
  json["axes"] = mesh->axis_names();
  for (int position = 0; position < mesh->size(); ++position) {
    json["chips"].push_back(mesh->device_at(position));
  }
  return json;
}

}  // namespace

std::string stack_json(const Snapshot& job, const Why& why, const std::string& actor) {
  Json json{{"frames", Json::array()}, {"why_not", "the stack wasn't read"}};
  for (const ActorRow& row : job.rows) {
    if (name_of_node(job, row.index) != actor) continue;
    if (const ThreadStack* stack = stack_of(job, row)) {
      json = {{"frames", frames_of(stack->frames)}, {"why_not", stack->why_not}};
    }
  }
  for (const Root& root : why.roots) {
    if (!json["frames"].empty() || root.actor != actor || root.stack.empty()) continue;
    json = {{"frames", frames_of(root.stack)}, {"why_not", ""}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string page_state(const Snapshot& job, const Why& why, const Snapshot* before,
                       std::span<const SystemSnapshot> systems) {
  const JobView view = view_job(job);
  Json others = silent_hosts_of(job);
  const Json own = page_actors(systems);
  others.insert(others.end(), own.begin(), own.end());
  Json explanation = Json::parse(to_json(why));
  if (explanation["roots"].empty()) explanation.erase("idle_s");
  Json json{{"schema", "weft.page/1"},
            {"job", job.job},
            {"name", job.header.name},
            {"state", view.state},
            {"live", job.live},
            {"over", job.over() || !job.live},
            {"step", view.step},
            {"steps_per_s", or_null(view.steps_per_s)},
            {"loss", or_null(view.loss)},
            {"metrics", metrics_of(job)},
            {"workers", job.header.num_workers},
            {"num_chips", job.header.num_chips},
            {"trainer_pid", job.header.trainer_pid},
            {"started_unix_s", static_cast<double>(job.header.started_unix_ns) / 1e9},
            {"run_dir", job.header.run_dir},
            {"committed", job.control ? Json(job.control->common_step()) : Json()},
            {"generation", job.control ? Json(job.control->generation) : Json()},
            {"ended_by", job.end ? Json(job.end->ended_by) : Json()},
            {"why", std::move(explanation)},
            {"mesh", mesh_of(job)},
            {"actors", actors_of(job, before)}};
  json["actors"].insert(json["actors"].end(), others.begin(), others.end());
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weft
