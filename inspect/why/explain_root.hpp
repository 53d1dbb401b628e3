#pragma once
/// Explains one root of a hang: an actor, or a circle of actors, for which others wait.

#include <optional>
#include <string>
#include <vector>

#include "inspect/why/why.hpp"

namespace weft {

/// The input for the explanation of roots.
struct RootView {
  const Snapshot& before;
  const Snapshot& now;
  const WaitGraph& graph;
  bool is_over = true;  ///< nothing has moved for longer than allowed
};

/// Returns the host of the worker's process, or -1 if the job has only one. -1 is the trainer.
int shown_host(const Snapshot& snapshot, int worker);

/// Explains a loop that is frozen, has failed, or is awaited. `chips` are those of its chips that
/// are awaited and don't wait themselves; if empty, the loop itself is awaited.
Root explain_worker(const RootView& view, int worker, const std::vector<int>& chips);
Root explain_trainer(const RootView& view);
/// Explains actors that wait for each other in a circle. Blames the holder of a lock for which
/// another of the actors waits; else the smallest group that is in another collective than the
/// rest; else all of them.
Root explain_circle(const RootView& view, const std::vector<int>& nodes);

/// Sets the root's cause and texts if the process can't continue by itself. Returns false if it
/// can.
bool explain_frozen(Root& root, const ProcessState* process, bool lost);
/// Adds the calls of the root's thread, with their source lines.
void add_stack(Root& root, const Snapshot& snapshot);
/// Adds the locks that the root holds and for which others wait.
void add_locks(Root& root, const RootView& view);

/// Merges roots of similar actors, and gives each root its first line and its waiters.
std::vector<Root> merged(const RootView& view, std::vector<Root> roots);

}  // namespace weft
