#pragma once
/// Engine: what a kind of chip has to do. One engine drives one chip.
///
/// To add a kind of chip: a folder beside cpu/ that implements this, which tests/conformance runs
/// its engine suite over, and a line in worker.cpp, where engines are made. (After a loss, shards
/// are still copied between arenas directly: runtime/state_keeper.cpp.)

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

class Chip;
class StateHash;

/// A plan with everything decided that doesn't change between runs on one chip: kernels, collective
/// calls, the values of constants. Made by an engine, for that engine alone; may outlive it.
class LoadedPlan {
 public:
  virtual ~LoadedPlan() = default;
};

/// Where the buffers of a plan's inputs and outputs lie in the chip's memory, in order.
struct RunBuffers {
  std::vector<std::uint64_t> inputs;
  std::vector<std::uint64_t> outputs;
};

/// The step that the chip commits by a run. It waits for all others to have committed that before
/// it writes what updates an input, and before the run ends if that `is_awaited` (commits.hpp).
struct RunCommit {
  std::uint64_t step = 0;
  bool is_awaited = false;
};

/// Memory is addressed by offsets, which are the same on all chips of a job: the worker places
/// buffers from JobMemory::buffers_offset() on, below it lies what the engine needs for itself.
///
/// Plans and calls come on one thread, the chip's own. reserve(), upload() and download() come on
/// the loop's thread, at any time, for memory that no run under way touches.
///
/// A job is aborted by JobMemory::abort(), on any thread of any process: every function that waits
/// then throws peer_lost, with the reason, within WaitPolicy's slice.
class Engine {
 public:
  virtual ~Engine() = default;

  /// The chip's number among its worker's.
  virtual int local_index() const = 0;
  /// To be called first, by the chip's thread.
  virtual void settle() noexcept = 0;

  /// Makes this range usable. Throws no_space, naming the bytes.
  virtual void reserve(std::uint64_t offset, std::size_t bytes) = 0;
  /// `fill` writes the `bytes` that go to `offset`, to memory of the host that it is given: the
  /// chip's own where the host can address it.
  virtual void upload(std::uint64_t offset, std::size_t bytes,
                      const std::function<void(std::byte*)>& fill) = 0;
  /// Copies `to.size()` bytes from `offset` on.
  virtual void download(std::uint64_t offset, std::span<std::byte> to) = 0;

  /// Throws mesh_mismatch for a plan of another mesh, corrupt for one that doesn't verify, no_space
  /// where its temporaries don't fit, unavailable for an op or dtype without a kernel, named with
  /// its location. `checks`: runs fail at the first op that gives a NaN or an infinity.
  virtual std::shared_ptr<const LoadedPlan> load(const Plan& plan, bool checks = false) = 0;
  /// Begins a run; there is none under way. Throws invalid_argument where the buffers are not as
  /// many as the plan's inputs and outputs.
  virtual void start(std::shared_ptr<const LoadedPlan> plan, std::uint64_t step,
                     const RunBuffers& buffers, RunCommit commit = {}) = 0;
  /// Goes on until the run is done (true) or would have to wait for another chip (false). Throws as
  /// Communicator::poll(), and what a custom kernel throws; either ends the run.
  virtual bool poll() = 0;
  /// Goes on until the run is done. Throws timeout too, naming the chips that didn't come.
  virtual void wait() = 0;
  /// start() and wait().
  void run(std::shared_ptr<const LoadedPlan> plan, std::uint64_t step, const RunBuffers& buffers,
           RunCommit commit = {}) {
    start(std::move(plan), step, buffers, commit);
    wait();
  }

  /// Calls `body` for this chip, number `program` of what the loop runs: collectives of different
  /// bodies are different. Throws what it throws.
  virtual void call(std::uint64_t step, std::uint32_t program,
                    const std::function<void(Chip&)>& body) = 0;
  /// Adds what the chip holds of the state.
  virtual void add_to(StateHash& hash) = 0;
};

}  // namespace weft
