#include "tools/weft/rescue.hpp"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/columns.hpp"
#include "transport/job/remains.hpp"
#include "transport/resume/rescue.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

struct RescueOptions {
  std::string job;
  std::string folder;
  bool list = false;
  bool keep_memory = false;
  bool json = false;
};

void print(const Json& json) { fmt::print("{}", json_text(json)); }

int list(const RescueOptions& options) {
  Json json = Json::array();
  Table table({columns::kJob, columns::kStep, columns::kCheckpoints});
  for (const DeadJob& dead : list_dead_jobs()) {
    json.push_back(
        {{"job", dead.job}, {"step", dead.step}, {"checkpoints", dead.card.checkpoints}});
    table.add({dead.job, std::to_string(dead.step), dead.card.checkpoints});
  }
  if (options.json) {
    print(json);
  } else if (table.empty()) {
    fmt::print("there is no dead job whose state is still in memory\n");
  } else {
    table.print();
  }
  return 0;
}

/// Returns the single dead job whose id begins with the given text. Throws if there is none, or
/// several.
DeadJob choose(const std::string& asked) {
  std::vector<DeadJob> found;
  for (DeadJob& dead : list_dead_jobs()) {
    if (dead.job.starts_with(asked)) found.push_back(std::move(dead));
  }
  if (found.size() == 1) return found.front();
  if (found.empty() && !asked.empty()) return find_dead_job(asked);  // throws the reason
  std::vector<std::string> jobs;
  for (const DeadJob& dead : found) jobs.push_back(dead.job);
  fail(Errc::not_found, "{}",
       found.empty() ? std::string("there is no dead job whose state is still in memory")
                     : fmt::format("\"{}\" matches {} jobs; give more of the id: {}", asked,
                                   found.size(), fmt::join(jobs, ", ")));
}

/// Removes the job's memory, which is no longer needed.
std::vector<std::string> remove_memory(const std::string& job) {
  for (const JobRemains& remains : find_remains()) {
    if (remains.job == job) return remove_remains(remains, true);
  }
  return {};
}

int run(const RescueOptions& options) {
  if (options.list) return list(options);
  const DeadJob dead = choose(options.job);
  const Rescued rescued = rescue(dead, options.folder);
  const auto left = options.keep_memory ? std::vector<std::string>() : remove_memory(dead.job);
  if (options.json) {
    print({{"job", dead.job},
           {"step", rescued.step},
           {"path", rescued.path},
           {"tensors", rescued.num_tensors},
           {"bytes", rescued.bytes},
           {"left", left}});
  } else {
    fmt::print("job {}: step {}, {} tensors, {:.1f} MiB, saved in {}\n", dead.job, rescued.step,
               rescued.num_tensors, static_cast<double>(rescued.bytes) / (1 << 20),
               visible(rescued.path));
    if (!left.empty()) {
      fmt::print("its memory can't be removed: {}\n",
                 visible(fmt::format("{}", fmt::join(left, ", "))));
    }
  }
  return 0;
}

}  // namespace

void add_rescue(CLI::App& app, int& code) {
  auto options = std::make_shared<RescueOptions>();
  CLI::App* command = app.add_subcommand(
      "rescue", "save the last step of a job whose processes are dead as a checkpoint");
  command->add_option("job", options->job,
                      "the job's id, or the beginning of its id; default: the only dead job");
  command->add_option("-o,--output", options->folder,
                      "the folder of checkpoints; default: the job's own");
  command->add_flag("--list", options->list, "only list the jobs that can be saved");
  command->add_flag("--keep-memory", options->keep_memory,
                    "keep the job's memory; default: remove it after the state is saved");
  command->add_flag("--json", options->json, "as JSON");
  command->footer(
      "Examples:\n"
      "  weft rescue --list\n"
      "  weft rescue -o /data/rescued 93ef\n"
      "\n"
      "The user's next job removes the memory of a dead job, unless the dead job had\n"
      "run.keep_for_rescue_s, or `weft launch --max-failures` had started it.\n"
      "Exit code: 0, or 2 if nothing was saved.");
  command->callback([options, &code] { code = run(*options); });
}

}  // namespace weft
