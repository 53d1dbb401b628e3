#pragma once
/// SystemExplainer: finds what keeps an actor system from continuing, for explain_system().

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "inspect/systems/system_waits.hpp"
#include "inspect/systems/system_why.hpp"

namespace weft {

/// Explains one system. Call explain() only once.
class SystemExplainer {
 public:
  SystemExplainer(const SystemSnapshot& before, const SystemSnapshot& now,
                  const SystemWhyOptions& options)
      : before_(before), now_(now), options_(options), graph_(waits_of(now)) {}

  Why explain();

 private:
  std::size_t actor_count() const { return now_.actors.size(); }
  bool is_actor(int node) const { return static_cast<std::size_t>(node) < actor_count(); }
  const SystemActor& actor(int node) const { return now_.actors[static_cast<std::size_t>(node)]; }
  int pid_of(int node) const { return now_.pid(actor(node).position.process.slot); }
  /// Returns the actor's thread; 0 if its process has no such thread.
  int tid_of(int node) const;
  const std::string& name(int node) const { return why_.names[static_cast<std::size_t>(node)]; }
  const std::string& mesh_of(int node) const { return now_.meshes[actor(node).mesh].name; }

  /// Returns whether the actor runs the same function as in the snapshot `before_`.
  bool lasts(int node) const;
  /// Returns names such as "rollouts[0-5], the program".
  std::string names_text(const std::set<int>& nodes) const;
  /// Adds notes that say which actors wait for those in `awaited`: for each endpoint, the actors
  /// that wait for its answer; for pipes, the actors that wait for room or a value; and the actors
  /// that need the thread of one of those in `awaited`.
  void add_waiters(Root& root, const std::set<int>& awaited) const;
  /// Adds the jobs whose loops wait for rows of actors that wait, directly or not, for `awaited`.
  void add_jobs_behind(Root& root, const std::set<int>& awaited) const;
  void explain_dead();
  /// Adds the meshes that have failed. Meshes that ended with the same cause share a root.
  void explain_failed();
  std::optional<Cause> cause_of(const SystemProcess& process) const;
  static std::string fix_of(const Root& root);
  void explain_processes();
  bool explain_circle(const std::vector<int>& root);
  double waited_s(int node) const;
  double busy_s(int node) const;
  bool explain_idle_end(int node);
  bool is_job(int node) const { return node >= node_of_job(now_, 0); }
  bool explain_idle_writer(int node);
  void add_idle_writers();
  void explain_job(const std::vector<int>& root);
  void explain_busy(const std::vector<int>& root);
  void add_busy();
  void conclude();
  void conclude_well();

  const SystemSnapshot& before_;
  const SystemSnapshot& now_;
  SystemWhyOptions options_;
  WaitGraph graph_;
  std::map<int, int> next_;  ///< by actor: the one actor or process that it waits for
  Why why_;
  /// The awaited actors that run a function, by their mesh and the function.
  std::map<std::pair<std::uint32_t, std::string>, std::set<int>> busy_;
  std::map<int, std::set<int>> idle_writers_;  ///< actors that write no rows, by the job's node
  std::set<int> made_again_;                   ///< awaited actors that don't exist at the moment
  std::pair<double, int> waits_for_{0, -1};    ///< seconds and node of the longest wait
};

}  // namespace weft
