#pragma once
/// ExplainRoot: explains one root of a hang: an actor, or a circle of actors, for which others
/// wait.

#include <optional>
#include <string>
#include <vector>

#include "inspect/why/why.hpp"

namespace weft {

/// The facts from which roots are explained.
struct RootView {
  const Snapshot& before;
  const Snapshot& now;
  const WaitGraph& graph;
  bool is_over = true;  ///< whether nothing has moved for longer than allowed
};

/// Returns the host of the worker's process, or -1 if the job has only one host. Worker -1 is the
/// trainer.
int shown_host(const Snapshot& snapshot, int worker);

/// Explains a loop that is frozen, has failed, or is awaited. `chips` are its awaited chips that
/// don't wait themselves; if there are none, the loop itself is awaited.
Root explain_worker(const RootView& view, int worker, const std::vector<int>& chips);
Root explain_trainer(const RootView& view);
/// Explains actors that wait for each other in a circle. Blames an actor that holds a lock for
/// which another of the actors waits; otherwise the smallest group, if it is in another collective
/// than the others; otherwise all of them.
Root explain_circle(const RootView& view, const std::vector<int>& nodes);

/// Sets the root's cause and texts if the process can't continue by itself. Returns false if it
/// can.
bool explain_frozen(Root& root, const ProcessState* process, bool lost);
/// Describes a loop that waits for rows of an experience(): which have come, who writes them, and
/// how long each writer has been silent. Does nothing if the loop doesn't wait for rows.
void explain_rows(Root& root, const JobStreams& streams, const ActorRow& loop);
/// Adds the calls of the root's thread, with their source lines.
void add_stack(Root& root, const Snapshot& snapshot);
/// Adds the locks that the root holds and that others wait for.
void add_locks(Root& root, const RootView& view);

/// Merges roots of similar actors, and adds to each root its first line and its waiters.
std::vector<Root> merged(const RootView& view, std::vector<Root> roots);

}  // namespace weft
