#pragma once
/// Simulates a job whose workers die at random moments. JobState, Members, WorkerState, Commits,
/// StateKeeper, BufferPool and ArenaBuffers are the product's own, used as its actors, worker.cpp,
/// WorkerRuntime and Executor use them. Loops, chips, collectives, links and processes are small
/// models. There is one thread and no clock: a seed determines everything.
///
/// The simulation checks at every event:
/// 1. A chip reads only the version that belongs to its run, and at the end each chip has the
///    values of an undisturbed job. So no step is skipped or run twice, and nothing is overwritten
///    too soon.
/// 2. A generation starts when nothing of an earlier generation runs, and the version with which it
///    starts is complete on every chip.
/// 3. No worker is ahead of the trainer's lease.
/// 4. Each of worker 0's reports is delivered once, and they are in order.
/// 5. A preempted job ends all its loops at one step, which every chip has completed.
/// 6. A checkpoint is joined when all workers have written their parts, each save ends once, and a
///    job whose chips keep no state continues from a complete checkpoint.
/// 7. No fault counts as two failures, no living process is refused, and the job ends well or for a
///    valid reason.

#include <cstdint>
#include <string>

namespace weft::testing {

/// The rule of the protocol that a simulated job breaks on purpose, to test that the checks notice
/// it.
enum class BrokenRule : std::uint8_t {
  none,
  update_waits,         ///< a chip overwrites state only after all have committed
  resume_at_least,      ///< a job continues at the smallest of all commits
  commit_on_chip,       ///< the chip commits a step, not the loop, which is ahead
  one_commit_per_step,  ///< a step's second run doesn't write the first run's state
  age_of_blocks,        ///< memory is reused only after the step that freed it
  reset_of_commits,     ///< at the start of a generation the commits are reset
  filter,               ///< reports that arrive twice are filtered out
  members_only,         ///< messages over a link that the trainer gave up are ignored
  wait_for_unwound,     ///< a worker reports `unwound` only after its chips have unwound
  common_end,           ///< a preempted loop ends at the step that the trainer has chosen
  one_keeps,            ///< one of the chips with replicas keeps the old version
  copy_of_kept,         ///< a generation begins with copies of the kept version
};

struct SimResult {
  std::string violation;       ///< the violated rule and the last events; "" if no rule is violated
  std::uint64_t failures = 0;  ///< the number of failures that the trainer saw
  std::uint64_t events = 0;
  bool succeeded = false;
  bool preempted = false;  ///< the loops ended early because they were told to
  int workers = 0;
};

SimResult simulate_recovery(std::uint64_t seed, BrokenRule broken = BrokenRule::none);

}  // namespace weft::testing
