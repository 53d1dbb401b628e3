#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspect/why/explain_root.hpp"
#include "inspect/why/hang.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

/// A chip in a collective, and where its worker's loop is.
struct Caller {
  int worker = -1;
  std::string call{};
  std::string line{};
  std::uint64_t step = 0;
};

/// Returns a text such as "all_reduce #4 'b' over {data}, step 3, at train.cpp:44".
std::string place_of(const Caller& caller) {
  std::string text = fmt::format("{}, step {}", caller.call, caller.step);
  if (!caller.line.empty()) text += ", at " + caller.line;
  return text;
}

/// Returns the job's chips that are in a collective, grouped by their calls.
std::map<std::string, std::map<int, Caller>> callers(const Snapshot& now) {
  std::map<std::string, std::map<int, Caller>> by_call;
  for (const ActorRow& row : now.rows) {
    if (row.kind != ActorKind::device || !row.in_collective) continue;
    const std::string call = last_call(now, row.chip);
    if (call.empty()) continue;
    const ActorRow* loop = now.worker(row.worker);
    by_call[call].emplace(row.chip, Caller{.worker = row.worker,
                                           .call = call,
                                           .line = loop != nullptr ? loop->source : "",
                                           .step = row.step});
  }
  return by_call;
}

std::vector<int> workers_of(const std::map<int, Caller>& group) {
  std::set<int> workers;
  for (const auto& [chip, caller] : group) workers.insert(caller.worker);
  return {workers.begin(), workers.end()};
}

/// Explains a circle whose chips are in different collectives. Blames the smallest group, if it is
/// smaller than all others. Returns false for any other circle.
bool explain_diverged(Root& root, const Snapshot& now) {
  const auto by_call = callers(now);
  if (by_call.size() < 2) return false;
  root.cause = Cause::diverged;
  const auto size = [](const auto& entry) { return entry.second.size(); };
  const auto least = std::ranges::min_element(by_call, {}, size);
  const bool is_alone =
      std::ranges::count_if(by_call, [&](const auto& e) { return size(e) == size(*least); }) == 1;
  if (is_alone) {
    root.workers = workers_of(least->second);
    root.chips.clear();
    for (const auto& [chip, caller] : least->second) root.chips.push_back(chip);
    root.actor = workers_text(root.workers);
    root.headline = fmt::format("{} {} in a different collective than the others", root.actor,
                                root.workers.size() == 1 ? "is" : "are");
  } else {
    root.headline = root.actor + " wait for each other in different collectives";
  }
  const auto add = [&](const std::map<int, Caller>& group) {
    const Caller& caller = group.begin()->second;
    root.notes.push_back(
        {"calls", fmt::format("{}: {}", workers_text(workers_of(group)), place_of(caller))});
    root.step = std::max(root.step, caller.step);
  };
  if (is_alone) add(least->second);
  for (auto group = by_call.begin(); group != by_call.end(); ++group) {
    if (!is_alone || group != least) add(group->second);
  }
  return true;
}

/// Explains a circle with a lock. Blames the holder of the lock, because it waits for others while
/// it holds the lock. Returns false if there is no lock.
bool explain_holder(Root& root, const RootView& view, const std::vector<int>& nodes) {
  const auto is_in = [&](int node) { return std::ranges::count(nodes, node) != 0; };
  for (const Wait& wait : view.graph.waits()) {
    if (!wait.is_lock || !is_in(wait.from) || !is_in(wait.to)) continue;
    const int worker = worker_of_node(view.now, wait.to);
    const ActorRow* row = worker >= 0 ? view.now.worker(worker) : view.now.trainer();
    root.actor = name_of_node(view.now, wait.to);
    root.workers.clear();
    root.chips.clear();
    if (worker >= 0) root.workers = {worker};
    if (row != nullptr) {
      root.pid = row->pid;
      root.tid = row->tid;
      root.pids = {row->pid};
      root.host = shown_host(view.now, worker);
      root.step = row->step;
    }
    root.headline =
        fmt::format("{} ({}) holds {}, for which {} waits, and both are in a circle of waits",
                    root.actor, pid_text(root), wait.on, name_of_node(view.now, wait.from));
    add_stack(root, view.now);
    if (row != nullptr && !row->source.empty()) {
      root.notes.push_back({"line", row->source + ", where it last called weft"});
    }
    return true;
  }
  return false;
}

}  // namespace

Root explain_circle(const RootView& view, const std::vector<int>& nodes) {
  Root root{.cause = Cause::deadlock};
  std::set<int> workers;
  std::vector<std::string> names;
  for (const int node : nodes) {
    const int worker = worker_of_node(view.now, node);
    if (worker >= 0) workers.insert(worker);
    names.push_back(name_of_node(view.now, node));
    if (node > view.now.header.num_workers) {
      root.chips.push_back(node - 1 - view.now.header.num_workers);
    }
  }
  root.workers.assign(workers.begin(), workers.end());
  if (!root.workers.empty()) root.since_s = idle_s(view.now, root.workers.front());
  const bool all_chips = root.chips.size() == nodes.size();
  root.actor = all_chips ? fmt::format("chips {}", ranges_text(root.chips))
                         : fmt::format("{}", fmt::join(names, ", "));
  if (explain_holder(root, view, nodes) || explain_diverged(root, view.now)) return root;
  root.headline = root.actor + " wait for each other";
  for (const auto& [call, group] : callers(view.now)) {
    const auto& [chip, caller] = *group.begin();
    root.notes.push_back({"calls", fmt::format("chip {}: {}", chip, place_of(caller))});
    root.step = std::max(root.step, caller.step);
  }
  return root;
}

}  // namespace weft
