#include <weft/sharding/presets.hpp>

#include <utility>

#include "spmd/nn/optimizer_parts.hpp"

namespace weft {
namespace {

constexpr int kTensorParallelPriority = 1;
constexpr int kFsdpPriority = 2;
constexpr int kSequencePriority = 2;

AtomList atoms_of(const Mesh& mesh, const std::string& axis) {
  mesh.axis_size(axis);  // throws if the mesh lacks the axis
  return mesh.axis_atoms(mesh.axis_index(axis));
}

/// Returns the atoms over which fsdp() and zero1() shard: the atoms within a host, unless the
/// options say otherwise.
AtomList shared_atoms(Call& call, const Mesh& mesh, const FsdpOptions& options) {
  const AtomList all = atoms_of(mesh, options.axis);
  if (options.across_hosts) return all;
  const AtomList within = mesh.list(static_cast<AtomMask>(all.mask() & ~mesh.dcn_atoms()));
  if (within.empty() && !all.empty()) {
    call.refuse(
        "axis \"{}\" has {} hosts with one chip on each, so a host has no chips among which to "
        "shard: give axis = another axis, or across_hosts = true to shard over the hosts",
        options.axis, mesh.count(all));
  }
  return within;
}

/// Returns the sharding that has been requested for the parameter so far.
Sharding asked(const Parameter& parameter) {
  return parameter.node()->marked.value_or(Sharding::open(parameter.shape().size()));
}

void ask(Call& call, const Parameter& parameter, const Sharding& sharding) {
  if (!parameter.node()->is_off_chips()) {
    call.refuse("{} is already on the chips; call this function before the first sync",
                parameter.node()->label());
  }
  call.trace().mark(*parameter.node(), sharding);
}

Sharding with_atoms(Sharding sharding, int dim, AtomList atoms, int priority) {
  sharding.dims[static_cast<std::size_t>(dim)] = atoms;
  sharding.open_mask = static_cast<std::uint8_t>(sharding.open_mask & ~(1U << dim));
  for (int i = 0; i < atoms.size(); ++i) sharding.set_priority(atoms[i], priority);
  return sharding;
}

/// Returns `sharding` with `atoms` added to the largest dim that has no atoms yet and that `atoms`
/// divide evenly. Returns `sharding` unchanged if there is no such dim, or if one of the atoms is
/// already used.
Sharding with_largest_dim(const Sharding& sharding, const Shape& shape, const Mesh& mesh,
                          AtomList atoms) {
  if ((sharding.used() & atoms.mask()) != 0) return sharding;
  int best = -1;
  for (int dim = 0; dim < shape.size(); ++dim) {
    const bool taken = !sharding.dims[static_cast<std::size_t>(dim)].empty();
    if (taken || shape[dim] % mesh.count(atoms) != 0) continue;
    if (best < 0 || shape[dim] > shape[best]) best = dim;
  }
  if (best < 0) return sharding;
  Sharding cut = with_atoms(sharding, best, atoms, kFsdpPriority);
  // zero1 may have added these atoms to `replicated`. They must be removed, because they shard a
  // dim now.
  cut.replicated = static_cast<AtomMask>(cut.replicated & ~atoms.mask());
  return cut;
}

/// Adds the atoms to the dim. If fsdp has sharded the dim, moves fsdp's atoms to another dim. If
/// the user has marked the dim, leaves it unchanged.
Sharding with_parallel_dim(const Sharding& sharding, const Shape& shape, const Mesh& mesh, int dim,
                           AtomList atoms) {
  const AtomList there = sharding.dims[static_cast<std::size_t>(dim)];
  if (there.empty()) return with_atoms(sharding, dim, atoms, kTensorParallelPriority);
  if (sharding.priority(there[0]) != kFsdpPriority) return sharding;
  const Sharding cut = with_atoms(sharding, dim, atoms, kTensorParallelPriority);
  return with_largest_dim(cut, shape, mesh, there);
}

/// Returns the layer's name, such as "q_proj" for "block.q_proj.weight".
std::string_view layer_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view path = name.substr(0, dot);
  return path.substr(path.rfind('.') + 1);  // npos + 1 is 0
}

/// Returns the dim of a layer's parameter that the style shards; -1 if it shards no dim.
int dim_of(TensorParallelStyle style, const Parameter& parameter) {
  const bool is_weight = parameter.name().ends_with(".weight") && parameter.shape().size() >= 2;
  const bool is_bias = parameter.name().ends_with(".bias");
  if (style == TensorParallelStyle::columns) return is_weight || is_bias ? 0 : -1;
  return is_weight ? 1 : -1;
}

}  // namespace

