#pragma once
/// A simulated job that loses workers at random moments: the product's own JobState, Members and
/// WorkerState, and Commits, StateKeeper, BufferPool and ArenaBuffers in a JobMemory, driven as the
/// actors, worker.cpp, WorkerRuntime and Executor do. Loops, chips, collectives, links and
/// processes are small models of the real ones. One thread, no clock: a seed says all that happens.
///
/// What is checked, at every event:
/// 1. A chip reads only the version that its run is of; at the end each has what an undisturbed job
///    leaves. So no step is skipped or taken twice, and nothing is overwritten too soon.
/// 2. A generation starts while nothing of another runs, with its version whole on every chip.
/// 3. No worker is ahead of the trainer's lease.
/// 4. Worker 0's reports come out once each, in order.
/// 5. A job that is preempted ends all its loops at one step, which every chip has whole.
/// 6. A checkpoint is joined once all workers have written their parts, each save ends once, and a
///    job whose chips keep no state goes on from a checkpoint that is whole.
/// 7. No fault counts as two failures, no living process is refused, and the job ends: well, or for
///    a reason that it has.

#include <cstdint>
#include <string>

namespace weft::testing {

/// A rule of the protocol that the simulated job breaks, to show that this is found.
enum class BrokenRule : std::uint8_t {
  none,
  update_waits,         ///< a chip writes over state only when all have committed
  resume_at_least,      ///< a job goes on at the least of all commits
  commit_on_chip,       ///< a chip commits, and not its loop, which is ahead
  one_commit_per_step,  ///< a step's second run writes no directory of the first one's state
  age_of_blocks,        ///< state is free only after the step that freed it
  reset_of_commits,     ///< commits begin anew with a generation
  filter,               ///< reports go through the filter
  members_only,         ///< nothing counts that comes over a link that was given up
  wait_for_unwound,     ///< a worker has unwound when its chips have
  common_end,           ///< a preempted loop ends at the step that the trainer says, not at its own
  one_keeps,            ///< of those that hold a tensor alike, one doesn't write over its version
  copy_of_kept,         ///< the others begin a generation with a copy of that
};

struct SimResult {
  std::string violation;       ///< with the last events; "": all is well
  std::uint64_t failures = 0;  ///< that the trainer saw
  std::uint64_t events = 0;
  bool succeeded = false;
  bool preempted = false;  ///< its loops ended early, as they were told to
  int workers = 0;
};

SimResult simulate_recovery(std::uint64_t seed, BrokenRule broken = BrokenRule::none);

}  // namespace weft::testing
