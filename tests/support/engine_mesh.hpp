#pragma once
/// Makes an engine for each chip of a mesh, in the memory of this process. Without a network, plans
/// for several hosts run as if all chips were on one host.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "chips/engine/engine.hpp"
#include "spmd/reference/interpret.hpp"
#include "transport/board/board.hpp"
#include "transport/collectives/tier.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft::testing {

/// Returns meshes of 1 to 8 chips with 1 to 3 axes; in some the device ids aren't ascending.
std::vector<Mesh> small_meshes();

/// A plan that is loaded on all chips of a mesh.
struct MeshPlan {
  Plan plan;
  std::vector<std::shared_ptr<const LoadedPlan>> chips;  ///< one for each position
  RunBuffers buffers;                                    ///< the same on all chips
};

using Engines = std::vector<std::unique_ptr<Engine>>;

/// The arguments with which an engine for one chip is made.
struct EngineSetup {
  JobMemory& memory;
  const Mesh& mesh;
  int position = 0;
  int local_index = 0;
  BoardWriter board{};
  WaitPolicy policy{};
  const Engines& engines;  ///< all engines by position; complete when the last engine is made
  std::unique_ptr<CollectiveTier> network{};
};
using MakeEngine = std::unique_ptr<Engine> (*)(EngineSetup setup);
/// Makes the engine of the CPU, an Executor.
std::unique_ptr<Engine> make_cpu_engine(EngineSetup setup);
using MakeNetwork = std::function<std::unique_ptr<CollectiveTier>(
    JobMemory& memory, const Mesh& mesh, int position, WaitPolicy policy)>;

struct EngineMeshOptions {
  MakeEngine make = make_cpu_engine;
  /// The number of chips per worker; worker 0 has the lowest ids. 0: one worker has all chips.
  int chips_per_worker = 0;
  std::chrono::milliseconds timeout{60'000};
  MakeNetwork network{};  ///< if set, each host of the mesh has its own memory
};

class EngineMesh {
 public:
  enum class Schedule {
    one_thread,  ///< polls one chip after another at random; the n-th run always has the same order
    thread_per_chip  ///< calls run() in a thread for each chip
  };
  using Bytes = std::vector<std::byte>;
  /// The bytes of each output, indexed by position, then by output.
  using Outputs = std::vector<std::vector<Bytes>>;

  explicit EngineMesh(const Mesh& mesh, const EngineMeshOptions& options = {});

  const Mesh& mesh() const { return mesh_; }
  /// Returns the memory of the first host.
  JobMemory& memory() { return memories_.front(); }
  Engine& engine(int position) { return *engines_[static_cast<std::size_t>(position)]; }

  /// Loads a plan on all chips. With `donates`, an output gets the memory of the input that it
  /// updates if it may overwrite that input.
  MeshPlan load(const Plan& plan, bool donates = false);
  /// Runs a plan on global inputs. Each chip gets its shard of them.
  Outputs run(const MeshPlan& loaded, std::span<const Elements> inputs, Schedule schedule);
  Outputs run(const Plan& plan, std::span<const Elements> inputs, Schedule schedule) {
    return run(load(plan), inputs, schedule);
  }

 private:
  void write_inputs(const MeshPlan& loaded, std::span<const Elements> inputs);
  void run_one_thread(const MeshPlan& loaded);
  void run_threads(const MeshPlan& loaded);

  Mesh mesh_;
  std::vector<JobMemory> memories_;  ///< one for each host
  Engines engines_;
  std::uint64_t step_ = 0;
};

/// Returns the global outputs. Fails the test if two chips' replicas of a shard aren't bitwise
/// equal.
std::vector<Elements> join(const Plan& plan, const Mesh& mesh, const EngineMesh::Outputs& outputs);

}  // namespace weft::testing
