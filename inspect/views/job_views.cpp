#include "inspect/views/job_views.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "data/files/utf8.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/actor_view.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/views/mesh_grid.hpp"
#include "inspect/why/hang.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

Json or_null(double seconds) { return seconds < 0 ? Json() : Json(seconds); }
Json or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

Json to_json(const ActorView& actor) {
  return {{"name", actor.name},
          {"kind", actor.kind},
          {"worker", actor.worker},
          {"chip", actor.chip},
          {"pid", actor.pid},
          {"state", actor.state},
          {"step", actor.step},
          {"mailbox", actor.mailbox},
          {"message", actor.message},
          {"doing", actor.doing},
          {"came_last", or_null(actor.came_last)},
          {"waited_s", or_null(actor.waited_s)},
          {"for_s", or_null(actor.for_s)}};
}

Json head_json(const Snapshot& job) {
  const JobView view = view_job(job);
  return {{"job", job.job},
          {"name", job.header.name},
          {"state", view.state},
          {"for_s", or_null(view.for_s)},
          {"step", view.step},
          {"steps_per_s", or_null(view.steps_per_s)},
          {"loss", view.loss && std::isfinite(*view.loss) ? Json(*view.loss) : Json()},
          {"workers", job.header.num_workers},
          {"chips", job.header.num_chips},
          {"trainer_pid", job.header.trainer_pid},
          {"started_unix_ns", job.header.started_unix_ns},
          {"run_dir", job.header.run_dir}};
}

/// Returns whether the job's mesh has several hosts.
bool has_hosts(const BoardHeader& header) {
  return std::ranges::any_of(header.dcn_shape, [](std::int64_t hosts) { return hosts > 1; });
}

std::string mesh_words(const BoardHeader& header) {
  if (header.mesh_shape.empty()) return "none";
  std::string text = fmt::format("({}) (\"{}\")", fmt::join(header.mesh_shape, ","),
                                 fmt::join(header.axis_names, "\",\""));
  if (has_hosts(header)) text += fmt::format(" of ({}) hosts", fmt::join(header.dcn_shape, ","));
  return text;
}

std::string started_text(const BoardHeader& header) {
  const std::time_t started = header.started_unix_ns / 1'000'000'000;
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(started));
}

std::string dash(int number) { return number < 0 ? "-" : std::to_string(number); }

}  // namespace

std::string ps_text(std::span<const Snapshot> jobs) {
  if (jobs.empty()) return "no jobs\n";
  Table table({columns::kJob, columns::kName, columns::kState, columns::kFor, columns::kStep,
               columns::kRate, columns::kLoss, columns::kWorkers, columns::kChips, columns::kPid,
               columns::kStarted});
  for (const Snapshot& job : jobs) {
    const JobView view = view_job(job);
    table.add({job.job, job.header.name, view.state, for_text(view.for_s),
               std::to_string(view.step), rate_text(view), loss_text(view),
               std::to_string(job.header.num_workers), std::to_string(job.header.num_chips),
               std::to_string(job.header.trainer_pid), started_text(job.header)});
  }
  return table.to_string();
}

std::string ps_json(std::span<const Snapshot> jobs, const Json& systems) {
  Json json{{"schema", "weft.ps/1"}, {"jobs", Json::array()}, {"systems", systems}};
  for (const Snapshot& job : jobs) json["jobs"].push_back(head_json(job));
  return json_text(json);
}

