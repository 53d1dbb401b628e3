#pragma once
/// The registry of kinds of chips: everything that the rest of weft needs to know about a kind.
/// Outside the folders of the kinds, only registry.cpp, tests and benchmarks include their headers.
///
/// docs/adding_a_chip.md says how to add a kind of chip.

#include <memory>
#include <string>

#include <weft/sharding/device.hpp>

#include "chips/engine/compiled_store.hpp"
#include "chips/engine/engine.hpp"
#include "spmd/target/target.hpp"
#include "transport/blackbox/recorder.hpp"
#include "transport/collectives/tier.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// The objects from which an engine is made.
struct EngineParts {
  JobMemory& memory;  ///< the memory of the chips of the host
  const Mesh& mesh;
  int position = 0;  ///< the chip's position in the mesh
  const Recorder& recorder;
  WaitPolicy policy{};
  int local_index = 0;                        ///< the chip's index among the chips of its worker
  std::unique_ptr<CollectiveTier> network{};  ///< connects to chips of other hosts, or null
  CompiledStore store{};                      ///< for kinds of chips with a compiler of their own
};

struct ChipKind {
  DeviceKind kind;
  const Target* target;
  std::unique_ptr<Engine> (*make)(EngineParts parts);
  /// Returns text for the log that says why chips of this kind are slower on this machine than they
  /// could be; "" if they aren't.
  std::string (*limitation)();
  /// The address space of a chip's arena. It isn't memory yet.
  std::size_t arena_capacity = JobMemoryOptions{}.arena_capacity;
};

/// Returns the entry of `kind`, which this version of weft must support. choose_device() returns
/// only kinds that this version supports.
const ChipKind& chip_kind(DeviceKind kind);

}  // namespace weft
