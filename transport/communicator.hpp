#pragma once
/// Communicator: one chip's collectives over any subset of mesh axes, in place in the arenas.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weft/spmd/mesh/mesh.hpp>
#include <weft/spmd/program/type.hpp>
#include <weft/transport/board.hpp>
#include <weft/transport/job_memory.hpp>

namespace weft {

enum class CollectiveKind : std::uint8_t {
  barrier, all_reduce, all_gather, reduce_scatter, all_to_all, permute, broadcast
};
std::string_view to_string(CollectiveKind kind) noexcept;

/// One collective as every chip of the group calls it (all but `name` must be equal on all of them;
/// the order of the group's chips is index_in(., atoms)). Offsets are bytes within the arena, 64-byte
/// aligned, and must not overlap unless equal (all_reduce and broadcast only).
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::barrier;
  AtomList atoms;  ///< the group: chips that differ only in these
  ReduceKind reduce = ReduceKind::add;
  DType dtype = DType::f32;
  std::uint64_t source = 0;
  std::uint64_t destination = 0;
  /// all_reduce, broadcast, permute: [count]. all_gather: source [outer][count], destination
  /// [outer][n][count]. reduce_scatter: source [outer][n][count], destination [outer][count].
  std::int64_t outer = 1;
  std::int64_t count = 0;
  /// all_to_all: the operand's shape; split_dim is cut in n, the parts are joined along concat_dim.
  Shape shape;
  int split_dim = 0;
  int concat_dim = 0;
  /// permute: group index that each chip's value comes from, by group index. broadcast: [0] is the root.
  std::vector<int> from;
  /// For errors and the board: "fc1.weight.grad".
  std::string_view name;
};

/// How to wait: spin, then yield, then sleep in the kernel in bounded slices.
struct WaitPolicy {
  int spins = 20000;
  int yields = 16;
  std::chrono::milliseconds deadline{1800 * 1000};

  /// No spinning where more threads than cores take part.
  static WaitPolicy for_threads(int threads, std::chrono::milliseconds deadline);
};

/// Used by one thread at a time. One collective at a time. Sums are taken in group order: bitwise the
/// same on every chip and in every run; bf16 is summed in f32 and rounded once.
class Communicator {
 public:
  /// `position` in the mesh; `memory` and `mesh` must outlive it.
  Communicator(JobMemory& memory, const Mesh& mesh, int position, BoardWriter board,
               WaitPolicy policy);

  /// Step number for errors and the board.
  void set_step(std::uint64_t step) { step_ = step; }

  /// Announces this chip's arrival; doesn't wait.
  void start(const CollectiveCall& call);
  /// Goes as far as it can without waiting; true: done. Throws peer_lost (job aborted; the reason),
  /// program_divergence (another chip of the group called something else: both calls are named).
  bool poll();
  /// Polls as the policy says until done. Throws timeout, naming the chips that didn't arrive, the
  /// collective, the step and how long it waited; and what poll() throws.
  void wait();
  void run(const CollectiveCall& call) {
    start(call);
    wait();
  }

  /// Collectives started so far.
  std::uint64_t count() const { return count_; }

 private:
  struct Group;
  // ... the implementer's members
  JobMemory* memory_;
  const Mesh* mesh_;
  int position_;
  BoardWriter board_;
  WaitPolicy policy_;
  std::uint64_t step_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace weft
