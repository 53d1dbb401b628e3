#pragma once
/// The chips of a mesh, each with an engine, in the memory of this process. Without a network,
/// plans for several hosts run as on one.

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

/// Of 1 to 8 chips, with 1 to 3 axes; in some the devices stand in another order.
std::vector<Mesh> small_meshes();

/// A plan that is loaded on all chips of a mesh.
struct MeshPlan {
  Plan plan;
  std::vector<std::shared_ptr<const LoadedPlan>> chips;  ///< by position
  RunBuffers buffers;                                    ///< equal on all chips
};

using Engines = std::vector<std::unique_ptr<Engine>>;

/// What an engine is made of, for one chip.
struct EngineSetup {
  JobMemory& memory;
  const Mesh& mesh;
  int position = 0;
  int local_index = 0;
  BoardWriter board{};
  WaitPolicy policy{};
  const Engines& engines;  ///< of all chips, by position, once they are made
  std::unique_ptr<CollectiveTier> network{};
};
using MakeEngine = std::unique_ptr<Engine> (*)(EngineSetup setup);
/// An Executor.
std::unique_ptr<Engine> make_cpu_engine(EngineSetup setup);
using MakeNetwork = std::function<std::unique_ptr<CollectiveTier>(
    JobMemory& memory, const Mesh& mesh, int position, WaitPolicy policy)>;

struct EngineMeshOptions {
  MakeEngine make = make_cpu_engine;
  int chips_per_worker = 0;  ///< chips are dealt to workers in order of their ids; 0: one has all
  std::chrono::milliseconds timeout{60'000};
  MakeNetwork network{};  ///< with it, each host of the mesh has a memory of its own
};

class EngineMesh {
 public:
  enum class Schedule {
    one_thread,      ///< poll() of one after another, at random; the n-th run always alike
    thread_per_chip  ///< run()
  };
  using Bytes = std::vector<std::byte>;
  /// By position, then by output.
  using Outputs = std::vector<std::vector<Bytes>>;

  explicit EngineMesh(const Mesh& mesh, const EngineMeshOptions& options = {});

  const Mesh& mesh() const { return mesh_; }
  /// Of the first host.
  JobMemory& memory() { return memories_.front(); }
  Engine& engine(int position) { return *engines_[static_cast<std::size_t>(position)]; }

  /// `donates`: an output that may be written over the input that it updates lies where that does.
  MeshPlan load(const Plan& plan, bool donates = false);
  /// Runs a plan on global inputs, each chip its shards.
  Outputs run(const MeshPlan& loaded, std::span<const Elements> inputs, Schedule schedule);
  Outputs run(const Plan& plan, std::span<const Elements> inputs, Schedule schedule) {
    return run(load(plan), inputs, schedule);
  }

 private:
  void write_inputs(const MeshPlan& loaded, std::span<const Elements> inputs);
  void run_one_thread(const MeshPlan& loaded);
  void run_threads(const MeshPlan& loaded);

  Mesh mesh_;
  std::vector<JobMemory> memories_;  ///< by host
  Engines engines_;
  std::uint64_t step_ = 0;
};

/// The global outputs; a failure of the test where chips that hold the same part differ in a bit.
std::vector<Elements> join(const Plan& plan, const Mesh& mesh, const EngineMesh::Outputs& outputs);

}  // namespace weft::testing
