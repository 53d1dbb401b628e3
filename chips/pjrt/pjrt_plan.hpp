#pragma once
/// PjrtPlan: a plan prepared for a chip of the CPU that a PJRT plug-in drives.

#include <map>
#include <memory>
#include <vector>

#include "chips/engine/engine.hpp"
#include "chips/pjrt/cpu_devices.hpp"
#include "spmd/program/custom_function.hpp"
#include "spmd/stablehlo/stablehlo.hpp"
#include "transport/collectives/communicator.hpp"

namespace weft {

struct PjrtPlan final : LoadedPlan {
  /// A collective of the program. weft copies the operand into the arena, where other chips can
  /// read it, and copies the result from there.
  struct Collective {
    PreparedCall call;
    std::uint64_t source = 0;  ///< offsets of operand and result in the arena
    std::uint64_t destination = 0;
    std::size_t source_bytes = 0;
    std::size_t destination_bytes = 0;
  };
  /// The program's text and executable for one choice of the outputs' homes.
  struct Version {
    StableHlo hlo;
    std::shared_ptr<const pjrt::Executable> executable;
  };

  Plan plan;
  bool checks = false;
  bool has_updates = false;             ///< whether an output updates an input
  std::vector<Collective> collectives;  ///< indexed by number in StableHlo::collectives
  std::map<OpId, BoundCustomCall> custom_ops;
  /// Versions by their homes. The chip's thread adds a version when a run first needs it.
  mutable std::map<std::vector<OutputHome>, Version> versions;
};

/// Prepares `plan` for the chip at `position`. Throws mesh_mismatch if the plan is for another
/// mesh, corrupt if verify() refuses it, not_found for a custom op that isn't registered, and the
/// errors of Communicator::prepare().
std::shared_ptr<PjrtPlan> load_pjrt_plan(const Plan& plan, const Mesh& mesh, int position,
                                         Communicator& communicator, bool checks);

/// Adds the version of the plan whose outputs have these homes. Compiles it for the client's
/// devices, unless a plan of the process or the store has the executable. Throws PluginError if the
/// plug-in refuses the program.
const PjrtPlan::Version& add_version(const PjrtPlan& plan, const std::vector<OutputHome>& homes,
                                     const Mesh& mesh, pjrt::Client& client,
                                     const CompiledStore& store);

}  // namespace weft
