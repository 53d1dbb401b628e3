#pragma once
/// AcceleratorEngine: the engine of a chip with memory of its own, which a PJRT plug-in drives.

#include <memory>

#include <weft/sharding/device.hpp>

#include "chips/engine/arena_engine.hpp"
#include "transport/blackbox/recorder.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// The plug-in's compiler makes one program of all steps of a plan, with the plug-in's own
/// collectives between the chips. All chips of the job are in one process (gang.hpp).
///
/// The arena has the host's copies of the blocks in the chip's memory. upload() writes to the
/// arena. A run first copies missing inputs from the arena to the device. A run's results stay on
/// the device, where download() reads them.
///
/// The arena also mirrors the state. While the device computes version s + 1, the run that commits
/// step s copies the parts of version s that this chip keeps to the arena. When these copies are
/// complete (have landed), the run commits s. Invariants, in addition to those of commits.hpp:
///
/// 1. A version s is copied only when every chip has committed s - 1, because the copy overwrites
///    version s - 2 in the arena.
/// 2. When a run has ended, the chip has committed the run's step. So a loop that sees the end of a
///    run loses no step before it.
/// 3. An output that is written over the input that it updates needs no mirror, because another
///    chip keeps that part of the state, or no versions are kept.
class AcceleratorEngine final : public ArenaEngine {
 public:
  /// `kind` is gpu, tpu or pjrt_mirrored. The other arguments are those of Executor. Throws the
  /// errors of Gang::of().
  AcceleratorEngine(DeviceKind kind, JobMemory& memory, const Mesh& mesh, int position,
                    const Recorder& recorder, WaitPolicy policy, int local_index = 0);
  ~AcceleratorEngine() override;

  std::string compiler() const override;

  void reserve(std::uint64_t offset, std::size_t bytes) override;
  void upload(std::uint64_t offset, std::size_t bytes,
              const std::function<void(std::byte*)>& fill) override;
  std::byte* host_address(std::uint64_t) override { return nullptr; }
  /// The bytes must have been uploaded to the other chip, or have landed in its arena.
  void copy_from(int position, std::uint64_t from, std::uint64_t to, std::size_t bytes) override;
  void download(std::uint64_t offset, std::span<std::byte> to) override;
  std::shared_ptr<const LoadedPlan> load(const Plan& plan, bool checks = false) override;
  void start(std::shared_ptr<const LoadedPlan> plan, std::uint64_t step, const RunBuffers& buffers,
             RunCommit commit = {}) override;
  bool poll() override;
  void wait() override;
  void call(std::uint64_t step, std::uint32_t program,
            const std::function<void(Chip&)>& body) override;
  void add_to(StateHash& hash) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
