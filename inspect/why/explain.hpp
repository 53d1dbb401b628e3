#pragma once
/// The answer of `weft inspect why`, as a pure function of two looks at a job.

#include <span>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "inspect/why/why.hpp"

namespace weft {

struct WhyOptions {
  /// How long nothing may move before that is a hang; 0: as patience_s() has it.
  double patience_s = 0;
};

/// `before` and `now`: the same job, some 50 ms apart; both the same where it has ended. `now` may
/// have sights of processes, which tell where their threads are.
Why explain(const Snapshot& before, const Snapshot& now, const WhyOptions& options = {});

/// Of a job that has ended (`end`), and of the same job as it was when it hung: that comes first,
/// because it explains the end.
Why explain_after_hang(const Snapshot& end, const Snapshot& hang);
/// Of a job that has ended, with the hang that its run folder keeps, if it does.
Why explain_ended(const Snapshot& end);

/// The processes whose sights explain() would use.
std::vector<int> worth_a_sight(const Snapshot& before, const Snapshot& now);

/// Looks at a job that goes on (`why` says that it is well), some 10 ms apart: the chip or the
/// worker for which the others wait in most of them makes the verdict `slow`. Nothing changes where
/// there is no such one, or too few looks.
void find_slow(Why& why, std::span<const Snapshot> looks);

}  // namespace weft
