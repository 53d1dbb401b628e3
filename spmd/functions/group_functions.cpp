/// Implements the collectives that functions of shard_map call.

#include <weft/nn/functional.hpp>
#include <weft/ops/elementwise.hpp>
#include <weft/ops/shapes.hpp>
#include <weft/sharding/shard_map.hpp>

#include <algorithm>

#include <fmt/ranges.h>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Returns the atoms of these manual axes, in the order in which the call names the axes.
AtomList group_atoms(Call& call, const AxisNames& axes) {
  const auto open = call.trace().regions().shard_maps.open();
  if (open.empty()) {
    call.refuse(
        "works only in the function of a shard_map(), between the chips of a group; outside of it, "
        "tensors are whole, so use sum, reshape and similar functions");
  }
  const Mesh& mesh = call->mesh();
  AtomList atoms;
  for (const std::string& name : axes.names()) {
    const AtomList own = mesh.axis_atoms(call.axis_of(mesh, name, "the call"));
    if ((own.mask() & ~open.back().manual) != 0) {
      call.refuse(
          "axis \"{}\" isn't manual in the shard_map() at {}: name it in a spec, or in the "
          "option `axes`",
          name, file_line(open.back().loc));
    }
    if ((own.mask() & atoms.mask()) != 0) call.refuse("axis \"{}\" is named twice", name);
    atoms.append(own);
  }
  return atoms;
}

/// Returns the atoms along which all chips of the group have the same value. Returns no atoms if
/// the value depends on no input, because a user may sum ones to count the chips.
AtomMask alike_along(Call& call, ValueId value, AtomList atoms) {
  const ManualAtoms own = call->manual(value);
  return own.anywhere ? AtomMask{0} : static_cast<AtomMask>(atoms.mask() & ~own.varies);
}

/// Returns the axes as the user writes them in a call: `"data"` or `{"data", "model"}`.
std::string axes_argument(Call& call, AtomMask atoms) {
  const std::string text = axes_text(call->mesh(), atoms);
  return text.find(',') != std::string::npos ? fmt::format("{{{}}}", text) : text;
}

/// Refuses to sum a value that is equal on all chips of the group. An example is the gradient with
/// respect to a value that the chips share, because this gradient already is a sum over these
/// chips.
void expect_parts_of_sum(Call& call, const Tensor& x, AtomList atoms) {
  const ValueId value = call.value(x);
  const AtomMask alike = alike_along(call, value, atoms);
  if (alike == 0) return;
  const std::string axes = axes_argument(call, alike);
  const std::int64_t chips = call->mesh().count(alike);
  const auto& functions = call.trace().regions().shard_maps;
  if (const auto* made = functions.gradient_call(call->program(), value)) {
    call.refuse(
        "{} is the gradient of a value that the chips along {} share, so grad() at {} has already "
        "summed it over these chips, and this sum would be {} times too large: remove this call, "
        "and divide by axis_size({}) for the mean over the chips; for each chip's own gradient, "
        "differentiate with respect to vary(parameter, {})",
        call.type(x).to_string(), axes, file_line(made->loc), chips, axes, axes);
  }
  call.refuse(
      "{} is the same on all chips along {}, so the sum would be {} times x: remove this call, or "
      "use vary(x, {}) to count each chip's copy",
      call.type(x).to_string(), axes, chips, axes);
}

Tensor reduced(const char* name, const Tensor& x, const AxisNames& axes, ReduceKind kind,
               const std::source_location& loc) {
  Call call(name, loc);
  const AtomList atoms = group_atoms(call, axes);
  const ValueId value = call.value(x);
  if (atoms.empty()) return x;
  if (kind == ReduceKind::add) expect_parts_of_sum(call, x, atoms);
  return call.result(call->all_reduce(call->mesh(), value, atoms, kind));
}

/// Refuses a size that the number of chips in the group doesn't divide.
void expect_parts(const Call& call, const Tensor& x, int dim, std::int64_t parts) {
  const std::int64_t size = call.type(x).shape[dim];
  if (size % parts == 0) return;
  call.refuse(
      "dim {} of {} has size {}, which isn't divisible by the {} chips of the group; pad the dim "
      "to a multiple of {}, or use another dim",
      dim, call.type(x).to_string(), size, parts, parts);
}

}  // namespace

