#include "tools/weft/inspect/views.hpp"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "inspect/history/late.hpp"
#include "inspect/views/colours.hpp"
#include "inspect/views/job_views.hpp"
#include "tools/weft/inspect/job.hpp"

namespace weft {
namespace {

struct ViewsOptions {
  std::string job;
  bool json = false;
};

using View = std::string (*)(const Snapshot&);

int show(const std::string& job, View view) {
  return with_job(job, [view](SnapshotReader& reader) {
    fmt::print("{}", view(reader.read(kShownParts)));
    return 0;
  });
}

void add_view(CLI::App& inspect, int& code, const char* name, const char* help, View text,
              View json) {
  auto options = std::make_shared<ViewsOptions>();
  CLI::App* view = inspect.add_subcommand(name, help);
  view->add_option("job", options->job, kJobHelp);
  view->add_flag("--json", options->json, "as JSON (docs/inspect.md)");
  view->callback([=, &code] { code = show(options->job, options->json ? json : text); });
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
    code = with_job(options->job, [&](SnapshotReader& reader) {
      const Snapshot job = reader.read(late ? SnapshotParts{.events = true} : kShownParts);
      const auto text = late ? late_mesh_text : options->by == "step" ? mesh_steps_text : mesh_text;
      fmt::print("{}", options->json ? mesh_json(job) : text(job, wants_colours()));
      return 0;
    });
  });
}

}  // namespace

int list_jobs(bool json) {
  std::vector<Snapshot> jobs;
  int code = 0;
  for (const std::string& job : Board::jobs()) {
    try {
      SnapshotReader reader = SnapshotReader::of_job(job);
      jobs.push_back(reader.read({.control = false, .steps = true, .metrics = true}));
    } catch (const Error& e) {
      // The job has ended meanwhile or is just starting.
      if (e.code() == Errc::not_found) continue;
      say_unreadable(job, e);
      code = kUnreadable;
    }
  }
  fmt::print("{}", json ? ps_json(jobs) : ps_text(jobs));
  return code;
}

int show_job(const std::string& job, bool json) { return show(job, json ? show_json : show_text); }

void add_inspect_views(CLI::App& inspect, int& code) {
  auto options = std::make_shared<ViewsOptions>();
  CLI::App* ps = inspect.add_subcommand("ps",
                                        "list the jobs of this user, including hung and "
                                        "stopped ones");
  ps->add_flag("--json", options->json, "as JSON, schema weft.ps/1 (docs/inspect.md)");
  ps->callback([options, &code] { code = list_jobs(options->json); });
  add_view(inspect, code, "show", "show one job: its parts and its progress", show_text, show_json);
  add_view(inspect, code, "actors", "show what each actor of a job does", actors_text, actors_json);
  add_mesh(inspect, code);
}

}  // namespace weft
