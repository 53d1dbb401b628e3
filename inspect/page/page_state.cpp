#include "inspect/page/page_state.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <nlohmann/json.hpp>

#include "inspect/views/actor_view.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

/// Null where the chip has no ledger.
const ChipWaits* waits_of(const Snapshot& job, int chip) {
  const auto found = std::ranges::find(job.waits, chip, &ChipWaits::chip);
  return found == job.waits.end() ? nullptr : &*found;
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
          {"source", row.source}};
}

Json actors_of(const Snapshot& job) {
  const std::vector<ActorView> views = view_actors(job);
  Json actors = Json::array();
  for (std::size_t i = 0; i < views.size(); ++i) {
    Json actor = to_json(job, views[i], job.rows[i]);
    if (const ChipWaits* waits = waits_of(job, views[i].chip)) {
      const LedgerSums sums = sum_up(waits->calls);
      actor["calls"] = sums.calls;
      actor["last"] = sums.times_last;
      actor["waited_s"] = static_cast<double>(sums.waited_ns) / 1e9;
    }
    actors.push_back(std::move(actor));
  }
  return actors;
}

/// The chips by their place in the mesh; none where the board has no mesh that fits them.
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

std::string page_state(const Snapshot& job, const Why& why) {
  const JobView view = view_job(job);
  Json explanation = Json::parse(to_json(why));
  if (explanation["roots"].empty()) explanation.erase("idle_s");
  Json json{{"schema", "weft.page/1"},
            {"job", job.job},
            {"name", job.header.name},
            {"state", view.state},
            {"live", job.live},
            {"over", job.over() || !job.live},
            {"step", view.step},
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
            {"actors", actors_of(job)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weft
