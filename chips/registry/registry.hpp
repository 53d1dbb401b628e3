#pragma once
/// The registry of kinds of chips: what the rest of weft asks of a kind. Its source is the only one
/// outside chips/ that knows which kinds there are.
///
/// To add a kind of chip: docs/adding_a_chip.md.

#include <memory>
#include <string>

#include <weft/sharding/device.hpp>

#include "chips/engine/engine.hpp"
#include "spmd/target/target.hpp"
#include "transport/blackbox/recorder.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// What an engine is made of.
struct EngineParts {
  JobMemory& memory;  ///< of the chips of its host
  const Mesh& mesh;
  int position = 0;  ///< of the chip in the mesh
  const Recorder& recorder;
  WaitPolicy policy{};
  int local_index = 0;  ///< of the chip among those of its worker
};

struct ChipKind {
  DeviceKind kind;
  const Target* target;
  std::unique_ptr<Engine> (*make)(const EngineParts& parts);
  /// Why chips of the kind are slower here than they could be, for the log; "" if they aren't.
  std::string (*limitation)();
};

/// `kind` must be one that this version drives (choose_device() gives no other).
const ChipKind& chip_kind(DeviceKind kind);

}  // namespace weft
