#pragma once
/// AcceleratorPlan: a plan prepared for chips with memory of their own.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chips/engine/engine.hpp"
#include "chips/pjrt/executable.hpp"
#include "spmd/program/custom_function.hpp"
#include "spmd/stablehlo/stablehlo.hpp"

namespace weft {

class Gang;

struct AcceleratorPlan final : LoadedPlan {
  Plan plan;
  StableHlo hlo;
  std::shared_ptr<const pjrt::Executable> executable;
  /// True if the plan has collectives. One launch then runs it on all chips of the gang; otherwise
  /// each chip runs it alone.
  bool meets = false;
  std::string first_collective;  ///< such as "all_reduce 'fc1.weight.grad'"; "" if there is none
  std::map<OpId, BoundCustomCall> custom_ops;

  /// Returns the number of bytes that a run needs on a device, as far as the plug-in reports them.
  std::int64_t device_bytes() const;
};

/// Prepares and compiles `plan` for the chips of the gang, whose mesh is `mesh`. Throws
/// mesh_mismatch if the plan is for another mesh, corrupt if verify() refuses it, not_found for a
/// custom op that isn't registered, and no_space if its temporaries don't fit. Throws unavailable
/// if the plan has a custom op and the gang's devices can't call the host, and PluginError if the
/// plug-in refuses the program.
std::shared_ptr<const AcceleratorPlan> load_accelerator_plan(const Plan& plan, const Mesh& mesh,
                                                             Gang& gang, bool checks);

}  // namespace weft
