#pragma once
/// One root of a hang in words.

#include <optional>
#include <string>
#include <vector>

#include "inspect/why/why.hpp"

namespace weft {

/// What the roots are explained from.
struct RootView {
  const Snapshot& before;
  const Snapshot& now;
  const WaitGraph& graph;
  bool is_over = true;  ///< nothing has moved for longer than is allowed
};

/// A loop that is frozen, has failed, or is awaited; `chips`: those of its chips that are awaited
/// and don't wait themselves. Empty: the loop itself is.
Root explain_worker(const RootView& view, int worker, const std::vector<int>& chips);
Root explain_trainer(const RootView& view);
/// Actors that wait for each other in a circle: who holds a lock that another waits for, or the
/// fewest that are in another collective than the others, or all of them.
Root explain_circle(const RootView& view, const std::vector<int>& nodes);

/// Cause and words of a process that doesn't go on by itself; false: it does.
bool explain_frozen(Root& root, const ProcessState* process, bool lost);
/// The calls of its thread, with their source lines.
void add_stack(Root& root, const Snapshot& snapshot);
/// Locks that it holds and others wait for.
void add_locks(Root& root, const RootView& view);

/// Roots of equal actors become one, and each gets its first line and who waits for it.
std::vector<Root> merged(const RootView& view, std::vector<Root> roots);

}  // namespace weft