std::string show_text(const Snapshot& job) {
  const JobView view = view_job(job);
  const BoardHeader& header = job.header;
  const auto line = [](std::string_view label, const std::string& text) {
    return fmt::format("{:<12} {}\n", label, visible(text));
  };
  std::string state = view.state;
  if (view.for_s >= 0) state += " for " + for_text(view.for_s);
  std::string text =
      line("job", fmt::format("{}  {}", job.job, header.name)) + line("state", state);
  text += line("step", std::to_string(view.step));
  if (view.steps_per_s) text += line("steps/s", rate_text(view));
  if (view.loss) text += line("loss", loss_text(view));
  if (job.control) {
    text += line("committed", fmt::format("{}, by all chips", job.control->common_step()));
    text += line("generation", std::to_string(job.control->generation));
    if (!job.control->abort_reason.empty()) text += line("aborted", job.control->abort_reason);
  }
  if (job.end) {
    text += line("ended by", job.end->ended_by);
    if (job.end->error) text += line("error", job.end->error->message);
  }
  if (!job.rows.empty()) {
    text += line("mesh", mesh_words(header));
    text += line("workers", std::to_string(header.num_workers));
    text += line("chips", std::to_string(header.num_chips));
    text += line("trainer pid", std::to_string(header.trainer_pid));
    text += line("started", started_text(header));
    for (const HostSight& host : job.hosts) {
      if (!host.silence.empty()) text += line("silent", silence_text(host) + ": " + host.silence);
    }
    if (job.live) text += line("hung after", for_text(patience_s(job)) + " without progress");
  }
  return text + line("run folder", header.run_dir);
}

std::string show_json(const Snapshot& job) {
  Json json = head_json(job);
  json["schema"] = "weft.show/1";
  json["mesh"] = {{"shape", job.header.mesh_shape}, {"axes", job.header.axis_names}};
  if (has_hosts(job.header)) json["mesh"]["hosts"] = job.header.dcn_shape;
  json["patience_s"] = patience_s(job);
  json["committed"] = job.control ? Json(job.control->common_step()) : Json();
  json["generation"] = job.control ? Json(job.control->generation) : Json();
  json["aborted"] = job.control ? Json(job.control->abort_reason) : Json();
  json["error"] = job.end && job.end->error ? Json(job.end->error->message) : Json();
  return json_text(json);
}

std::string actors_text(const Snapshot& job) {
  Table table({columns::kActor, columns::kPid, columns::kState, columns::kFor, columns::kStep,
               columns::kCameLast, columns::kWaits, columns::kUnread, columns::kMessage,
               columns::kDoing});
  for (const ActorView& actor : view_actors(job)) {
    table.add({actor.name, dash(actor.pid), actor.state, for_text(actor.for_s),
               std::to_string(actor.step), came_last_text(actor), waits_text(actor),
               std::to_string(actor.mailbox), actor.message, actor.doing});
  }
  for (const HostSight& host : job.hosts) {
    if (host.silence.empty()) continue;
    table.add({fmt::format("host {} ({})", host.host, host.machine), "-", "silent",
               for_text(host.silent_s), "", "", "", "", "", host.silence});
  }
  std::string text = table.to_string();
  for (const std::string& row : job.unreadable) text += visible(row) + "\n";
  return text;
}

std::string actors_json(const Snapshot& job) {
  Json json{{"schema", "weft.actors/1"},
            {"job", job.job},
            {"actors", Json::array()},
            {"unreadable", job.unreadable}};
  for (const ActorView& actor : view_actors(job)) json["actors"].push_back(to_json(actor));
  for (const HostSight& host : job.hosts) {
    if (host.silence.empty()) continue;
    json["silent"].push_back({{"host", host.host},
                              {"machine", host.machine},
                              {"silent_s", host.silent_s},
                              {"why", host.silence}});
  }
  return json_text(json);
}

std::string mesh_text(const Snapshot& job, bool colours) {
  const std::vector<std::string> lines = mesh_grid(job, state_cells(job, colours));
  if (lines.empty()) return "no mesh\n";
  return fmt::format("{}\n\n{}\n", fmt::join(lines, "\n"), kStateLetters);
}

std::string mesh_steps_text(const Snapshot& job, bool colours) {
  const std::vector<std::string> lines = mesh_grid(job, step_cells(job, colours));
  if (lines.empty()) return "no mesh\n";
  return fmt::format("{}\n\nthe step of each chip\n", fmt::join(lines, "\n"));
}

std::string mesh_json(const Snapshot& job) {
  Json json{{"schema", "weft.mesh/1"},
            {"job", job.job},
            {"shape", job.header.mesh_shape},
            {"axes", job.header.axis_names},
            {"chips", Json::array()}};
  if (has_hosts(job.header)) json["hosts"] = job.header.dcn_shape;
  for (const ActorView& actor : view_actors(job)) {
    if (actor.chip >= 0) json["chips"].push_back(to_json(actor));
  }
  return json_text(json);
}

}  // namespace weft
