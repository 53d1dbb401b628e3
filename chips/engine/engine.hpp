#pragma once
/// Engine: the interface of a kind of chip. One engine drives one chip.
///
/// To add a kind of chip: docs/adding_a_chip.md.

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

/// A plan with all that doesn't change between runs on one chip decided: kernels, collective calls,
/// constants. Made by an engine, for that engine alone; may outlive it.
class LoadedPlan {
 public:
  virtual ~LoadedPlan() = default;
};

/// The offsets of a plan's input and output buffers in the chip's memory, in order.
struct RunBuffers {
  std::vector<std::uint64_t> inputs;
  std::vector<std::uint64_t> outputs;
};

/// The step that the chip commits by a run. Before it writes an output that updates an input, it
/// waits until all chips have committed the step; if `is_awaited`, also before the run ends
/// (commits.hpp).
struct RunCommit {
  std::uint64_t step = 0;
  bool is_awaited = false;
};

/// Memory is addressed by offsets, which are the same on all chips of a job. The worker places
/// buffers from JobMemory::buffers_offset() on; the engine uses the memory below.
///
/// The chip's own thread loads plans, runs them and makes calls. The loop's thread calls reserve(),
/// upload(), copy_from() and download(), at any time, for memory that no run in progress touches.
///
/// A job can continue after a loss, and `weft rescue` can save it, only on engines whose memory is
/// the arena in JobMemory: it stays when the process that drives the chip ends, as do the ranges
/// that were reserved, and any process reads it (transport/resume). The target of such an engine
/// has `keeps_memory`; on others, validate() refuses jobs that keep state.
///
/// JobMemory::abort(), on any thread of any process, aborts a job: every function that waits then
/// throws peer_lost, with the reason, within WaitPolicy's slice.
class Engine {
 public:
  virtual ~Engine() = default;

  /// The chip's index among its worker's chips.
  virtual int local_index() const = 0;
  /// Must be called first, by the chip's thread.
  virtual void settle() noexcept = 0;

  /// Makes this range usable. Throws no_space; the message has the bytes.
  virtual void reserve(std::uint64_t offset, std::size_t bytes) = 0;
  /// Writes `bytes` bytes to `offset`. `fill` writes them to host memory that it is given: to the
  /// chip's own memory if the host can address it.
  virtual void upload(std::uint64_t offset, std::size_t bytes,
                      const std::function<void(std::byte*)>& fill) = 0;
  /// Where the host reads and writes the memory at `offset`; null if it can't, and upload() and
  /// download() are the way. Any thread may use the address, as they do.
  virtual std::byte* host_address(std::uint64_t offset) {
    (void)offset;
    return nullptr;
  }
  /// Writes to `to` the bytes at `from` in the memory of the chip at `position` in the mesh, which
  /// nobody writes meanwhile. Throws unavailable for a chip that it can't reach.
  virtual void copy_from(int position, std::uint64_t from, std::uint64_t to, std::size_t bytes) = 0;
  /// Copies `to.size()` bytes from `offset` on.
  virtual void download(std::uint64_t offset, std::span<std::byte> to) = 0;

  /// Throws mesh_mismatch for a plan of another mesh, corrupt for one that doesn't verify, no_space
  /// if its temporaries don't fit, unavailable for an op or dtype without a kernel (the message has
  /// its location). `checks`: runs fail at the first op that makes a NaN or an infinity.
  virtual std::shared_ptr<const LoadedPlan> load(const Plan& plan, bool checks = false) = 0;
  /// Begins a run; none may be in progress. Throws invalid_argument if the numbers of buffers
  /// differ from those of the plan's inputs and outputs.
  virtual void start(std::shared_ptr<const LoadedPlan> plan, std::uint64_t step,
                     const RunBuffers& buffers, RunCommit commit = {}) = 0;
  /// Continues the run until it is done (true) or would have to wait for another chip (false).
  /// Throws as Communicator::poll(), and exceptions of a custom kernel; either ends the run.
  virtual bool poll() = 0;
  /// Continues until the run is done. Throws timeout too; the message names the missing chips.
  virtual void wait() = 0;
  /// start() and wait().
  void run(std::shared_ptr<const LoadedPlan> plan, std::uint64_t step, const RunBuffers& buffers,
           RunCommit commit = {}) {
    start(std::move(plan), step, buffers, commit);
    wait();
  }

  /// Calls `body` for this chip. `program` is the body's number among the loop's programs, so that
  /// chips that run different bodies don't match each other's collectives. Rethrows its exceptions.
  virtual void call(std::uint64_t step, std::uint32_t program,
                    const std::function<void(Chip&)>& body) = 0;
  /// Adds the hashes of this chip's shards of the state.
  virtual void add_to(StateHash& hash) = 0;
};

}  // namespace weft
