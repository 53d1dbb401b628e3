#pragma once
/// PjrtPlan: a plan prepared for a chip of the CPU that a PJRT plug-in drives.

#include <array>
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
  /// A collective of the program. Its operand and result are copied to and from the arena, where
  /// other chips read the operand.
  struct Collective {
    PreparedCall call;
    std::uint64_t source = 0;  ///< offsets in the arena
    std::uint64_t destination = 0;
    std::size_t source_bytes = 0;
    std::size_t destination_bytes = 0;
  };
  /// The program's text and its executable for one choice of the outputs' homes.
  struct Version {
    StableHlo hlo;
    std::shared_ptr<const pjrt::Executable> executable;
  };

  Plan plan;
  bool checks = false;
  bool has_updates = false;             ///< an output updates an input
  std::vector<Collective> collectives;  ///< by number in StableHlo::collectives
  std::map<OpId, BoundCustomCall> custom_ops;
  /// The chip's thread adds a version when a run first needs it.
  mutable std::map<std::vector<OutputHome>, Version> versions;
};

/// Prepares `plan` for the chip at `position`. Throws mesh_mismatch for a plan of another mesh,
/// corrupt if it doesn't verify, not_found for a custom op that isn't registered, and the errors of
/// Communicator::prepare().
std::shared_ptr<PjrtPlan> load_pjrt_plan(const Plan& plan, const Mesh& mesh, int position,
                                         Communicator& communicator, bool checks);

/// Adds the version of the plan with these homes of outputs, for the chips of the client. It is
/// compiled unless the process or the store has it. Throws unavailable, with the plug-in's words,
/// for a program that the plug-in refuses.
const PjrtPlan::Version& add_version(const PjrtPlan& plan, const std::vector<OutputHome>& homes,
                                     const Mesh& mesh, pjrt::Client& client,
                                     const CompiledStore& store);

/// Throws the error for what a run found in its operands and results, if it found something:
/// `faults` is the result with StableHloResult::Role::faults.
void throw_fault(const Program& program, const std::array<std::int32_t, 2>& faults);

}  // namespace weft
