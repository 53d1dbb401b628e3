#pragma once
/// Presets: parallelism as annotations of a module's parameters.

#include <source_location>
#include <string>

#include <weft/spmd/mesh/mesh.hpp>
#include <weft/spmd/tensor/module.hpp>

namespace weft {

struct FsdpOptions {
  std::string axis = "data";
};

/// Fully sharded data parallelism (ZeRO-3; torch_xla's FSDPv2): shards each parameter over `axis`,
/// in the largest of its dims that isn't sharded yet and that the axis divides; a parameter without
/// such a dim stays as it is. The axis gets user priority 2, so that what is marked by hand decides
/// first. Call it after mark_sharding and before the first sync; throws invalid_argument for a
/// parameter that already lies on the chips, not_found for an axis that the mesh hasn't got.
void fsdp(const Module& module, const Mesh& mesh, const FsdpOptions& options = {},
          std::source_location loc = std::source_location::current());

}  // namespace weft
