#pragma once
/// Executor: the engine of a chip that is a CPU thread. It runs plans on an arena, and can pause
/// and resume at every collective.

#include <memory>
#include <string>

#include "chips/engine/arena_engine.hpp"
#include "transport/collectives/communicator.hpp"

namespace weft {

/// The engine of a CPU thread.
class Executor final : public ArenaEngine {
 public:
  /// `memory` is the memory of the host's chips. `local_index` is the chip's index among its
  /// worker's chips. `network` connects to chips of other hosts, and is null if no collective needs
  /// it.
  Executor(JobMemory& memory, const Mesh& mesh, int position, const Recorder& recorder,
           WaitPolicy policy, int local_index = 0,
           std::unique_ptr<CollectiveTier> network = nullptr);
  ~Executor() override;

  /// Returns a text for the log that says why kernels are slower here than they could be; "" if
  /// they aren't.
  static std::string limitation();

  std::shared_ptr<const LoadedPlan> load(const Plan& plan, bool checks = false) override;
  void start(std::shared_ptr<const LoadedPlan> plan, std::uint64_t step, const RunBuffers& buffers,
             RunCommit commit = {}) override;
  bool poll() override;
  void wait() override;
  void call(std::uint64_t step, std::uint32_t program,
            const std::function<void(Chip&)>& body) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
