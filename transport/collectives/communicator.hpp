#pragma once
/// Communicator: one chip's collectives over any subset of mesh axes, in place in the arenas.

#include <cstdint>
#include <memory>
#include <span>

#include <weft/mesh.hpp>

#include "transport/blackbox/recorder.hpp"
#include "transport/collectives/collective_call.hpp"
#include "transport/collectives/tier.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// Used by one thread at a time. One collective at a time. Sums are taken in group order: bitwise
/// the same on every chip and in every run; bf16 and f16 are summed in f32 and rounded once. A call
/// over atoms of which none crosses the network goes through shared memory, any other through
/// `network`.
class Communicator {
 public:
  /// `position` in the mesh; `memory`, of the host's chips, and `mesh` must outlive it. Throws
  /// mesh_mismatch where the mesh has more chips on a host than the memory.
  Communicator(JobMemory& memory, const Mesh& mesh, int position, const Recorder& recorder,
               WaitPolicy policy, std::unique_ptr<CollectiveTier> network = nullptr);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Step number for errors and the board.
  void set_step(std::uint64_t step) { current_.step = step; }

  /// Throws invalid_argument for a call that can't be carried out, unavailable for one over atoms
  /// that cross the network where there is no network tier, no_space where the group's mailboxes
  /// find no memory.
  PreparedCall prepare(const CollectiveCall& call);
  /// The chip has left a body of on_each_chip(): a chip that waits for it in a collective of that
  /// body waits in vain, and throws program_divergence.
  void leave_body();

  /// Announces this chip's arrival; doesn't wait. `call` must stay until the collective has ended.
  /// Throws invalid_argument before the last one has ended (a collective that failed never ends).
  void start(const PreparedCall& call);
  /// Goes as far as it can without waiting; true: done, or nothing was started. Throws peer_lost
  /// (job aborted; the reason), program_divergence (another chip of the group called something
  /// else: both calls are named).
  bool poll() {
    if (current_.call == nullptr) return true;
    if (!current_.call->tier_->poll()) return false;
    finish();
    return true;
  }
  /// Polls as the policy says until done. Throws timeout, naming the chips that didn't arrive, the
  /// collective, the step and how long it waited (after which it may be called again); and what
  /// poll() throws. A chip that is missing because it called something else is program_divergence
  /// here.
  void wait();
  void run(const PreparedCall& call) {
    start(call);
    wait();
  }

 private:
  CollectiveTier& tier_for(const CollectiveCall& call) const;
  void record(const PreparedCall& call);
  void finish();

  JobMemory* memory_;
  const Mesh* mesh_;
  int chip_;  ///< number in the memory
  CallRecord* record_;
  Recorder recorder_;
  std::unique_ptr<CollectiveTier> shared_memory_;
  std::unique_ptr<CollectiveTier> network_;

  std::uint64_t prepared_count_ = 0;
  std::uint64_t recorded_ = 0;  ///< id of the call that the chip's record and row show
  StartedCall current_;         ///< its call is null where none is under way
};

/// The loop of these chips' worker has ended, so that they come to no further collective.
void leave_loop(JobMemory& memory, const Mesh& mesh, std::span<const int> positions);

}  // namespace weft
