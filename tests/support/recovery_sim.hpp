#pragma once
/// A simulated job that loses workers at random moments. It drives the product's own JobState,
/// Members and WorkerState, and Commits, StateKeeper, BufferPool and ArenaBuffers in a JobMemory,
/// as the actors, worker.cpp, WorkerRuntime and Executor do. Loops, chips, collectives, links and
/// processes are small models of the real ones. There is one thread and no clock: a seed determines
/// everything.
///
/// The simulation checks at every event:
/// 1. A chip reads only the version that belongs to its run; at the end each chip has the values of
/// an
///    undisturbed job. So no step is skipped or taken twice, and nothing is overwritten too soon.
/// 2. A generation starts when nothing of another one runs, with its version complete on every
/// chip.
/// 3. No worker is ahead of the trainer's lease.
/// 4. Worker 0's reports come out once each, in order.
/// 5. A preempted job ends all its loops at one step, which every chip has completely.
/// 6. A checkpoint is joined once all workers have written their parts, each save ends once, and a
///    job whose chips keep no state continues from a complete checkpoint.
/// 7. No fault counts as two failures, no living process is refused, and the job ends well, or for
/// a
///    valid reason.

#include <cstdint>
#include <string>

namespace weft::testing {

/// A rule of the protocol that the simulated job breaks, to show that the checks notice it.
enum class BrokenRule : std::uint8_t {
  none,
  update_waits,         ///< a chip overwrites state only after all have committed
  resume_at_least,      ///< a job continues at the smallest of all commits
  commit_on_chip,       ///< the chip commits, not its loop, which is ahead
  one_commit_per_step,  ///< a step's second run writes no directory of the first run's state
  age_of_blocks,        ///< state is free only after the step that freed it
  reset_of_commits,     ///< commits are reset at the start of a generation
  filter,               ///< reports pass through the filter
  members_only,         ///< messages over a link that was given up don't count
  wait_for_unwound,     ///< a worker has unwound only after its chips have
  common_end,           ///< a preempted loop ends at the step that the trainer says, not at its own
  one_keeps,            ///< one of the chips that hold a tensor alike doesn't overwrite its version
  copy_of_kept,         ///< the other chips begin a generation with a copy of the kept version
};

struct SimResult {
  std::string violation;       ///< the violated rule with the last events; "" if all is well
  std::uint64_t failures = 0;  ///< the number that the trainer saw
  std::uint64_t events = 0;
  bool succeeded = false;
  bool preempted = false;  ///< its loops ended early, as they were told to
  int workers = 0;
};

SimResult simulate_recovery(std::uint64_t seed, BrokenRule broken = BrokenRule::none);

}  // namespace weft::testing
