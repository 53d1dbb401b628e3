#pragma once
/// AcceleratorEngine: the engine of a chip with memory of its own, which a PJRT plug-in drives.

#include <memory>

#include <weft/sharding/device.hpp>

#include "chips/engine/arena_engine.hpp"
#include "transport/blackbox/recorder.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// The plug-in's compiler makes one program of a plan's steps, with the plug-in's own collectives
/// between the chips. All chips of the job are in one process (gang.hpp).
///
/// The arena is the host's side of the chip's memory. upload() writes there, and a run copies to
/// the device what the device lacks. A run's results stay on the device. download() reads them.
///
/// The arena is also the mirror of the state. A run that commits step s copies the parts of version
/// s that this chip keeps to their places in the arena, while the device computes version s + 1,
/// and commits s when they have landed. Invariants beside those of commits.hpp:
///
/// 1. A version lands only when every chip has committed the one before it. Until then the arena
///    has the version before that one in the same places.
/// 2. A run has ended when the chip has committed its step. So a loop that sees the end of a run
///    loses no step before it.
/// 3. An output that is written over the input that it updates needs no mirror, because another
///    chip keeps that version, or no version is kept.
class AcceleratorEngine final : public ArenaEngine {
 public:
  /// `kind` is gpu, tpu or pjrt_mirrored; the other arguments are those of Executor. Throws the
  /// errors of Gang::of().
  AcceleratorEngine(DeviceKind kind, JobMemory& memory, const Mesh& mesh, int position,
                    const Recorder& recorder, WaitPolicy policy, int local_index = 0);
  ~AcceleratorEngine() override;

  void reserve(std::uint64_t offset, std::size_t bytes) override;
  void upload(std::uint64_t offset, std::size_t bytes,
              const std::function<void(std::byte*)>& fill) override;
  std::byte* host_address(std::uint64_t) override { return nullptr; }
  /// The bytes must have been uploaded to the other chip, or have landed.
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
