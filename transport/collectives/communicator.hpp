#pragma once
/// Communicator: carries out one chip's collectives over any subset of mesh axes, in the arenas.

#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include <weft/sharding/mesh.hpp>

#include "transport/blackbox/recorder.hpp"
#include "transport/collectives/collective_call.hpp"
#include "transport/collectives/tier.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// Carries out the collectives of one chip, one at a time. A collective between hosts may also run
/// while the chip computes and starts further ones; such collectives are carried out in the order
/// of their starts. Only one thread may use a Communicator at a time. Sums are taken in group
/// order, so they have the same bits on every chip and in every run. bf16 and f16 are summed in f32
/// and rounded once. A call goes through `network` if any of its atoms crosses hosts, and otherwise
/// through shared memory.
class Communicator {
 public:
  /// `position` is the chip's position in the mesh. `memory` is the memory of the host's chips.
  /// `memory` and `mesh` must outlive the object. Throws mesh_mismatch if the mesh has more chips
  /// on a host than `memory` has.
  Communicator(JobMemory& memory, const Mesh& mesh, int position, const Recorder& recorder,
               WaitPolicy policy, std::unique_ptr<CollectiveTier> network = nullptr);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Sets the step number that errors and the board show.
  void set_step(std::uint64_t step) { current_.step = step; }

  /// Prepares a call that is carried out many times. Throws invalid_argument for a call that can't
  /// be carried out, unavailable if the call's atoms cross hosts and there is no network tier, and
  /// no_space if there is no memory for the group's mailboxes.
  PreparedCall prepare(const CollectiveCall& call);
  /// Tells the other chips that this chip has left a body of on_each_chip(). If a chip still waits
  /// for this chip in a collective of that body, its wait throws program_divergence.
  void leave_body();

  /// Announces this chip's arrival without waiting. `call` must live until the collective has
  /// ended. Throws invalid_argument if the last collective hasn't ended; a failed collective never
  /// ends.
  void start(const PreparedCall& call);
  /// Continues the collective as far as it can without waiting. Returns true if the collective has
  /// ended or none was started. Throws peer_lost with the reason if the job was aborted. Throws
  /// program_divergence, with both calls, if another chip of the group called something else.
  bool poll() {
    if (current_.call == nullptr) return true;
    if (!current_.call->tier_->poll()) return false;
    note_leave(current_);
    current_.call = nullptr;
    return true;
  }
  /// Waits as the policy says until the collective has ended. Throws the errors of poll(), and
  /// timeout with the missing chips, the collective, the step and the time waited; wait() may then
  /// be called again. If a chip is missing because it called something else, throws
  /// program_divergence.
  void wait();
  void run(const PreparedCall& call) {
    start(call);
    wait();
  }

  /// Starts a collective that runs while the chip computes. Returns false, and does nothing, if the
  /// call's tier can't do that. Until end_begun() has returned, `call` must live, and nothing may
  /// use the memory of its operands and results. Throws the error of an earlier collective that was
  /// begun.
  bool begin(const PreparedCall& call);
  /// Ends the oldest collective that begin() started, if there is one. If `wait` is true, waits for
  /// its end; otherwise returns whether it has ended. Throws the errors of wait(), but may not be
  /// called again after them. The time of each collective counts from the end of the previous one.
  bool end_begun(bool wait);
  /// Throws the error of what was begun, if it has failed already.
  void check_begun() const;
  /// Gives up all collectives that begin() started. Their memory isn't used any more.
  void abandon() noexcept;

 private:
  CollectiveTier& tier_for(const CollectiveCall& call) const;
  void require_ended(const PreparedCall& next) const;
  void record(const PreparedCall& call);
  void note_enter(const StartedCall& started) const;
  void note_leave(const StartedCall& ended) const;

  JobMemory* memory_;
  const Mesh* mesh_;
  int chip_;  ///< the chip's number in the job's memory
  CallRecord* record_;
  Recorder recorder_;
  std::deque<StartedCall> begun_;  ///< declared before the tiers, which refer to its elements
  bool is_ending_ = false;  ///< whether the board shows that the chip waits for begun_.front()
  std::unique_ptr<CollectiveTier> shared_memory_;
  std::unique_ptr<CollectiveTier> network_;

  std::uint64_t prepared_count_ = 0;
  std::uint64_t recorded_ = 0;  ///< id of the call that the chip's record and board row show
  StartedCall current_;         ///< its `call` is null while no collective is in progress
};

/// Tells other chips that the worker of these chips has ended its loop, so the chips join no more
/// collectives.
void leave_loop(JobMemory& memory, const Mesh& mesh, std::span<const int> positions);

}  // namespace weft
