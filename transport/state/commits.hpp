#pragma once
/// Commits: how far the state of every chip has come, in words that outlive the processes.
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

#include "transport/board/board.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// One chip's; used by one thread at a time.
class Commits {
 public:
  /// `memory` must outlive it.
  Commits(const JobMemory& memory, const Mesh& mesh, int position, BoardWriter board,
          WaitPolicy policy);

  /// Only grows: a smaller `step` changes nothing.
  void commit(std::uint64_t step);
  /// Whether every chip has committed `step`. Throws peer_lost with its reason where the job was
  /// aborted and that can't be any more.
  bool reached(std::uint64_t step);
  /// Waits for it as the policy says. Throws as reached(), and timeout, naming the chip that is
  /// missing.
  void wait(std::uint64_t step);

 private:
  using Clock = std::chrono::steady_clock;
  bool all_reached(std::uint64_t step);
  void sleep(std::uint64_t step, Clock::duration longest);

  const JobMemory* memory_;
  int chip_;
  BoardWriter board_;
  WaitPolicy policy_;
  std::vector<int> peers_;   ///< chips, from the next on
  std::size_t reached_ = 0;  ///< of them, those that were seen at `target_`
  std::uint64_t target_ = 0;
};

/// The version that every chip of the job still has, whatever has become of their processes.
std::uint64_t common_step(const JobMemory& memory);

}  // namespace weft
