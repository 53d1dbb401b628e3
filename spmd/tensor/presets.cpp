#include <weft/spmd/tensor/fsdp.hpp>

#include <weft/spmd/tensor/call.hpp>

namespace weft {
namespace {

constexpr int kPriority = 2;

/// -1 if there is none.
int largest_free_dim(const Sharding& sharding, const Shape& shape, std::int64_t parts) {
  int best = -1;
  for (int dim = 0; dim < shape.size(); ++dim) {
    if (!sharding.dims[static_cast<std::size_t>(dim)].empty() || shape[dim] % parts != 0) continue;
    if (best < 0 || shape[dim] > shape[best]) best = dim;
  }
  return best;
}

}  // namespace

void fsdp(const Module& module, const Mesh& mesh, const FsdpOptions& options,
          std::source_location loc) {
  Call call("fsdp", loc);
  call.expect_mesh(mesh);
  const std::int64_t parts = mesh.axis_size(options.axis);
  const AtomList atoms = mesh.axis_atoms(mesh.axis_index(options.axis));
  for (const Parameter& parameter : module.parameters()) {
    const Shape& shape = parameter.shape();
    const Sharding marked = parameter.node()->marked.value_or(Sharding::open(shape.size()));
    const int dim = largest_free_dim(marked, shape, parts);
    if (dim < 0 || (marked.used() & atoms.mask()) != 0) continue;
    const auto& storage = parameter.node()->storage;
    if (!std::holds_alternative<HostData>(storage)) {
      call.refuse("{} already lies on the chips; call fsdp before the first sync",
                  parameter.node()->label());
    }
    Sharding sharding = marked;
    sharding.dims[static_cast<std::size_t>(dim)] = atoms;
    sharding.open_mask = static_cast<std::uint8_t>(sharding.open_mask & ~(1U << dim));
    for (int i = 0; i < atoms.size(); ++i) sharding.set_priority(atoms[i], kPriority);
    call.trace().mark(*parameter.node(), sharding);
  }
}

}  // namespace weft
