#include "tools/weft/rescue.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "actors/data/late_reports.hpp"
#include "data/files/utf8.hpp"
#include "inspect/hosts/host_list.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/columns.hpp"
#include "transport/board/board.hpp"
#include "transport/job/remains.hpp"
#include "transport/resume/rescue.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

struct RescueOptions {
  std::string job;
  std::string folder;
  bool list = false;
  double wait_s = 30;
  bool keep_memory = false;
  bool json = false;
};

void print(const Json& json) { fmt::print("{}", json_text(json)); }

int list(const RescueOptions& options) {
  Json json = Json::array();
  Table table({columns::kJob, columns::kHost, columns::kStep, columns::kCheckpoints});
  for (const DeadJob& dead : list_dead_jobs()) {
    json.push_back({{"job", dead.job},
                    {"host", dead.card.host},
                    {"hosts", dead.card.num_hosts},
                    {"step", dead.step},
                    {"checkpoints", dead.card.checkpoints}});
    table.add({dead.job, fmt::format("{} of {}", dead.card.host, dead.card.num_hosts),
               std::to_string(dead.step), dead.card.checkpoints});
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

/// Returns the parts of a dead job whose memory is on this machine, in order of hosts. The job is
/// the only dead one whose id begins with `asked`. Throws if no job matches, or several.
std::vector<DeadJob> choose(const std::string& asked) {
  std::vector<DeadJob> found;
  std::set<std::string> jobs;
  for (DeadJob& dead : list_dead_jobs()) {
    if (!dead.job.starts_with(asked)) continue;
    jobs.insert(dead.job);
    found.push_back(std::move(dead));
  }
  if (jobs.size() == 1) return found;
  if (jobs.empty() && !asked.empty()) return {find_dead_job(asked)};  // throws the reason
  fail(Errc::not_found, "{}",
       jobs.empty() ? std::string("there is no dead job whose state is still in memory")
                    : fmt::format("\"{}\" matches {} jobs; give more of the id: {}", asked,
                                  jobs.size(), fmt::join(jobs, ", ")));
}

/// Removes segments that are no longer needed. Returns those that can't be removed.
std::vector<std::string> remove_memory(const std::string& memory_id) {
  for (const JobRemains& remains : find_remains()) {
    if (remains.job == memory_id) return remove_remains(remains, true);
  }
  return {};
}

/// Returns the hosts of a dead job, with the names of their machines if the run folder has them:
/// "host 1 (node7)".
std::string names_of(const std::vector<int>& hosts, const DeadJob& dead) {
  std::optional<HostList> list;
  try {
    list = HostList::read(Board::open(dead.memory_id, true).header().run_dir);
  } catch (const Error&) {  // without names, the numbers are enough
  }
  std::vector<std::string> names;
  for (const int host : hosts) {
    const auto i = static_cast<std::size_t>(host);
    const bool is_known = list && i < list->hosts.size() && !list->hosts[i].where.machine.empty();
    names.push_back(is_known ? fmt::format("host {} ({})", host, list->hosts[i].where.machine)
                             : fmt::format("host {}", host));
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

/// Writes the reports that the trainer had not yet written. If that fails, prints the reason.
void keep_reports(const DeadJob& dead, std::uint64_t step) {
  try {
    add_late_reports_of(dead.memory_id, dead.root, step);
  } catch (const std::exception& e) {
    fmt::print(stderr, "the last reports of job {} aren't in its progress.csv: {}\n", dead.job,
               visible(e.what()));
  }
}

/// Saves the parts of a job that are on this machine. Returns the results in the same order.
std::vector<Rescued> rescue_all(const std::vector<DeadJob>& parts, const RescueOptions& options) {
  const auto patience =
      std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(options.wait_s));
  std::vector<Rescued> all;
  for (const DeadJob& dead : parts) {
    const bool is_last = &dead == &parts.back();
    all.push_back(rescue(dead, options.folder, is_last ? patience : patience * 0));
  }
  const Rescued& last = all.back();
  if (last.path.empty()) {
    fail(Errc::unavailable,
         "job {}: its state is divided over {} hosts, and the memory of {} isn't saved: run `weft "
         "rescue {}` there too; the other parts are in {}. If that memory is lost, remove this "
         "folder, and continue from the last checkpoint",
         parts.back().job, parts.back().card.num_hosts, names_of(last.missing, parts.back()),
         parts.back().job, visible(last.parts));
  }
  return all;
}

/// Says why the memory on other hosts isn't needed, or what must still be done on each host.
void print_hosts(const std::vector<DeadJob>& parts, const Rescued& saved) {
  const RunCard& card = parts.front().card;
  std::vector<int> others;
  for (int host = 0; host < card.num_hosts; ++host) {
    if (std::ranges::none_of(parts, [&](const DeadJob& part) { return part.card.host == host; })) {
      others.push_back(host);
    }
  }
  if (others.empty() || !saved.parts.empty()) return;
  const std::string names = names_of(others, parts.front());
  if (card.has_copies) {
    fmt::print("each host needs its own copy: run `weft rescue {}` on {} too, or copy the folder\n",
               parts.front().job, names);
  } else {
    fmt::print("each of the {} hosts had the whole state, so the memory of {} isn't needed\n",
               card.num_hosts, names);
  }
}

void print_saved(const DeadJob& dead, const Rescued& rescued) {
  if (rescued.is_of_other_host) {
    fmt::print(
        "job {}: step {} is saved in {} by another host, so the memory of host {} isn't "
        "needed\n",
        dead.job, rescued.step, visible(rescued.path), dead.card.host);
    return;
  }
  if (rescued.path.empty()) return;  // the line of the job's last part names the checkpoint
  fmt::print("job {}: step {}, {} tensors, {:.1f} MiB, saved in {}\n", dead.job, rescued.step,
             rescued.num_tensors, static_cast<double>(rescued.bytes) / (1 << 20),
             visible(rescued.path));
}

int run(const RescueOptions& options) {
  if (options.list) return list(options);
  const std::vector<DeadJob> parts = choose(options.job);
  const std::vector<Rescued> all = rescue_all(parts, options);
  const Rescued& saved = all.back();
  if (!options.json) {
    for (std::size_t i = 0; i < parts.size(); ++i) print_saved(parts[i], all[i]);
    print_hosts(parts, saved);
  }
  for (const DeadJob& dead : parts) keep_reports(dead, saved.step);
  std::vector<std::string> left;
  for (const DeadJob& dead : parts) {
    if (options.keep_memory) break;
    for (std::string& path : remove_memory(dead.memory_id)) left.push_back(std::move(path));
  }
  if (options.json) {
    print({{"job", parts.front().job},
           {"step", saved.step},
           {"path", saved.path},
           {"tensors", saved.num_tensors},
           {"bytes", saved.bytes},
           {"left", left}});
  } else if (!left.empty()) {
    fmt::print("its memory can't be removed: {}\n",
               visible(fmt::format("{}", fmt::join(left, ", "))));
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
  command
      ->add_option("--wait", options->wait_s,
                   "seconds to wait for the other hosts, if the state is divided over them; "
                   "default: 30")
      ->check(CLI::Range(0.0, 1e6));
  command->add_flag("--keep-memory", options->keep_memory,
                    "keep the job's memory; default: remove it after the state is saved");
  command->add_flag("--json", options->json, "as JSON");
  command->footer(
      "Examples:\n"
      "  weft rescue --list\n"
      "  weft rescue -o /data/rescued 93ef\n"
      "  srun weft rescue 93ef\n"
      "\n"
      "The user's next job removes the memory of a dead job, unless the dead job had\n"
      "run.keep_for_rescue_s, or `weft launch --max-failures` had started it.\n"
      "If the job ran on several hosts, start the command on each of them. If each host had\n"
      "the whole state, the memory of one is enough. Otherwise all are needed.\n"
      "Exit code: 0, or 2 if no checkpoint was saved.");
  command->callback([options, &code] { code = run(*options); });
}

}  // namespace weft
