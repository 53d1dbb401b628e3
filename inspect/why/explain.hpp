#pragma once
/// Explain: computes the answer of `weft inspect why` from two snapshots of a job.

#include <span>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "inspect/why/why.hpp"

namespace weft {

struct WhyOptions {
  /// Time without movement that counts as a hang, in seconds. 0: the time that patience_s()
  /// returns.
  double patience_s = 0;
};

/// Explains the state of a job. `before` and `now` are snapshots of the same job, about 50 ms
/// apart; for a job that has ended they are the same snapshot. `now` may have sights of processes,
/// which show the positions of their threads.
Why explain(const Snapshot& before, const Snapshot& now, const WhyOptions& options = {});

/// Explains a job that has ended (`end`) and had hung before (`hang`). The answer begins with the
/// hang, because it explains the end.
Why explain_after_hang(const Snapshot& end, const Snapshot& hang);
/// Explains a job that has ended, and the hang that its run folder may have recorded.
Why explain_ended(const Snapshot& end);

/// Returns the processes whose sights would help explain().
std::vector<HostPid> worth_a_sight(const Snapshot& before, const Snapshot& now);

/// Looks for one slow worker or chip in a running job whose verdict is `well`. `looks` are
/// snapshots, about 10 ms apart. Sets the verdict to `slow` if one chip came last in most
/// collectives or, without events, if all waits lead to one worker in most snapshots. Leaves the
/// verdict if there are too few collectives or snapshots.
void find_slow(Why& why, std::span<const Snapshot> looks);

}  // namespace weft
