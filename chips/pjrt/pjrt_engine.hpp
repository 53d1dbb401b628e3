#pragma once
/// PjrtEngine: the engine of a chip that is a device of a PJRT plug-in for CPUs.

#include <memory>

#include "chips/engine/arena_engine.hpp"
#include "chips/engine/compiled_store.hpp"
#include "transport/blackbox/recorder.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// The plug-in's compiler makes one program of all steps of a plan. The program reads and writes
/// the arena in place. For each collective, this program calls weft, which carries out the
/// collective as for other chips of the CPU. So errors name the missing chip, and the process
/// survives them.
///
/// A run that updates state begins only when all chips have committed the step, because the program
/// may write the new state at any time.
class PjrtEngine final : public ArenaEngine {
 public:
  /// `store` keeps executables. The other arguments are those of Executor. Throws the errors of
  /// CpuDevices::lease().
  PjrtEngine(JobMemory& memory, const Mesh& mesh, int position, const Recorder& recorder,
             WaitPolicy policy, int local_index = 0, CompiledStore store = {});
  ~PjrtEngine() override;

  std::string compiler() const override;
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
