#pragma once
/// Engine: the interface that each kind of chip implements. One engine drives one chip.
///
/// docs/adding_a_chip.md says how to add a kind of chip.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

class Chip;
class StateHash;

/// A plan prepared for runs on one chip, with everything that is the same in all runs: kernels,
/// collective calls, constants. Only the engine that made it can run it, but it may outlive the
/// engine.
class LoadedPlan {
 public:
  virtual ~LoadedPlan() = default;
};

/// The offsets of a plan's input and output buffers in the chip's memory, in order.
struct RunBuffers {
  std::vector<std::uint64_t> inputs;
  std::vector<std::uint64_t> outputs;

  /// Throws invalid_argument, with the step, unless there are as many buffers as the plan has
  /// inputs and outputs.
  void require(std::size_t num_inputs, std::size_t num_outputs, std::uint64_t step) const;
  /// Returns whether an output of the program is written over the input that it updates.
  bool is_over_input(const Program& program, std::size_t output) const;
};

/// The step that the chip commits with a run. Before the run's new state is written to the arena,
/// the chip waits until all chips have committed the step. If `is_awaited`, the chip also waits for
/// this before the run ends (commits.hpp).
struct RunCommit {
  std::uint64_t step = 0;
  bool is_awaited = false;
};

/// Offsets address the memory, and are the same on all chips of a job. The worker places buffers
/// from JobMemory::buffers_offset() on, and the engine uses the memory below this offset.
///
/// The chip's own thread loads plans, runs them and makes calls. The loop's thread may call
/// reserve(), upload(), copy_from() and download() at any time, for memory that no current run
/// uses.
///
/// A job can continue after a worker has died, and `weft rescue` can save the job's state, only
/// with engines that copy each committed version of the state to the arena in JobMemory or compute
/// it there. The arena outlives the process that drives the chip, and any process can read it
/// (transport/resume). The target of such an engine has `keeps_memory`. validate() refuses jobs
/// that keep state on other engines.
///
/// Any thread of any process may call JobMemory::abort() to abort a job. Every function that waits
/// then throws peer_lost, with the reason, within kSleepSlice (wait.hpp).
class Engine {
 public:
  virtual ~Engine() = default;

  /// Returns the chip's index among its worker's chips.
  virtual int local_index() const = 0;
  /// Prepares the engine for use by the chip's own thread, which must call this before any other
  /// function.
  virtual void settle() noexcept = 0;

  /// Makes this range of the memory usable. Throws no_space, with the number of bytes, if there
  /// isn't enough memory.
  virtual void reserve(std::uint64_t offset, std::size_t bytes) = 0;
  /// Writes `bytes` bytes to `offset`. `fill` writes them to the host memory that it gets, which is
  /// the chip's own memory if the host can address it.
  virtual void upload(std::uint64_t offset, std::size_t bytes,
                      const std::function<void(std::byte*)>& fill) = 0;
  /// Returns the address of the memory at `offset`, which any thread may use. Returns null if the
  /// host can't address the memory, and must use upload() and download() instead.
  virtual std::byte* host_address(std::uint64_t offset) {
    (void)offset;
    return nullptr;
  }
  /// Copies the bytes at `from` in the memory of the chip at `position` to `to`. The bytes mustn't
  /// change during the copy. Throws unavailable if the engine can't reach the chip.
  virtual void copy_from(int position, std::uint64_t from, std::uint64_t to, std::size_t bytes) = 0;
  /// Copies `to.size()` bytes of the memory, starting at `offset`, to `to`.
  virtual void download(std::uint64_t offset, std::span<std::byte> to) = 0;

  /// Returns the name of the external compiler that makes this chip's programs, to show to users,
  /// or "" if there is none.
  virtual std::string compiler() const { return {}; }
  /// Prepares a plan. Throws mesh_mismatch if the plan is for another mesh, corrupt if verify()
  /// refuses it, no_space if its temporaries don't fit, and unavailable, with the op's location,
  /// for an op or dtype without a kernel. With `checks`, runs fail at the first op that makes a NaN
  /// or an infinity.
  virtual std::shared_ptr<const LoadedPlan> load(const Plan& plan, bool checks = false) = 0;
  /// Begins a run. No other run may be in progress. Throws invalid_argument unless `buffers` has a
  /// buffer for each of the plan's inputs and outputs.
  virtual void start(std::shared_ptr<const LoadedPlan> plan, std::uint64_t step,
                     const RunBuffers& buffers, RunCommit commit = {}) = 0;
  /// Continues the run. Returns true when the run has ended, and false if it has to wait for
  /// another chip. Throws the errors of Communicator::poll() and exceptions of custom kernels; both
  /// end the run.
  virtual bool poll() = 0;
  /// Continues the run until it has ended. Throws the errors of poll(), and timeout with the names
  /// of the missing chips.
  virtual void wait() = 0;
  /// Calls start() and wait().
  void run(std::shared_ptr<const LoadedPlan> plan, std::uint64_t step, const RunBuffers& buffers,
           RunCommit commit = {}) {
    start(std::move(plan), step, buffers, commit);
    wait();
  }

  /// Calls `body` for this chip. `program` is the number of the body among the loop's programs:
  /// collectives of bodies with different numbers never match. Rethrows the body's exceptions.
  virtual void call(std::uint64_t step, std::uint32_t program,
                    const std::function<void(Chip&)>& body) = 0;
  /// Adds the hashes of this chip's shards of the state to `hash`.
  virtual void add_to(StateHash& hash) = 0;
};

}  // namespace weft
