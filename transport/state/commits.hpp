#pragma once
/// Commits: the last committed step of every chip, in shared memory that outlives the processes.
///
/// State is the data that a job keeps from step to step. Version s is the state after s steps. The
/// next step reads version s and writes version s + 1 elsewhere. Invariants:
///
/// 1. A chip commits s when it begins the run that makes version s + 1. By then version s is
///    complete on the chip, its worker's directory has the places of version s, and the worker's
///    loop has done everything that it does in the steps before. A chip with memory of its own
///    commits s during that run, when version s has landed in the arena.
/// 2. A chip overwrites version s - 1 only when every chip has committed s.
/// 3. From 1 and 2: the minimum of all commits is a version that every chip still has, whichever
///    processes are killed at any time. A job continues from that version.
/// 4. A chip's twins are the chips with the same chip_on_host() on other hosts. Each message of
///    NetworkTier carries the sender's commit, and `far` is the least commit that the twins of a
///    chip have sent to it. A chip also waits for the `far` of all chips of its host, so 2 holds
///    over all hosts. Only collectives carry commits: a run that waits for commits must first have
///    begun one with all twins (Executor adds a barrier if the plan has none).

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "transport/blackbox/recorder.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// The commits as one chip sees them. Only one thread may use it at a time. `memory` has the commit
/// and the `far` of each chip of the host.
class Commits {
 public:
  /// `memory` must outlive the object.
  Commits(const JobMemory& memory, const Mesh& mesh, int position, const Recorder& recorder,
          WaitPolicy policy);

  /// Commits `step`. Does nothing if the chip has committed a later step.
  void commit(std::uint64_t step);
  /// Returns whether every chip has committed `step`. Throws peer_lost, with the reason of the
  /// abort, if the job was aborted and some chip hasn't committed `step`.
  bool reached(std::uint64_t step);
  /// Waits as the policy says until every chip has committed `step`. Throws the errors of
  /// reached(), and timeout; the message names the missing chip. `check` is called again and again,
  /// and throws if the wait is to end.
  void wait(std::uint64_t step, const std::function<void()>& check = {});

 private:
  using Clock = std::chrono::steady_clock;
  bool has_reached(int chip, std::uint64_t step) const;
  bool all_reached(std::uint64_t step);
  std::string awaited_text() const;
  void sleep(std::uint64_t step, Clock::duration longest);

  /// A chip by its number in the host's memory, and by its device id.
  struct AwaitedChip {
    int chip = 0;
    int device = 0;
  };

  const JobMemory* memory_;
  int chip_;
  int device_;
  Recorder recorder_;
  WaitPolicy policy_;
  bool crosses_hosts_;
  /// The chips to wait for, in the order in which they are checked: all other chips of the host
  /// and, if the mesh crosses hosts, the chip itself as the last one.
  std::vector<AwaitedChip> peers_;
  std::size_t reached_ = 0;  ///< how many of peers_ have reached `target_`
  std::uint64_t target_ = 0;
};

/// Returns the newest version that every chip of the job still has, even if processes of the chips
/// are dead.
std::uint64_t common_step(const JobMemory& memory);
/// Returns the last step that every chip of this host knows to be committed by its twins. The chips
/// of this host still have all versions from this step to common_step().
std::uint64_t far_step(const JobMemory& memory);

}  // namespace weft
