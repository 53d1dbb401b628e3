#include "tools/weft/sweep.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "data/files/utf8.hpp"
#include "data/remote/output_file.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/why/words.hpp"
#include "transport/job/remains.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

struct SweepOptions {
  std::vector<std::string> jobs;
  std::vector<std::string> folders;
  bool dry_run = false;
  bool json = false;
};

/// A job, and the result of its removal.
struct Swept {
  JobRemains remains;
  bool is_to_go = false;
  bool removed = false;
  std::vector<std::string> left;  ///< files that couldn't be removed
};

Json to_json(const Swept& swept) {
  const JobRemains& remains = swept.remains;
  return {{"job", remains.job},     {"state", to_string(remains.life)},
          {"why", remains.why},     {"segments", remains.segments},
          {"bytes", remains.bytes}, {"folders", remains.roots},
          {"left", swept.left},     {"removed", swept.removed}};
}

std::string outcome(const Swept& swept, bool dry_run) {
  if (!swept.is_to_go) return "kept: " + swept.remains.why;
  if (dry_run) return "would be removed";
  return swept.removed ? "removed"
                       : fmt::format("can't be removed: {}", fmt::join(swept.left, ", "));
}

void print(const std::vector<Swept>& all, const SweepOptions& options) {
  if (options.json) {
    Json json = Json::array();
    for (const Swept& swept : all) json.push_back(to_json(swept));
    fmt::print("{}", json_text(json));
    return;
  }
  Table table(
      {columns::kJob, columns::kState, columns::kSegments, columns::kSize, columns::kOutcome});
  for (const Swept& swept : all) {
    const JobRemains& remains = swept.remains;
    table.add(
        {remains.job, std::string(to_string(remains.life)), std::to_string(remains.segments.size()),
         bytes_text(static_cast<std::int64_t>(remains.bytes)), outcome(swept, options.dry_run)});
  }
  if (table.empty()) {
    fmt::print("dead jobs have left nothing\n");
  } else {
    table.print();
  }
}

/// Returns whether the job is dead. Jobs that are kept for a rescue are dead too: naming them
/// removes them.
bool is_dead(const JobRemains& remains) {
  return remains.life == JobLife::dead || remains.life == JobLife::kept;
}

/// Returns whether each job in `asked` exists and is dead. Prints the state of each one that isn't.
bool all_dead(const std::vector<JobRemains>& found, const std::vector<std::string>& asked) {
  bool all = true;
  for (const std::string& job : asked) {
    const auto remains = std::ranges::find(found, job, &JobRemains::job);
    if (remains == found.end()) {
      fmt::print(stderr,
                 "job {}: it has left nothing; `weft sweep --dry-run` lists the jobs "
                 "that have left something\n",
                 visible(job));
    } else if (!is_dead(*remains)) {
      fmt::print(stderr, "job {}: it is {}: {}\n", job, to_string(remains->life),
                 visible(remains->why));
    } else {
      continue;
    }
    all = false;
  }
  return all;
}

/// Removes the unfinished files of killed saves from the folders that the user names.
int sweep_folders(const SweepOptions& options) {
  std::vector<std::string> swept;
  for (const std::string& folder : options.folders) {
    const std::vector<std::string> more = sweep_unfinished(folder, options.dry_run);
    swept.insert(swept.end(), more.begin(), more.end());
  }
  if (options.json) {
    fmt::print("{}", json_text(Json{{"files", swept}, {"removed", !options.dry_run}}));
    return 0;
  }
  for (const std::string& path : swept) {
    fmt::print("{} {}\n", options.dry_run ? "would remove" : "removed", visible(path));
  }
  if (swept.empty()) fmt::print("no killed save has left a file there\n");
  return 0;
}

int run(const SweepOptions& options) {
  if (!options.folders.empty()) return sweep_folders(options);
  const std::vector<JobRemains> found = find_remains();
  bool good = all_dead(found, options.jobs);
  std::vector<Swept> all;
  for (const JobRemains& remains : found) {
    if (!options.jobs.empty() && std::ranges::count(options.jobs, remains.job) == 0) continue;
    Swept& swept = all.emplace_back(Swept{.remains = remains, .left = {}});
    good = good && remains.life != JobLife::unknown;
    swept.is_to_go = options.jobs.empty() ? remains.life == JobLife::dead : is_dead(remains);
    if (!swept.is_to_go || options.dry_run) continue;
    swept.left = remove_remains(remains, true);
    swept.removed = swept.left.empty();
    good = good && swept.removed;
  }
  print(all, options);
  return good ? 0 : 1;
}

}  // namespace

void add_sweep(CLI::App& app, int& code) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* sweep = app.add_subcommand("sweep", "remove what dead jobs of this user have left");
  CLI::Option* jobs =
      sweep->add_option("job", options->jobs, "ids of jobs; default: all dead jobs");
  sweep
      ->add_option("--folder", options->folders,
                   "remove, instead of jobs, the unfinished files (*.weft-*.tmp) that killed "
                   "saves and exports have left in this folder; may be repeated")
      ->type_name("FOLDER")
      ->allow_extra_args(false)
      ->excludes(jobs);
  sweep->add_flag("--dry-run", options->dry_run, "only show what would be removed");
  sweep->add_flag("--json", options->json, "as JSON");
  sweep->footer(
      "Examples:\n"
      "  weft sweep --dry-run\n"
      "  weft sweep 93ef4a12776321e25d410a59298c9311\n"
      "  weft sweep --folder models\n"
      "\n"
      "A job is dead if no process holds its lock or has its memory open. A job that is kept for\n"
      "`weft rescue` is removed only if it is named.\n"
      "Exit code: 0, or 1 if something could not be removed, a lock could not be tested, or a job\n"
      "that was named doesn't exist or isn't dead.");
  sweep->callback([options, &code] { code = run(*options); });
}

}  // namespace weft
