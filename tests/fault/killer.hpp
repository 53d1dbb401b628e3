#pragma once
/// Killer: kills workers of an example at random instants.

#include <sched.h>

#include <cstdint>
#include <random>

#include "tests/fault/watched_run.hpp"
#include "tests/support/forks.hpp"

namespace weft::testing {

/// Needs no clock: waits until the job has reached a step or a worker a state, then yields a random
/// number of times, and kills.
class Killer {
 public:
  Killer(int workers, std::uint64_t seed) : workers_(workers), random_(seed) {}

  int pick(int limit) { return std::uniform_int_distribution(0, limit - 1)(random_); }

  /// Kills one worker. Returns false if the run ended first.
  bool kill_one(const WatchedRun& run) {
    const int rank = pick(workers_);
    const std::uint64_t step = run.step() + static_cast<std::uint64_t>(pick(30));
    static constexpr ActorState kStates[] = {ActorState::joining, ActorState::compiling,
                                             ActorState::running, ActorState::idle};
    const ActorState state = kStates[pick(4)];
    const bool by_state = pick(2) == 0;
    int tries = 20'000;  // the state may not occur again
    wait_until([&] {
      return run.over() || run.step() >= step || (by_state && run.worker(rank).state == state) ||
             (by_state && --tries == 0);
    });
    for (int i = pick(300); i > 0; --i) ::sched_yield();
    return !run.over() && run.kill(rank);
  }

 private:
  const int workers_;
  std::mt19937_64 random_;
};

/// Returns the number of kills in WEFT_KILLS, or the default.
inline int kill_count(int by_default) {
  return static_cast<int>(
      number_from_environment("WEFT_KILLS", static_cast<std::uint64_t>(by_default)));
}

}  // namespace weft::testing
