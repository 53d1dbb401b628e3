#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspect/systems/system_explainer.hpp"
#include "inspect/why/words.hpp"

namespace weft {

void SystemExplainer::add_jobs_behind(Root& root, const std::set<int>& awaited) const {
  const std::vector<int> behind = graph_.waiters_of({awaited.begin(), awaited.end()});
  std::set<std::string> texts;
  for (const Wait& wait : graph_.waits()) {
    if (!is_job(wait.from) || awaited.contains(wait.to)) continue;
    if (!std::ranges::binary_search(behind, wait.to)) continue;
    texts.insert(
        fmt::format("{} for {}, for {}", name(wait.from), wait.on, seconds_text(wait.since_s)));
  }
  for (const std::string& text : texts) root.notes.push_back({"waits", text});
}

/// Notes an actor that runs nothing, while a loop waits for rows that its process writes. Returns
/// false if no loop does, or not for long enough.
bool SystemExplainer::explain_idle_writer(int node) {
  bool is_awaited = false;
  for (const Wait& wait : graph_.waits()) {
    if (wait.to != node || !is_job(wait.from) || wait.since_s < options_.patience_s) continue;
    idle_writers_[wait.from].insert(node);
    is_awaited = true;
  }
  return is_awaited;
}

void SystemExplainer::add_idle_writers() {
  for (const auto& [job, writers] : idle_writers_) {
    const double since_s = waited_s(*writers.begin());
    Root root{.cause = Cause::busy,
              .actor = names_text(writers),
              .headline = fmt::format("{} (pid {}), without a function to run, while {} waits for "
                                      "rows, for {}",
                                      names_text(writers), pid_of(*writers.begin()), name(job),
                                      seconds_text(since_s)),
              .pid = pid_of(*writers.begin()),
              .since_s = since_s};
    for (const int writer : writers) root.pids.push_back(pid_of(writer));
    add_waiters(root, writers);
    root.fix = "call the function that writes the rows, or write them in work()";
    why_.roots.push_back(std::move(root));
  }
}

/// Explains a job for which actors wait: its loop doesn't continue, or waits in turn for rows of
/// these actors. The nodes of `root` are sorted, so the job is the last one.
void SystemExplainer::explain_job(const std::vector<int>& root) {
  const int node = root.back();
  const SystemJob& job = now_.jobs[static_cast<std::size_t>(node - node_of_job(now_, 0))];
  const std::set<int> members(root.begin(), root.end());
  const bool is_circle = members.size() > 1;
  double since_s = -1;
  for (const Wait& wait : graph_.waits()) {
    if (!members.contains(wait.to) || (is_circle && !members.contains(wait.from))) continue;
    const bool counts =
        since_s < 0 || (is_circle ? wait.since_s < since_s : wait.since_s > since_s);
    if (counts) since_s = wait.since_s;
  }
  if (since_s < options_.patience_s) return;
  Root found{
      .actor = name(node), .pids = {job.trainer_pid}, .pid = job.trainer_pid, .since_s = since_s};
  if (!is_circle) {
    if (job.state == "running" || job.state == "starting") return;
    found.cause = Cause::busy;
    found.headline = fmt::format("{} (pid {}) is {} at step {}, for {}", name(node),
                                 job.trainer_pid, job.state, job.step, seconds_text(since_s));
    add_waiters(found, members);
    found.fix = fmt::format("weft inspect why {} names the cause in the job", job.id);
  } else {
    std::set<int> actors = members;
    actors.erase(node);
    found.cause = Cause::deadlock;
    found.actor = names_text(members);
    found.headline = fmt::format("a circle of waits: {} > {} > {}, for {}", name(node),
                                 names_text(actors), name(node), seconds_text(since_s));
    add_waiters(found, members);
    found.fix =
        "let the actors write the rows of a step before they wait for the version that the step "
        "makes";
  }
  why_.roots.push_back(std::move(found));
}

}  // namespace weft
