#pragma once
/// Communicator: one chip's collectives over any subset of mesh axes, in place in the arenas.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/mesh.hpp>

#include "transport/board/board.hpp"
#include "transport/collectives/algorithm.hpp"
#include "transport/collectives/collective_call.hpp"
#include "transport/collectives/group.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// A call that a Communicator has checked and encoded, to be carried out many times. Movable; for
/// the Communicator that made it, and while that lives.
class PreparedCall {
  friend class Communicator;
  PreparedCall() = default;

  std::uint64_t id_ = 0;  ///< no two of a Communicator are alike
  CollectiveCall call_;   ///< but for its name, which needn't stay
  std::string name_;
  Group* group_ = nullptr;
  Algorithm algorithm_ = Algorithm::signal;
  bool in_lines_ = false;  ///< its mailboxes are those of the group's lines
  CallWords words_{};
  std::uint64_t digest_ = 0;  ///< of the words
  std::string label_;         ///< for the board: "all_reduce 'fc1.weight.grad'"
};

/// Used by one thread at a time. One collective at a time. Sums are taken in group order: bitwise
/// the same on every chip and in every run; bf16 is summed in f32 and rounded once.
class Communicator {
 public:
  /// `position` in the mesh; `memory` and `mesh` must outlive it. Throws mesh_mismatch where the
  /// mesh has more chips than the memory.
  Communicator(JobMemory& memory, const Mesh& mesh, int position, BoardWriter board,
               WaitPolicy policy);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Step number for errors and the board.
  void set_step(std::uint64_t step) { step_ = step; }

  /// Throws invalid_argument for a call that can't be carried out, no_space where the group's
  /// mailboxes find no memory.
  PreparedCall prepare(const CollectiveCall& call);
  /// Announces this chip's arrival; doesn't wait. `call` must stay until the collective has ended.
  /// Throws invalid_argument before the last one has ended (a collective that failed never ends).
  void start(const PreparedCall& call);
  /// Prepares and starts.
  void start(const CollectiveCall& call);
  /// Goes as far as it can without waiting; true: done, or nothing was started. Throws peer_lost
  /// (job aborted; the reason), program_divergence (another chip of the group called something
  /// else: both calls are named).
  bool poll();
  /// Polls as the policy says until done. Throws timeout, naming the chips that didn't arrive, the
  /// collective, the step and how long it waited (after which it may be called again); and what
  /// poll() throws. A chip that is missing because it called something else is program_divergence
  /// here.
  void wait();
  void run(const PreparedCall& call) {
    start(call);
    wait();
  }
  void run(const CollectiveCall& call) {
    start(call);
    wait();
  }

  /// Collectives that this chip has started since the job's memory was made: equal on all chips
  /// that run the same program.
  std::uint64_t count() const { return count_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stage : std::uint8_t { idle, entry, exit };

  Group& find_group(AtomList atoms);
  GroupMemory group_memory() const;
  void record(const PreparedCall& call);
  void announce();
  Group& group() const { return *current_->group_; }
  bool all_arrived();
  bool pass_sync();
  void wake_sleepers() const;
  void require_same_call() const;
  bool still_waiting() const;
  bool finish();
  int awaited() const;
  void await_peers(std::optional<Clock::time_point>& since);
  void sleep(Clock::duration longest);
  void find_divergence() const;
  std::string describe_call() const;
  [[noreturn]] void fail_divergence(int member) const;
  [[noreturn]] void fail_timeout(Clock::duration waited) const;

  JobMemory* memory_;
  const Mesh* mesh_;
  int position_;
  int chip_;
  CallRecord* record_ = nullptr;
  BoardWriter board_;
  WaitPolicy policy_;
  std::uint64_t step_ = 0;
  std::uint64_t count_ = 0;
  std::vector<std::unique_ptr<Group>> groups_;

  std::uint64_t prepared_count_ = 0;
  std::uint64_t recorded_ = 0;              ///< id of the call that the chip's record and row show
  std::optional<PreparedCall> unprepared_;  ///< the last one that the caller didn't keep

  int yields_to_skip_ = 0;

  // Of the collective under way.
  Stage stage_ = Stage::idle;
  const PreparedCall* current_ = nullptr;
  std::uint64_t signature_ = 0;
  std::uint32_t epoch_ = 0;  ///< of the sync under way
  std::size_t arrived_ = 0;  ///< peers, counted from the next in group order, seen at this epoch
};

}  // namespace weft
