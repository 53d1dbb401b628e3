#include "inspect/systems/system_why.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspect/process/stack.hpp"
#include "inspect/systems/system_waits.hpp"
#include "inspect/why/stack_places.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

/// At most so many stacks are read.
constexpr int kStackCountMax = 8;

class SystemExplainer {
 public:
  SystemExplainer(const SystemSnapshot& before, const SystemSnapshot& now,
                  const SystemWhyOptions& options)
      : before_(before), now_(now), options_(options), graph_(waits_of(now)) {}

  Why explain() {
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
      if (!explain_circle(root) && now_.is_held) explain_busy(root.front());
    }
    add_busy();
    std::ranges::stable_sort(why_.roots, {}, &Root::cause);
    conclude();
    return std::move(why_);
  }

 private:
  std::size_t actor_count() const { return now_.actors.size(); }
  bool is_actor(int node) const { return static_cast<std::size_t>(node) < actor_count(); }
  const SystemActor& actor(int node) const { return now_.actors[static_cast<std::size_t>(node)]; }
  int pid_of(int node) const { return now_.pid(actor(node).position.process.slot); }
  /// Returns the actor's thread; 0 if its process has no such thread.
  int tid_of(int node) const {
    const SystemProcess* process = now_.process(actor(node).position.process.slot);
    const int tid = actor(node).tid;
    return process != nullptr && process->process.thread(tid) != nullptr ? tid : 0;
  }
  const std::string& mesh_of(int node) const { return now_.meshes[actor(node).mesh].name; }

  /// Returns whether the actor runs the function that it ran at the look before.
  bool lasts(int node) const {
    const auto row = static_cast<std::size_t>(node);
    return actor(node).runs() && row < before_.actors.size() &&
           before_.actors[row].since_ns == actor(node).since_ns;
  }

  /// Returns names such as "rollouts[0-5], the program".
  std::string names_text(const std::set<int>& nodes) const {
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

  /// Adds a note for each endpoint in which others wait for one of these actors, and for the actors
  /// that need the thread of one of them.
  void add_waiters(Root& root, const std::set<int>& awaited) const {
    std::map<std::string, std::set<int>> by_endpoint;
    std::set<int> on_thread;
    for (const Wait& wait : graph_.waits()) {
      if (!is_actor(wait.to) || !awaited.contains(wait.to)) continue;
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
    if (!on_thread.empty()) {
      root.notes.push_back({"waits", names_text(on_thread) + ", on the same thread"});
    }
  }

  void explain_dead() {
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

  /// Adds the meshes that have failed. Those that ended with the same cause share a root.
  void explain_failed() {
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

  std::optional<Cause> cause_of(const SystemProcess& process) const {
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

  static std::string fix_of(const Root& root) {
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

  void explain_processes() {
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
      add_waiters(root, its);
      root.fix = fix_of(root);
      why_.roots.push_back(std::move(root));
    }
  }

  /// Explains a root in which each actor waits for the next one. Returns false if it is none.
  bool explain_circle(const std::vector<int>& root) {
    const auto waits = [&](int node) { return is_actor(node) && next_.contains(node); };
    if (!std::ranges::all_of(root, waits)) return false;
    // A circle is named from the actor that is first in the table.
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
      if (!actor(node).runs()) continue;  // it only needs the thread of the next one
      names.push_back(fmt::format("{}.{}", why_.names[static_cast<std::size_t>(node)],
                                  now_.function_name(static_cast<std::uint32_t>(node))));
      since_s = since_s < 0 ? now_.for_s(actor(node)) : std::min(since_s, now_.for_s(actor(node)));
    }
    // The last call of the circle is that of which the first actor can't begin the function.
    const SystemActor& last = actor(circle.back());
    if (last.awaits) {
      names.push_back(fmt::format("{}.{}", now_.actor_name(last.awaits->row),
                                  now_.endpoint_name(last.awaits->row, last.awaits->endpoint)));
    }
    Root found{.cause = Cause::deadlock,
               .actor = names_text(members),
               .headline = fmt::format("a circle of calls: {}{}", fmt::join(names, " > "),
                                       now_.is_held ? ", for " + seconds_text(since_s) : ""),
               .pid = pid_of(circle.front()),
               .tid = tid_of(circle.front()),
               .since_s = now_.is_held ? since_s : -1};
    for (const int node : circle) found.pids.push_back(pid_of(node));
    std::set<int> outside;
    for (const int waiter : graph_.waiters_of(circle)) outside.insert(waiter);
    if (!outside.empty()) found.notes.push_back({"waits", names_text(outside)});
    found.fix =
        "let one of these functions take the answer with then() instead of get(), or answer "
        "without the call; until then, the calls end at their timeout";
    why_.roots.push_back(std::move(found));
    return true;
  }

  /// Notes an actor for which others wait, and which waits for nobody.
  void explain_busy(int node) {
    if (!is_actor(node)) return;
    const SystemActor& it = actor(node);
    if (lasts(node)) {
      busy_[{it.mesh, now_.function_name(static_cast<std::uint32_t>(node))}].insert(node);
    } else if (it.position.phase == ActorPhase::starting && !it.runs()) {
      made_again_.insert(node);
    }
  }

  /// Adds a root for the actors of a mesh that have been in the same function for too long.
  void add_busy() {
    for (const auto& [key, nodes] : busy_) {
      std::set<int> late;
      int longest = -1;
      for (const int node : nodes) {
        const double for_s = now_.for_s(actor(node));
        if (longest < 0 || for_s > now_.for_s(actor(longest))) longest = node;
        if (for_s >= options_.patience_s) late.insert(node);
      }
      if (late.empty()) {
        waits_for_ = std::max(waits_for_, std::pair(now_.for_s(actor(longest)), longest));
        continue;
      }
      const double since_s = now_.for_s(actor(longest));
      const int pid = pid_of(longest);
      const bool is_one = late.size() == 1;
      Root root{
          .cause = Cause::busy,
          .actor = names_text(late),
          .doing = fmt::format("in {}()", key.second),
          .headline = fmt::format("{} ({}pid {}), in {}() for {}", names_text(late),
                                  is_one ? "" : "longest ", pid, key.second, seconds_text(since_s)),
          .pid = pid,
          .tid = tid_of(longest),
          .since_s = since_s};
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

  void conclude() {
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
      why_.summary = fmt::format(
          "for {}: {}() has run for {}, which is no hang yet (--patience {})", now_.actor_name(row),
          now_.function_name(row), time_text(waits_for_.first), options_.patience_s);
    } else if (!made_again_.empty()) {
      why_.verdict = Verdict::waits;
      why_.summary = fmt::format("for {}, which will be made again", names_text(made_again_));
    } else {
      conclude_well();
    }
  }

  void conclude_well() {
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
                               actor_count(), now_.meshes.size());
    if (longest >= 0) {
      const auto row = static_cast<std::uint32_t>(longest);
      why_.summary +=
          fmt::format("; {} run one, the longest {}.{} for {}", running, now_.actor_name(row),
                      now_.function_name(row), time_text(now_.for_s(actor(longest))));
    }
  }

  const SystemSnapshot& before_;
  const SystemSnapshot& now_;
  SystemWhyOptions options_;
  WaitGraph graph_;
  std::map<int, int> next_;  ///< by actor: what it waits for, which is one actor or process
  Why why_;
  /// By mesh and function: the awaited actors that run it.
  std::map<std::pair<std::uint32_t, std::string>, std::set<int>> busy_;
  std::set<int> made_again_;                 ///< awaited actors that don't exist at the moment
  std::pair<double, int> waits_for_{0, -1};  ///< seconds and node of the longest wait
};

}  // namespace

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
