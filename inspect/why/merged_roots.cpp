// The part of explain_root.hpp that merges roots, and adds the actors that wait for them.

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "inspect/why/explain_root.hpp"
#include "inspect/why/stack_places.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

std::string line_of(const Root& root) {
  for (const Note& note : root.notes) {
    if (note.label == "line") return note.text;
  }
  return {};
}

/// Returns whether two roots are equal except for actors' numbers and times.
bool are_alike(const Root& a, const Root& b) {
  const auto told = [](const Root& root) {
    return std::tuple(root.cause, root.host, root.doing, root.more, root.chips.empty(),
                      to_text(root.stack), line_of(root));
  };
  const bool can_merge =
      !a.workers.empty() && a.workers.size() == a.pids.size() && b.workers.size() == b.pids.size();
  return can_merge && a.pid != 0 && b.pid != 0 && told(a) == told(b);
}

void merge(Root& into, const Root& root) {
  const auto append = [](std::vector<int>& to, const std::vector<int>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(into.workers, root.workers);
  append(into.chips, root.chips);
  append(into.pids, root.pids);
  into.since_s = std::min(into.since_s, root.since_s);
  into.core_percent = std::max(into.core_percent, root.core_percent);
  into.works = into.works || root.works;
  into.actor = into.chips.empty() ? workers_text(into.workers)
                                  : fmt::format("chips {} of {}", ranges_text(into.chips),
                                                workers_text(into.workers));
  // Only notes that all merged roots have in common are kept.
  std::erase_if(into.notes, [&](const Note& note) {
    return std::ranges::none_of(root.notes, [&](const Note& other) {
      return note.label == other.label && note.text == other.text;
    });
  });
}

/// Returns a text such as "workers 0-3, each in its own code for 41 s: waits for a mutex".
std::string headline_of(const Root& root) {
  const bool are_many = root.pids.size() > 1;
  std::string text = root.actor;
  if (!are_many && root.pid > 0) text += fmt::format(" ({})", pid_text(root));
  const std::string since = root.since_s < 0 ? "" : seconds_text(root.since_s);
  if (root.doing.empty()) {
    if (!since.empty()) text += ", " + since;
  } else {
    text += fmt::format(", {}{}", are_many ? "each " : "", root.doing);
    if (!since.empty()) text += " for " + since;
  }
  if (!are_many && root.core_percent >= 0)
    text += fmt::format(", {} % of a core", root.core_percent);
  return text + root.more;
}

/// Returns the first wait of another worker's chip for one of these workers, or for one of their
/// chips.
const Wait* wait_from_outside(const RootView& view, const std::vector<int>& workers) {
  const auto is_one = [&](int node) {
    const int worker = worker_of_node(view.now, node);
    return node != 0 && std::ranges::count(workers, worker) != 0;
  };
  for (const Wait& wait : view.graph.waits()) {
    const bool is_chip = wait.from > view.now.header.num_workers;
    if (is_chip && !is_one(wait.from) && is_one(wait.to)) return &wait;
  }
  return nullptr;
}

void add_waiters(Root& root, const RootView& view) {
  std::vector<int> nodes;
  for (const int worker : root.workers) nodes.push_back(node_of_worker(worker));
  for (const int chip : root.chips) nodes.push_back(node_of_chip(view.now, chip));
  if (nodes.empty()) nodes = {0};
  std::vector<int> workers;
  for (const int node : view.graph.waiters_of(nodes)) {
    const int worker = worker_of_node(view.now, node);
    const bool is_chip = node > view.now.header.num_workers;
    if (!is_chip || std::ranges::count(root.workers, worker)) continue;
    root.waiters.push_back(node - 1 - view.now.header.num_workers);
    workers.push_back(worker);
  }
  if (root.waiters.empty()) return;
  std::string text = fmt::format("{} chip{} of {}", root.waiters.size(),
                                 root.waiters.size() == 1 ? "" : "s", workers_text(workers));
  if (const Wait* outside = wait_from_outside(view, root.workers)) {
    const ActorRow* row = view.now.chip(outside->from - 1 - view.now.header.num_workers);
    text += fmt::format(" in {}", outside->on);
    if (row != nullptr) text += fmt::format(", step {}", row->step);
  }
  root.notes.push_back({"waits", std::move(text)});
}

}  // namespace

std::vector<Root> merged(const RootView& view, std::vector<Root> roots) {
  std::vector<Root> result;
  for (Root& root : roots) {
    const auto same =
        std::ranges::find_if(result, [&](const Root& other) { return are_alike(other, root); });
    if (same == result.end()) {
      result.push_back(std::move(root));
    } else {
      merge(*same, root);
    }
  }
  for (Root& root : result) {
    if (root.headline.empty()) root.headline = headline_of(root);
    add_waiters(root, view);
  }
  return result;
}

}  // namespace weft
