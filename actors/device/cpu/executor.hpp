#pragma once
/// Executor: runs plans on one chip, resumable at every collective, and code of the loop's own.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "spmd/plan/plan.hpp"
#include "transport/collectives/communicator.hpp"

namespace weft {

/// A plan with everything decided that doesn't change between runs: kernels, loop bounds, oneDNN
/// primitives, collective calls, the values of constants. One per chip.
struct LoadedPlan;
class Chip;
class StateHash;

/// The step that the chip commits by a run. It waits for all others to have committed that before
/// it writes what updates an input, and before the run ends if that `is_awaited` (commits.hpp).
struct RunCommit {
  std::uint64_t step = 0;
  bool is_awaited = false;
};

/// One chip; used by one thread at a time. CAF-free.
class Executor {
 public:
  /// `local_index`: of the chip among its worker's.
  Executor(JobMemory& memory, const Mesh& mesh, int position, BoardWriter board, WaitPolicy policy,
           int local_index = 0);
  ~Executor();
  int local_index() const;

  /// To be called first, by the thread that will run the plans: from here on the chip's arena gets
  /// its memory from that thread's NUMA node, whichever thread reserves it.
  void settle() noexcept;
  /// Reserves the plan's temporaries in the arena and prepares it. Throws no_space, unavailable (an
  /// op or dtype without a kernel, named with its location). `checks`: a run fails at the first op
  /// that gives a NaN or an infinity (kernels/anomaly.hpp).
  std::shared_ptr<const LoadedPlan> load(const Plan& plan, bool checks = false);

  /// Offsets in the arena of the buffers of the plan's inputs and outputs, in order.
  struct Buffers {
    std::vector<std::uint64_t> inputs;
    std::vector<std::uint64_t> outputs;
  };
  void start(std::shared_ptr<const LoadedPlan> plan, std::uint64_t step, const Buffers& buffers,
             RunCommit commit = {});
  /// Runs until done (true) or until it would have to wait in a collective (false). Throws as
  /// Communicator::poll.
  bool resume();
  /// resume(), waiting in between as the policy says.
  void run(std::shared_ptr<const LoadedPlan> plan, std::uint64_t step, const Buffers& buffers,
           RunCommit commit = {});

  /// Adds what the chip holds of the state.
  void add_to(StateHash& hash);

  /// Calls `body` for this chip, number `program` of what the loop runs: collectives of different
  /// bodies are different. Throws what it throws.
  void call(std::uint64_t step, std::uint32_t program, const std::function<void(Chip&)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
