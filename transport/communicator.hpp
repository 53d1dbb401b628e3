#pragma once
/// Communicator: one chip's collectives over any subset of mesh axes, in place in the arenas.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/spmd/mesh/mesh.hpp>
#include <weft/transport/algorithm.hpp>
#include <weft/transport/board.hpp>
#include <weft/transport/collective_call.hpp>
#include <weft/transport/job_memory.hpp>
#include <weft/transport/wait.hpp>

namespace weft {

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

  /// Announces this chip's arrival; doesn't wait. Throws invalid_argument for a call that can't be
  /// carried out, or before the last one has ended (a collective that failed never ends), no_space
  /// where the group's mailboxes find no memory; nothing was announced then.
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
  void run(const CollectiveCall& call) {
    start(call);
    wait();
  }

  /// Collectives that this chip has started since the job's memory was made: equal on all chips
  /// that run the same program.
  std::uint64_t count() const { return count_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Group;
  enum class Stage : std::uint8_t { idle, entry, exit };

  Group& find_group(AtomList atoms);
  GroupMemory group_memory() const;
  void announce();
  bool all_arrived();
  bool still_waiting() const;
  bool finish();
  int awaited() const;
  void await_peer(std::optional<Clock::time_point>& since);
  void find_divergence() const;
  std::string describe_call() const;
  [[noreturn]] void fail_divergence(int member) const;
  [[noreturn]] void fail_timeout(Clock::duration waited) const;

  JobMemory* memory_;
  const Mesh* mesh_;
  int position_;
  int chip_;
  BoardWriter board_;
  WaitPolicy policy_;
  std::uint64_t step_ = 0;
  std::uint64_t count_ = 0;
  std::vector<std::unique_ptr<Group>> groups_;

  // Of the collective under way.
  Stage stage_ = Stage::idle;
  Algorithm algorithm_ = Algorithm::signal;
  Group* group_ = nullptr;
  CollectiveCall call_;
  std::uint64_t signature_ = 0;
  std::uint32_t epoch_ = 0;  ///< of the sync under way
  int arrived_ = 0;          ///< peers, counted from the next in group order, seen at this epoch
};

}  // namespace weft
