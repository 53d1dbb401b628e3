#include "inspect/systems/system_why.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspect/process/stack.hpp"
#include "inspect/systems/system_explainer.hpp"
#include "inspect/why/stack_places.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

/// The number of stacks that are read at most.
constexpr int kStackCountMax = 8;

}  // namespace

Why SystemExplainer::explain() {
  why_.job = now_.id;
  why_.name = now_.name;
  why_.remarks = now_.remarks;
  why_.waits = graph_.waits();
  for (const Wait& wait : graph_.waits()) {
    if (is_actor(wait.from)) next_[wait.from] = wait.to;
  }
  const int nodes = graph_.num_nodes();
  for (int node = 0; node < nodes; ++node) why_.names.push_back(name_of_node(now_, node));
  if (!now_.is_held) explain_dead();
  explain_failed();
  if (now_.is_held) explain_processes();
  for (const std::vector<int>& root : graph_.roots()) {
    if (!explain_circle(root) && now_.is_held) explain_busy(root);
  }
  add_busy();
  add_idle_writers();
  std::ranges::stable_sort(why_.roots, {}, &Root::cause);
  conclude();
  return std::move(why_);
}

int SystemExplainer::tid_of(int node) const {
  const SystemProcess* process = now_.process(actor(node).position.process.slot);
  const int tid = actor(node).tid;
  return process != nullptr && process->process.thread(tid) != nullptr ? tid : 0;
}

bool SystemExplainer::lasts(int node) const {
  const auto row = static_cast<std::size_t>(node);
  return actor(node).runs() && row < before_.actors.size() &&
         before_.actors[row].since_ns == actor(node).since_ns;
}

