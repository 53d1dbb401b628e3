#include "tools/weft/inspect/views.hpp"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "inspect/history/late.hpp"
#include "inspect/systems/system_views.hpp"
#include "inspect/views/colours.hpp"
#include "inspect/views/job_views.hpp"
#include "tools/weft/inspect/job.hpp"
#include "tools/weft/inspect/systems.hpp"

namespace weft {
namespace {

struct ViewsOptions {
  std::string job;
  bool json = false;
};

using View = std::string (*)(const Snapshot&);

int show(const std::string& job, View view) {
  return with_job(job, [view](JobReader& reader) {
    fmt::print("{}", view(reader.read(kShownParts)));
    return 0;
  });
}

void add_mesh(CLI::App& inspect, int& code) {
  struct MeshOptions : ViewsOptions {
    std::string by = "state";
  };
  auto options = std::make_shared<MeshOptions>();
  CLI::App* mesh =
      inspect.add_subcommand("mesh", "show the chips of a job at their positions in its mesh");
  mesh->add_option("job", options->job, kJobHelp);
  CLI::Option* by =
      mesh->add_option("--by", options->by,
                       "what to show for each chip: its state, its step, or how late it enters "
                       "collectives (its share of all waits)")
          ->check(CLI::IsMember({"state", "step", "late"}))
          ->capture_default_str();
  mesh->add_flag("--json", options->json, "as JSON (docs/inspect.md)")->excludes(by);
  mesh->callback([options, &code] {
    const bool late = options->by == "late";
    code = with_job(options->job, [&](JobReader& reader) {
      const Snapshot job = reader.read(late ? SnapshotParts{.events = true} : kShownParts);
      const auto text = late ? late_mesh_text : options->by == "step" ? mesh_steps_text : mesh_text;
      fmt::print("{}", options->json ? mesh_json(job) : text(job, wants_colours()));
      return 0;
    });
  });
}

int show_system(const std::string& asked, std::string (*view)(const SystemSnapshot&)) {
  int code = 0;
  if (const auto system = read_asked_system(asked, code)) fmt::print("{}", view(*system));
  return code;
}

void add_actors(CLI::App& inspect, int& code) {
  struct ActorsOptions : ViewsOptions {
    bool tree = false;
  };
  auto options = std::make_shared<ActorsOptions>();
  CLI::App* actors = inspect.add_subcommand(
      "actors", "show what each actor of a job, or of an application's actor system, does");
  actors->add_option("job", options->job, kJobOrSystemHelp);
  actors->add_flag("--tree", options->tree,
                   "show an actor system: its meshes, and below each its actors");
  actors->add_flag("--json", options->json, "as JSON (docs/inspect.md)");
  actors->callback([options, &code] {
    if (options->tree || selects_system(options->job)) {
      const auto text = options->tree ? system_tree_text : system_actors_text;
      code = show_system(options->job, options->json ? system_json : text);
    } else {
      code = show(options->job, options->json ? actors_json : actors_text);
    }
  });
}

}  // namespace

int list_jobs(bool json) {
  std::vector<Snapshot> jobs;
  int code = 0;
  for (const std::string& job : whole_jobs()) {
    try {
      SnapshotReader reader = SnapshotReader::of_job(job);
      jobs.push_back(reader.read({.control = false, .steps = true, .metrics = true}));
    } catch (const Error& e) {
      // The job has just ended or is just starting.
      if (e.code() == Errc::not_found) continue;
      say_unreadable(job, e);
      code = kUnreadable;
    }
  }
  const std::vector<SystemSnapshot> systems = read_systems(code);
  if (json) {
    fmt::print("{}", ps_json(jobs, systems_json(systems)));
    return code;
  }
  if (!jobs.empty() || systems.empty()) fmt::print("{}", ps_text(jobs));
  if (!jobs.empty() && !systems.empty()) fmt::print("\n");
  fmt::print("{}", systems_text(systems));
  return code;
}

int show_job(const std::string& job, bool json) {
  if (selects_system(job)) return show_system(job, json ? system_json : system_tree_text);
  return show(job, json ? show_json : show_text);
}

void add_inspect_views(CLI::App& inspect, int& code) {
  auto options = std::make_shared<ViewsOptions>();
  CLI::App* ps = inspect.add_subcommand("ps",
                                        "list the jobs and actor systems of this user, "
                                        "including hung and stopped ones");
  ps->add_flag("--json", options->json, "as JSON, schema weft.ps/1 (docs/inspect.md)");
  ps->callback([options, &code] { code = list_jobs(options->json); });
  auto shown = std::make_shared<ViewsOptions>();
  CLI::App* show = inspect.add_subcommand(
      "show", "show one job: its parts and its progress; or the meshes of an actor system");
  show->add_option("job", shown->job, kJobOrSystemHelp);
  show->add_flag("--json", shown->json, "as JSON (docs/inspect.md)");
  show->callback([shown, &code] { code = show_job(shown->job, shown->json); });
  add_actors(inspect, code);
  add_mesh(inspect, code);
}

}  // namespace weft