Tensor psum(const Tensor& x, const AxisNames& axes, std::source_location loc) {
  return reduced("psum", x, axes, ReduceKind::add, loc);
}

Tensor pmean(const Tensor& x, const AxisNames& axes, std::source_location loc) {
  Call call("pmean", loc);
  const AtomList atoms = group_atoms(call, axes);
  const ValueId value = call.value(x);
  const AtomMask alike = alike_along(call, value, atoms);
  const auto* made = call.trace().regions().shard_maps.gradient_call(call->program(), value);
  if (made != nullptr && (made->varies & alike) != 0) {
    const std::string shared = axes_argument(call, alike);
    call.refuse(
        "{} is the gradient of a value that the chips along {} share, so grad() at {} has already "
        "summed it over these chips, and pmean would return that sum: divide the gradient by "
        "axis_size({}), or take the gradient of pmean(loss, {})",
        call.type(x).to_string(), shared, file_line(made->loc), shared, shared);
  }
  // The mean over axes along which x is equal is x itself, so only the other axes are reduced.
  AtomList different;
  for (int i = 0; i < atoms.size(); ++i) {
    if (((alike >> atoms[i]) & 1U) == 0) different.push_back(atoms[i]);
  }
  if (different.empty()) return x;
  const auto chips = static_cast<double>(call->mesh().count(different));
  return call.result(call->all_reduce(call->mesh(), value, different, ReduceKind::add)) / chips;
}

Tensor pmax(const Tensor& x, const AxisNames& axes, std::source_location loc) {
  return reduced("pmax", x, axes, ReduceKind::max, loc);
}

Tensor pmin(const Tensor& x, const AxisNames& axes, std::source_location loc) {
  return reduced("pmin", x, axes, ReduceKind::min, loc);
}

Tensor all_gather(const Tensor& x, const AxisNames& axes, int dim, std::source_location loc) {
  Call call("all_gather", loc);
  const AtomList atoms = group_atoms(call, axes);
  const int own_dim = call.dim_of(dim, call.type(x).shape.size());
  const ValueId value = call.value(x);
  if (atoms.empty()) return x;
  return call.result(call->all_gather(call->mesh(), value, atoms, own_dim));
}

Tensor reduce_scatter(const Tensor& x, const AxisNames& axes, int dim, std::source_location loc) {
  Call call("reduce_scatter", loc);
  const AtomList atoms = group_atoms(call, axes);
  const int own_dim = call.dim_of(dim, call.type(x).shape.size());
  expect_parts(call, x, own_dim, call->mesh().count(atoms));
  const ValueId value = call.value(x);
  if (atoms.empty()) return x;
  expect_parts_of_sum(call, x, atoms);
  return call.result(call->reduce_scatter(call->mesh(), value, atoms, ReduceKind::add, own_dim));
}

Tensor all_to_all(const Tensor& x, const AxisNames& axes, int split_dim, int concat_dim,
                  std::source_location loc) {
  Call call("all_to_all", loc);
  const AtomList atoms = group_atoms(call, axes);
  const Shape shape = call.type(x).shape;
  const int split = call.dim_of(split_dim, shape.size());
  const int concat = call.dim_of(concat_dim, shape.size());
  const std::int64_t chips = call->mesh().count(atoms);
  expect_parts(call, x, split, chips);
  ValueId value = call.value(x);
  if (atoms.empty()) return x;
  if (split != concat) {
    return call.result(call->all_to_all(call->mesh(), value, atoms, split, concat));
  }
  // The split and the concatenation are along the same dim, so this dim is temporarily divided in
  // two: the number of a part, and the position in the part.
  Dims apart(shape.begin(), shape.end());
  apart[static_cast<std::size_t>(split)] /= chips;
  apart.insert(apart.begin() + split, chips);
  value = call->reshape(value, call.shape_of(apart));
  value = call->all_to_all(call->mesh(), value, atoms, split, split + 1);
  return call.result(call->reshape(value, shape));
}

