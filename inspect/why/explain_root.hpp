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
};

/// A loop that is frozen, has failed, or is awaited; `chips`: those of its chips that are awaited
/// and don't wait themselves. Empty: the loop itself is.
Root explain_worker(const RootView& view, int worker, const std::vector<int>& chips);
Root explain_trainer(const RootView& view);
/// Actors that wait for each other in a circle.
Root explain_circle(const RootView& view, const std::vector<int>& nodes);

/// Workers that are in the same place for the same cause become one root: "workers 0-3".
std::vector<Root> merged(std::vector<Root> roots);

}  // namespace weft
