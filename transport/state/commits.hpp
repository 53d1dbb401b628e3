#pragma once
/// Commits: the last committed step of every chip, in words that outlive the processes.
///
/// State is what a job keeps from step to step. Version s is what s steps have made of it; the step
/// after them reads version s and writes version s + 1 elsewhere. Invariants:
///
/// 1. A chip commits s when it begins to run what makes version s + 1. By then version s is
///    complete on it, its worker's directory says where it lies, and the worker's loop has done
///    all that it does in the steps before.
/// 2. A chip writes over version s - 1 only when every chip has committed s.
/// 3. From 1 and 2: the least of all commits is a version that every chip still has, whenever any
///    of them are killed. A job goes on from there.

#include <chrono>
#include <cstdint>
#include <vector>

#include <weft/mesh.hpp>

#include "transport/blackbox/recorder.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// The commits of one chip; used by one thread at a time. It waits for the chips of its host alone,
/// whose words are in this memory.
class Commits {
 public:
  /// `memory` must outlive it.
  Commits(const JobMemory& memory, const Mesh& mesh, int position, const Recorder& recorder,
          WaitPolicy policy);

  /// Only grows: a smaller `step` changes nothing.
  void commit(std::uint64_t step);
  /// Whether every chip has committed `step`. Throws peer_lost with the abort's reason if the job
  /// was aborted and a chip is still missing.
  bool reached(std::uint64_t step);
  /// Waits, as the policy says, until every chip has committed `step`. Throws as reached(), and
  /// timeout; the message names the missing chip.
  void wait(std::uint64_t step);

 private:
  using Clock = std::chrono::steady_clock;
  bool all_reached(std::uint64_t step);
  void sleep(std::uint64_t step, Clock::duration longest);

  const JobMemory* memory_;
  int chip_;
  Recorder recorder_;
  WaitPolicy policy_;
  std::vector<int> peers_;   ///< chips, in the order of checking
  std::size_t reached_ = 0;  ///< how many of them have reached `target_`
  std::uint64_t target_ = 0;
};

/// The version that every chip of the job still has, whatever has happened to their processes.
std::uint64_t common_step(const JobMemory& memory);

}  // namespace weft