Tensor ppermute(const Tensor& x, const AxisNames& axes,
                const std::vector<std::pair<int, int>>& pairs, std::source_location loc) {
  Call call("ppermute", loc);
  const AtomList atoms = group_atoms(call, axes);
  const auto chips = static_cast<int>(call->mesh().count(atoms));
  constexpr int kNone = -1;
  std::vector<int> sources(static_cast<std::size_t>(chips), kNone);
  std::vector<int> idle(sources.size());  // chips that send nothing
  for (int chip = 0; chip < chips; ++chip) idle[static_cast<std::size_t>(chip)] = chip;
  for (const auto& [from, to] : pairs) {
    if (std::min(from, to) < 0 || std::max(from, to) >= chips) {
      call.refuse(
          "the pair ({}, {}) names chip {}: expected 0 to {}, the chips of the group; a pair is "
          "(sender, receiver)",
          from, to, from < 0 || from >= chips ? from : to, chips - 1);
    }
    if (std::erase(idle, from) == 0) {
      call.refuse(
          "chip {} sends to two chips; each chip may send once: all_gather gives x to all chips",
          from);
    }
    int& source = sources[static_cast<std::size_t>(to)];
    if (source != kNone) {
      call.refuse(
          "chip {} receives from two chips, {} and {}; each chip may receive once: add up the "
          "results of several ppermute calls, or use psum",
          to, source, from);
    }
    source = from;
  }
  std::vector<double> receives;
  for (int& source : sources) {
    receives.push_back(source != kNone ? 1 : 0);
    if (source != kNone) continue;
    source = idle.back();
    idle.pop_back();
  }
  const ValueId value = call.value(x);
  if (atoms.empty()) return pairs.empty() ? x * 0.0 : x;
  const Tensor sent = call.result(call->ppermute(call->mesh(), value, atoms, sources));
  if (std::ranges::count(receives, 0.0) == 0) return sent;
  Tensor is_target = full({}, 0, DType::pred);
  const Tensor own = axis_index(axes, loc);
  for (int chip = 0; chip < chips; ++chip) {
    if (receives[static_cast<std::size_t>(chip)] == 0) continue;
    is_target = logical_or(is_target, equal(own, chip));
  }
  return where(is_target, sent, 0.0);
}

Tensor ring_shift(const Tensor& x, const AxisNames& axes, std::int64_t by,
                  std::source_location loc) {
  Call call("ring_shift", loc);
  const AtomList atoms = group_atoms(call, axes);
  const std::int64_t chips = call->mesh().count(atoms);
  const ValueId value = call.value(x);
  std::vector<int> sources;
  for (std::int64_t chip = 0; chip < chips; ++chip) {
    sources.push_back(static_cast<int>(((chip - by) % chips + chips) % chips));
  }
  if (sources[0] == 0) return x;
  return call.result(call->ppermute(call->mesh(), value, atoms, sources));
}

Tensor axis_index(const AxisNames& axes, std::source_location loc) {
  Call call("axis_index", loc);
  const AtomList atoms = group_atoms(call, axes);
  if (atoms.empty()) return call.result(call->constant(0, {DType::i32, {}}));
  const AtomMask manual = call.trace().regions().shard_maps.manual();
  return call.result(call->number_in_group(DType::i32, atoms, manual));
}

std::int64_t axis_size(const AxisNames& axes, std::source_location loc) {
  Call call("axis_size", loc);
  return call->mesh().count(group_atoms(call, axes));
}

Tensor vary(const Tensor& x, const AxisNames& axes, std::source_location loc) {
  Call call("vary", loc);
  const AtomList atoms = group_atoms(call, axes);
  const ManualAtoms around{.manual = call.trace().regions().shard_maps.manual()};
  const ValueId value = call->like(call.value(x), around);
  const auto alike = static_cast<AtomMask>(atoms.mask() & ~call->manual(value).varies);
  return alike == 0 ? call.result(value) : call.result(call->vary(value, alike));
}

}  // namespace weft
