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
  /// The plan has collectives, so all chips of the gang run it in one launch. Other plans run on
  /// each chip alone.
  bool meets = false;
  std::string first_collective;  ///< such as "all_reduce 'fc1.weight.grad'"; "": none
  std::map<OpId, BoundCustomCall> custom_ops;

  /// Returns the bytes that a run needs on a device, as far as the plug-in knows them.
  std::int64_t device_bytes() const;
};

/// Prepares `plan` for the chips of the gang, whose mesh is `mesh`, and compiles it. Throws
/// mesh_mismatch for a plan of another mesh, corrupt if it doesn't verify, not_found for a custom
/// op that isn't registered, and unavailable for one if the gang's devices can't call the host, or
/// for a program that the plug-in refuses; no_space if its temporaries don't fit.
std::shared_ptr<const AcceleratorPlan> load_accelerator_plan(const Plan& plan, const Mesh& mesh,
                                                             Gang& gang, bool checks);

}  // namespace weft