std::string SystemExplainer::names_text(const std::set<int>& nodes) const {
  std::map<std::string, std::vector<int>> by_mesh;
  std::vector<std::string> parts;
  for (const int node : nodes) {
    if (is_actor(node)) by_mesh[mesh_of(node)].push_back(static_cast<int>(actor(node).index));
  }
  for (const auto& [mesh, indices] : by_mesh) {
    parts.push_back(fmt::format("{}[{}]", mesh, ranges_text(indices)));
  }
  for (const int node : nodes) {
    if (!is_actor(node)) parts.push_back(name_of_node(now_, node));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void SystemExplainer::add_waiters(Root& root, const std::set<int>& awaited) const {
  std::map<std::string, std::set<int>> by_endpoint;
  std::map<std::string, std::pair<std::set<int>, double>> at_pipe;
  std::set<int> on_thread;
  for (const Wait& wait : graph_.waits()) {
    if (!awaited.contains(wait.to)) continue;
    if (is_stream(now_, wait)) {
      auto& [nodes, longest_s] = at_pipe[wait.on];
      nodes.insert(wait.from);
      longest_s = std::max(longest_s, wait.since_s);
    }
    if (!is_actor(wait.to) || is_stream(now_, wait)) continue;
    const auto index = wait.on.find("].");  // of "policy[3].act", which becomes "policy.act"
    if (index == wait.on.npos) {
      on_thread.insert(wait.from);
    } else {
      by_endpoint[mesh_of(wait.to) + wait.on.substr(index + 1)].insert(wait.from);
    }
  }
  for (const auto& [endpoint, nodes] : by_endpoint) {
    root.notes.push_back({"waits", fmt::format("{} in {}", names_text(nodes), endpoint)});
  }
  for (const auto& [wanted, waiters] : at_pipe) {
    const auto& [nodes, longest_s] = waiters;
    root.notes.push_back({"waits", fmt::format("{} for {}, for {}", names_text(nodes), wanted,
                                               seconds_text(longest_s))});
  }
  if (!on_thread.empty()) {
    root.notes.push_back({"waits", names_text(on_thread) + ", on the same thread"});
  }
  add_jobs_behind(root, awaited);
}

void SystemExplainer::explain_dead() {
  const int pid = now_.pid(0);
  Root root{.cause = Cause::lost,
            .actor = "the program",
            .headline = fmt::format("the program (pid {}) is gone, and its actors with it", pid),
            .pids = {pid},
            .pid = pid};
  std::map<std::string, std::set<int>> ran;
  for (std::size_t row = 0; row < actor_count(); ++row) {
    const int node = static_cast<int>(row);
    if (!actor(node).runs()) continue;
    ran[now_.function_name(static_cast<std::uint32_t>(row))].insert(node);
  }
  for (const auto& [function, nodes] : ran) {
    root.notes.push_back({"ran", fmt::format("{} in {}()", names_text(nodes), function)});
  }
  root.fix =
      "find out what ended the program, and start it again; its shared memory remains until the "
      "next job or actor system starts, or `weft sweep` removes it";
  why_.roots.push_back(std::move(root));
}

void SystemExplainer::explain_failed() {
  std::map<std::string, std::vector<std::string>> by_cause;
  for (const SystemMesh& mesh : now_.meshes) {
    if (!mesh.cause.empty()) by_cause[mesh.cause].push_back(mesh.name);
  }
  for (const auto& [cause, meshes] : by_cause) {
    const std::string name =
        fmt::format("mesh{} {}", meshes.size() == 1 ? "" : "es", fmt::join(meshes, ", "));
    why_.roots.push_back(
        {.cause = Cause::failed,
         .actor = name,
         .headline = fmt::format("{} ended, with all {} actors", name,
                                 meshes.size() == 1 ? "its" : "their"),
         .notes = {{"says", cause}},
         .fix = "fix the cause; a mesh survives further failures with a higher "
                "supervision.max_restarts, and the rest of the system survives the mesh with "
                ".then = weft::ActorGivesUp::stop"});
  }
}

std::optional<Cause> SystemExplainer::cause_of(const SystemProcess& process) const {
  const SystemProcess* earlier = before_.process(process.peer.slot);
  if (earlier == nullptr || earlier->peer != process.peer) return {};
  const ProcessState& it = process.process;
  if (!is_frozen(now_, process)) {
    const bool is_in_device = it.pid != 0 && it.in_device() && earlier->process.in_device();
    return is_in_device ? std::optional(Cause::device) : std::nullopt;
  }
  if (process.state == PeerState::dead || it.gone()) return Cause::lost;
  if (!is_frozen(before_, *earlier)) return {};
  if (it.held()) return Cause::held;
  return it.in_freezer() ? Cause::frozen : Cause::stopped;
}

std::string SystemExplainer::fix_of(const Root& root) {
  switch (root.cause) {
    case Cause::stopped: return fmt::format("kill -CONT {}", root.pid);
    case Cause::held: return "continue the process in the debugger, or detach the debugger";
    case Cause::frozen: return "thaw its cgroup: echo 0 > GROUP/cgroup.freeze";
    case Cause::device:
      return "check the disk or device (dmesg): until it answers, the process handles no signal";
    default:
      return "read the log for the process's end; to make its actors again, use "
             "supervision.max_restarts";
  }
}

void SystemExplainer::explain_processes() {
  for (const SystemProcess& process : now_.processes) {
    const std::optional<Cause> cause = cause_of(process);
    if (!cause) continue;
    const std::string name = SystemSnapshot::process_name(process.peer.slot);
    const int pid = process.process.pid;
    Root root{.cause = *cause,
              .actor = name,
              .headline = fmt::format("{} (pid {}) {}", name, pid, describe(process.process)),
              .pids = {pid},
              .pid = pid,
              .process = describe(process.process),
              .wchan = process.process.wchan,
              .tracer = process.process.tracer};
    std::set<int> its;
    for (std::size_t row = 0; row < actor_count(); ++row) {
      const SystemActor& actor = now_.actors[row];
      if (actor.position.process == process.peer && actor.position.phase != ActorPhase::ended) {
        its.insert(static_cast<int>(row));
      }
    }
    if (!its.empty()) root.notes.push_back({"has", names_text(its)});
    its.insert(node_of_process(now_, process.peer.slot));
    add_waiters(root, its);
    root.fix = fix_of(root);
    why_.roots.push_back(std::move(root));
  }
}

void SystemExplainer::conclude() {
  const auto any = [&](std::initializer_list<Cause> causes) {
    return std::ranges::any_of(why_.roots, [&](const Root& root) {
      return std::ranges::find(causes, root.cause) != causes.end();
    });
  };
  for (const Root& root : why_.roots) why_.idle_s = std::max(why_.idle_s, root.since_s);
  if (any({Cause::lost, Cause::failed})) {
    why_.verdict = Verdict::failed;
  } else if (any({Cause::stopped, Cause::frozen, Cause::device, Cause::deadlock, Cause::busy})) {
    why_.verdict = Verdict::hung;
  } else if (any({Cause::held})) {
    why_.verdict = Verdict::held;
  } else if (waits_for_.second >= 0) {
    const auto row = static_cast<std::uint32_t>(waits_for_.second);
    why_.verdict = Verdict::waits;
    why_.idle_s = waits_for_.first;
    why_.summary = fmt::format("for {}: {}() has run for {}, which is no hang yet (--patience {})",
                               now_.actor_name(row), now_.function_name(row),
                               time_text(waits_for_.first), options_.patience_s);
  } else if (!made_again_.empty()) {
    why_.verdict = Verdict::waits;
    why_.summary = fmt::format("for {}, which will be made again", names_text(made_again_));
  } else {
    conclude_well();
  }
}

void SystemExplainer::conclude_well() {
  why_.verdict = Verdict::well;
  std::size_t running = 0;
  int longest = -1;
  for (std::size_t row = 0; row < actor_count(); ++row) {
    const int node = static_cast<int>(row);
    if (!lasts(node)) continue;
    ++running;
    if (longest < 0 || actor(node).since_ns < actor(longest).since_ns) longest = node;
  }
  why_.summary = fmt::format("{} actors in {} meshes; nobody waits for a function that lasts",
                             now_.actor_count(), now_.meshes.size());
  if (longest >= 0) {
    const auto row = static_cast<std::uint32_t>(longest);
    why_.summary +=
        fmt::format("; {} run one, the longest {}.{} for {}", running, now_.actor_name(row),
                    now_.function_name(row), time_text(now_.for_s(actor(longest))));
  }
}

Why explain_system(const SystemSnapshot& before, const SystemSnapshot& now,
                   const SystemWhyOptions& options) {
  return SystemExplainer(before, now, options).explain();
}

void add_stacks(Why& why) {
  int count = 0;
  for (Root& root : why.roots) {
    if (root.tid <= 0 || root.pid <= 0 || ++count > kStackCountMax) continue;
    for (const ThreadStack& stack : read_stacks(root.pid, std::array{root.tid})) {
      root.stack = users_part(stack.frames);
      const Note note =
          root.stack.empty() ? Note{"stack", stack.why_not} : Note{"at", to_text(root.stack)};
      if (!note.text.empty()) root.notes.insert(root.notes.begin(), note);
    }
  }
}

}  // namespace weft
