#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspect/systems/system_explainer.hpp"
#include "inspect/why/words.hpp"

namespace weft {

/// Explains a root that is a circle of actors: each waits for the next. Returns false for any other
/// root.
bool SystemExplainer::explain_circle(const std::vector<int>& root) {
  const auto waits = [&](int node) { return is_actor(node) && next_.contains(node); };
  if (!std::ranges::all_of(root, waits)) return false;
  // The text of a circle begins with the circle's first actor in the table.
  std::vector<int> circle;
  std::set<int> members;
  for (int node = root.front(); members.insert(node).second; node = next_.at(node)) {
    if (!waits(node)) return false;
    circle.push_back(node);
  }
  const auto is_new = [&](int node) { return actor(node).runs() && !lasts(node); };
  if (now_.is_held && std::ranges::any_of(circle, is_new)) return true;
  std::vector<std::string> names;
  double since_s = -1;
  for (const int node : circle) {
    // An actor that runs nothing only needs the next one's thread.
    if (!actor(node).runs()) continue;
    names.push_back(
        fmt::format("{}.{}", name(node), now_.function_name(static_cast<std::uint32_t>(node))));
    since_s = since_s < 0 ? now_.for_s(actor(node)) : std::min(since_s, now_.for_s(actor(node)));
  }
  bool has_pipe = false;
  std::vector<Note> pipes;
  for (const int node : circle) {
    const SystemActor& it = actor(node);
    if (!it.runs() || !it.pipe) continue;
    has_pipe = true;
    const double wait_s = now_.wait_s(*it.pipe);
    since_s = since_s < 0 ? wait_s : std::min(since_s, wait_s);
    pipes.push_back({"pipe", fmt::format("{} waits for {}", name(node), now_.pipe_text(*it.pipe))});
  }
  if (has_pipe && now_.is_held && since_s < options_.patience_s) return true;
  // The text ends with what the last actor waits for: a function of the first actor, or the first
  // actor's end of a pipe.
  const SystemActor& last = actor(circle.back());
  if (last.pipe) names.push_back(name(circle.front()));
  if (last.awaits) {
    names.push_back(fmt::format("{}.{}", now_.actor_name(last.awaits->row),
                                now_.endpoint_name(last.awaits->row, last.awaits->endpoint)));
  }
  Root found{.cause = Cause::deadlock,
             .actor = names_text(members),
             .headline = fmt::format("a circle of {}: {}{}", has_pipe ? "waits" : "calls",
                                     fmt::join(names, " > "),
                                     now_.is_held ? ", for " + seconds_text(since_s) : ""),
             .pid = pid_of(circle.front()),
             .tid = tid_of(circle.front()),
             .since_s = now_.is_held ? since_s : -1};
  for (const int node : circle) found.pids.push_back(pid_of(node));
  std::set<int> outside;
  for (const int waiter : graph_.waiters_of(circle)) outside.insert(waiter);
  if (!outside.empty()) found.notes.push_back({"waits", names_text(outside)});
  found.notes.insert(found.notes.end(), pipes.begin(), pipes.end());
  found.fix =
      has_pipe
          ? "let one of these functions use try_write() or try_read() and continue if it "
            "returns nothing, or give the pipe more credits"
          : "let one of these functions take the answer with then() instead of get(), or answer "
            "without the call; until then, the calls end at their timeout";
  why_.roots.push_back(std::move(found));
  return true;
}

/// Returns how long others have waited for the node: the longest wait if all are is_stream(),
/// infinity if one is for a call, -1 if there is none. Waits at pipes and for rows are measured
/// because an actor that streams values stays in one function.
double SystemExplainer::waited_s(int node) const {
  double longest_s = -1;
  for (const Wait& wait : graph_.waits()) {
    if (wait.to != node) continue;
    if (!is_stream(now_, wait)) return std::numeric_limits<double>::infinity();
    longest_s = std::max(longest_s, wait.since_s);
  }
  return longest_s;
}
double SystemExplainer::busy_s(int node) const {
  return std::min(now_.for_s(actor(node)), waited_s(node));
}

/// Explains an actor or process that doesn't use its end of a pipe, while the user of the other end
/// waits, and others wait for that user. Adds a root. Returns false, and adds nothing, if there is
/// no such pipe.
bool SystemExplainer::explain_idle_end(int node) {
  const auto is_cause = [&](const Wait& wait) {
    return wait.to == node && is_at_pipe(wait) && wait.since_s >= options_.patience_s &&
           !graph_.waiters_of({wait.from}).empty();
  };
  const auto wait = std::ranges::find_if(graph_.waits(), is_cause);
  if (wait == graph_.waits().end()) return false;
  const std::uint32_t slot =
      is_actor(node) ? actor(node).position.process.slot
                     : static_cast<std::uint32_t>(static_cast<std::size_t>(node) - actor_count());
  const SystemProcess* process = now_.process(slot);
  if (process == nullptr || is_frozen(now_, *process)) return false;
  const int pid = now_.pid(slot);
  const bool reads = wait->on == kPipeRoom;
  Root root{.cause = Cause::busy,
            .actor = name(node),
            .headline = fmt::format("{} (pid {}) has {} its pipe for {}", name(node), pid,
                                    reads ? "read nothing from" : "written nothing to",
                                    seconds_text(wait->since_s)),
            .pids = {pid},
            .pid = pid,
            .since_s = wait->since_s};
  add_waiters(root, {node});
  for (const Wait& own : graph_.waits()) {
    if (own.from == node) {
      root.notes.push_back({"itself", fmt::format("waits for {}", own.on)});
    }
  }
  root.fix = fmt::format("let it {} the pipe, or close or destroy its end",
                         reads ? "read from" : "write to");
  why_.roots.push_back(std::move(root));
  return true;
}

/// Explains a root that isn't a circle of actors. Its nodes are sorted, so a process is its last
/// node.
void SystemExplainer::explain_busy(const std::vector<int>& root) {
  const int node = root.front();
  if (is_job(root.back())) return explain_job(root);
  if (!is_actor(root.back()) && explain_idle_end(root.back())) return;
  if (!is_actor(node)) return;
  const SystemActor& it = actor(node);
  if (!it.runs() && it.position.phase == ActorPhase::alive) {
    if (!explain_idle_writer(node)) explain_idle_end(node);
    return;
  }
  if (lasts(node)) {
    busy_[{it.mesh, now_.function_name(static_cast<std::uint32_t>(node))}].insert(node);
  } else if (it.position.phase == ActorPhase::starting && !it.runs()) {
    made_again_.insert(node);
  }
}

/// Adds a root for each mesh whose actors have been in the same function for too long.
void SystemExplainer::add_busy() {
  for (const auto& [key, nodes] : busy_) {
    std::set<int> late;
    int longest = -1;
    for (const int node : nodes) {
      const double for_s = busy_s(node);
      if (longest < 0 || for_s > busy_s(longest)) longest = node;
      if (for_s >= options_.patience_s) late.insert(node);
    }
    if (late.empty()) {
      const double for_s = now_.for_s(actor(longest));
      const bool is_stream = busy_s(longest) < for_s;
      if (!is_stream) waits_for_ = std::max(waits_for_, std::pair(for_s, longest));
      continue;
    }
    const double function_s = now_.for_s(actor(longest));
    const int pid = pid_of(longest);
    const bool is_one = late.size() == 1;
    Root root{.cause = Cause::busy,
              .actor = names_text(late),
              .doing = fmt::format("in {}()", key.second),
              .headline =
                  fmt::format("{} ({}pid {}), in {}() for {}", names_text(late),
                              is_one ? "" : "longest ", pid, key.second, seconds_text(function_s)),
              .pid = pid,
              .tid = tid_of(longest),
              .since_s = busy_s(longest)};
    for (const int node : late) root.pids.push_back(pid_of(node));
    add_waiters(root, late);
    root.fix = fmt::format(
        "let the function return; if it never will, end its process: kill -9 {}; the system does "
        "that itself with supervision.hang_timeout_s",
        pid);
    if (actor(longest).position.process.slot == 0) {
      root.fix =
          "let the function return; it runs in the program itself, which can't be killed "
          "without the whole system";
    }
    why_.roots.push_back(std::move(root));
  }
}

}  // namespace weft
