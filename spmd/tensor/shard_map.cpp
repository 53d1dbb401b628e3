#include <weft/sharding/shard_map.hpp>

#include <algorithm>

#include "spmd/tensor/call.hpp"

namespace weft {

std::string axes_text(const Mesh& mesh, AtomMask atoms) {
  std::string text;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if ((mesh.axis_atoms(axis).mask() & atoms) == 0) continue;
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ",
                        mesh.axis_names()[static_cast<std::size_t>(axis)]);
  }
  return text;
}

namespace {

using Tensors = std::vector<Tensor>;
using Specs = std::vector<PartitionSpec>;

/// Records the function of a shard_map during its lifetime.
class ShardMapScope {
 public:
  ShardMapScope(Trace& trace, AtomMask own, const std::source_location& loc)
      : functions_(trace.regions().shard_maps) {
    functions_.begin({static_cast<AtomMask>(functions_.manual() | own),
                      trace.builder().program().num_ops(), loc});
  }
  ~ShardMapScope() { functions_.end(); }
  ShardMapScope(const ShardMapScope&) = delete;
  ShardMapScope& operator=(const ShardMapScope&) = delete;

 private:
  TracedShardMaps& functions_;
};

class Recorder {
 public:
  explicit Recorder(const ShardMapCall& given) : given_(given), mesh_(given.mesh) {}

  Tensors run(const ShardMapBody& body) {
    Trace& trace = Trace::current(given_.loc);
    Tensors parts;
    {
      Call call("shard_map", given_.loc);
      call.expect_mesh(mesh_);
      own_ = own_atoms(call);
      parts = enter(call);
    }
    const ShardMapScope scope(trace, own_, given_.loc);
    const std::vector<Tensors> made = body(parts);
    Call call("shard_map", given_.loc);
    return leave(call, made);
  }

 private:
  /// Returns the atoms of all axes that the specs of this call name.
  AtomMask own_atoms(const Call& call) const {
    AtomMask atoms = 0;
    const auto add = [&](const std::vector<std::string>& names, std::string_view what) {
      for (const std::string& name : names) {
        const AtomList own = mesh_.axis_atoms(call.axis_of(mesh_, name, what));
        atoms = static_cast<AtomMask>(atoms | own.mask());
      }
    };
    const auto add_all = [&](const Specs& specs, std::string_view of) {
      for (std::size_t i = 0; i < specs.size(); ++i) {
        const std::string what = fmt::format("{} {}, {},", of, i, specs[i].to_string());
        for (const AxisNames& dim : specs[i].dims()) add(dim.names(), what);
      }
    };
    add_all(given_.in_specs.list(), "in spec");
    add_all(given_.out_specs.list(), "out spec");
    add(given_.options.axes, "the option `axes`");
    const auto taken = static_cast<AtomMask>(atoms & call.trace().regions().shard_maps.manual());
    if (taken != 0) {
      call.refuse("the axes {} are already manual in the enclosing shard_map at {}",
                  axes_text(mesh_, taken),
                  file_line(call.trace().regions().shard_maps.open().back().loc));
    }
    return atoms;
  }

  /// Returns the spec's sharding, with an entry for each dim of the tensor.
  Sharding sharding(const Call& call, const PartitionSpec& spec, const Tensor& tensor,
                    const std::string& what) const {
    const Shape& shape = call.type(tensor).shape;
    std::vector<AxisNames> dims = spec.dims();
    if (dims.size() > static_cast<std::size_t>(shape.size())) {
      call.refuse(
          "{}, {}, has {} dims, but its spec {} has {} entries: give at most one entry per dim",
          what, call.node(tensor)->label(), shape.size(), spec.to_string(), dims.size());
    }
    dims.resize(static_cast<std::size_t>(shape.size()));
    return Sharding::from_spec(mesh_, PartitionSpec(std::move(dims)), shape, what);
  }

  std::vector<std::int64_t> border_attrs(const Sharding& sharding, int num_dims) const {
    std::vector<std::int64_t> attrs{static_cast<std::int64_t>(mesh_.list(own_).bits())};
    for (int dim = 0; dim < num_dims; ++dim) {
      attrs.push_back(
          static_cast<std::int64_t>(sharding.dims[static_cast<std::size_t>(dim)].bits()));
    }
    return attrs;
  }

  Tensors enter(Call& call) const {
    const Specs& specs = given_.in_specs.list();
    if (specs.size() != given_.arguments.size()) {
      call.refuse(
          "{} specs are given for {} arguments; give one for each argument (PartitionSpec{{}} for "
          "a whole tensor)",
          specs.size(), given_.arguments.size());
    }
    Tensors parts;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      for (const Tensor& tensor : given_.arguments[i]) {
        parts.push_back(enter(call, tensor, specs[i], fmt::format("argument {}", i)));
      }
    }
    return parts;
  }

  Tensor enter(Call& call, const Tensor& tensor, const PartitionSpec& spec,
               const std::string& what) const {
    const Sharding parts = sharding(call, spec, tensor, what);
    const Shape shape = call.type(tensor).shape;
    for (int dim = 0; dim < shape.size(); ++dim) {
      const std::int64_t count = mesh_.count(parts.dims[static_cast<std::size_t>(dim)]);
      if (shape[dim] % count == 0) continue;
      call.refuse(
          "{}, {}: dim {} has size {}, which isn't divisible by the {} chips of its spec {}; pad "
          "it to a multiple of {}, cut another dim, or pass the whole tensor (PartitionSpec{{}})",
          what, call.node(tensor)->label(), dim, shape[dim], count, spec.to_string(), count);
    }
    ValueId value = call.value(tensor);
    if (own_ == 0) return call.result(value);
    Sharding wanted = Sharding::open(shape.size());
    wanted.dims = parts.dims;
    wanted.replicated = static_cast<AtomMask>(own_ & ~parts.used());
    if (parts.is_sharded()) value = call->sharding_constraint(value, wanted);
    return call.result(call->enter(value, border_attrs(parts, shape.size())));
  }

  Tensors leave(Call& call, const std::vector<Tensors>& made) const {
    const Specs& specs = given_.out_specs.list();
    if (specs.size() != 1 && specs.size() != made.size()) {
      call.refuse("the result has {} parts, but {} out specs are given", made.size(), specs.size());
    }
    Tensors wholes;
    for (std::size_t i = 0; i < made.size(); ++i) {
      for (const Tensor& tensor : made[i]) {
        wholes.push_back(leave(call, tensor, specs.size() == 1 ? specs[0] : specs[i],
                               fmt::format("result {}", i)));
      }
    }
    return wholes;
  }

  Tensor leave(Call& call, const Tensor& tensor, const PartitionSpec& spec,
               const std::string& what) const {
    const Sharding parts = sharding(call, spec, tensor, what);
    const ValueId value = call.value(tensor);
    if (own_ == 0) return tensor;
    const auto lost = static_cast<AtomMask>(call->manual(value).varies & own_ & ~parts.used());
    if (lost != 0) {
      call.refuse(
          "{}, {}, may differ between chips along {}, which its spec {} doesn't name: reduce it by "
          "psum (or pmean, pmax), or name the axis in the spec",
          what, call.type(tensor).to_string(), axes_text(mesh_, lost), spec.to_string());
    }
    return call.result(call->leave(value, border_attrs(parts, call.type(tensor).shape.size())));
  }

  const ShardMapCall& given_;
  const Mesh& mesh_;
  AtomMask own_ = 0;
};

}  // namespace

std::vector<Tensor> shard_map_tensors(const ShardMapBody& body, const ShardMapCall& call) {
  return Recorder(call).run(body);
}

}  // namespace weft