void mark_sharding(const Module& module, const Mesh& mesh, const PartitionSpec& spec,
                   std::source_location loc) {
  Call call("mark_sharding", loc);
  const int num_dims = spec.num_dims();
  bool any = false;
  for (const Parameter& parameter : module.parameters()) {
    if (parameter.shape().size() != num_dims) continue;
    mark_sharding(parameter, mesh, spec, loc);
    any = true;
  }
  if (!any)
    call.refuse("no parameter of the module has {} dims, the number of dims in the spec", num_dims);
}

void data_parallel(std::span<const Tensor> batch, const Mesh& mesh, const std::string& axis,
                   std::source_location loc) {
  Call call("data_parallel", loc);
  for (const Tensor& tensor : batch) {
    std::vector<AxisNames> dims(static_cast<std::size_t>(call.type(tensor).shape.size()));
    if (dims.empty()) call.refuse("a scalar has no batch to be sharded");
    dims.front() = axis;
    mark_sharding(tensor, mesh, PartitionSpec(std::move(dims)), loc);
  }
}

void data_parallel(std::initializer_list<Tensor> batch, const Mesh& mesh, const std::string& axis,
                   std::source_location loc) {
  data_parallel(std::span(batch.begin(), batch.size()), mesh, axis, loc);
}

void tensor_parallel(const Module& module, const Mesh& mesh,
                     const std::vector<TensorParallelRule>& rules, const std::string& axis,
                     std::source_location loc) {
  Call call("tensor_parallel", loc);
  call.expect_mesh(mesh);
  const AtomList atoms = atoms_of(mesh, axis);
  const std::vector<Parameter> parameters = module.parameters();
  for (const auto& [layer, style] : rules) {
    bool any = false;
    for (const Parameter& parameter : parameters) {
      if (layer_of(parameter.name()) != layer) continue;
      const int dim = dim_of(style, parameter);
      if (dim < 0) continue;
      any = true;
      const Sharding before = asked(parameter);
      if ((before.used() & atoms.mask()) != 0) continue;
      ask(call, parameter, with_parallel_dim(before, parameter.shape(), mesh, dim, atoms));
    }
    if (!any) call.refuse("rule \"{}\": no layer of that name has a weight", layer);
  }
}

Tensor sequence_parallel(const Tensor& x, const Mesh& mesh, const std::string& batch_axis,
                         const std::string& axis, std::source_location loc) {
  Call call("sequence_parallel", loc);
  if (call.type(x).shape.size() != 3) {
    call.refuse("{}: expected [batch, length, size]", call.node(x)->label());
  }
  call.expect_mesh(mesh);
  Sharding sharding = Sharding::from_spec(
      mesh, {{batch_axis}, {axis}, {}}, x.shape(),
      fmt::format("sequence_parallel({}) at {}", call.node(x)->label(), file_line(loc)));
  // Shardings over the axis that layers request themselves take precedence over this sharding.
  const AtomList atoms = atoms_of(mesh, axis);
  for (int i = 0; i < atoms.size(); ++i) sharding.set_priority(atoms[i], kSequencePriority);
  return call.result(call->sharding_constraint(call.value(x), sharding));
}

void fsdp(const Module& module, const Mesh& mesh, const FsdpOptions& options,
          std::source_location loc) {
  Call call("fsdp", loc);
  call.expect_mesh(mesh);
  const AtomList atoms = shared_atoms(call, mesh, options);
  for (const Parameter& parameter : module.parameters()) {
    const Sharding before = asked(parameter);
    const Sharding after = with_largest_dim(before, parameter.shape(), mesh, atoms);
    if (after != before) ask(call, parameter, after);
  }
}

void zero1(const Optimizer& optimizer, const Mesh& mesh, const FsdpOptions& options,
           std::source_location loc) {
  Call call("zero1", loc);
  call.expect_mesh(mesh);
  const AtomList atoms = shared_atoms(call, mesh, options);
  for (const auto& [parameter, states] : optimizer.slots()) {
    Sharding own = asked(parameter);
    for (const Parameter& state : states) {
      const Sharding kept = sharding_of_reduced(own, parameter.shape(), state.shape());
      ask(call, state, with_largest_dim(kept, state.shape(), mesh, atoms));
    }
    // Without this, propagation would give the parameter the sharding of its state.
    own.replicated = static_cast<AtomMask>(own.replicated | (atoms.mask() & ~own.used()));
    ask(call, parameter, own);
  }
}

}  // namespace weft
