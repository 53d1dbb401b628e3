#include <weft/spmd/passes/factors.hpp>

#include <algorithm>

#include <weft/spmd/passes/rule_maker.hpp>
#include <weft/spmd/program/infer.hpp>
#include <weft/spmd/program/window.hpp>

namespace weft {
namespace {

/// Every dim of the result is a factor that all tensors have in the same place.
FactorRule same_dims_rule(const Shape& shape, std::size_t num_operands, bool elementwise) {
  RuleMaker rule;
  for (std::size_t tensor = 0; tensor <= num_operands; ++tensor) rule.add_tensor(shape);
  for (int dim = 0; dim < shape.size(); ++dim) {
    const int factor = rule.add_factor(shape[dim]);
    for (std::size_t tensor = 0; tensor <= num_operands; ++tensor) rule.put(tensor, dim, factor);
  }
  return rule.take(elementwise);
}

FactorRule transpose_rule(const Shape& from, std::span<const std::int64_t> perm, const Shape& to) {
  RuleMaker rule;
  rule.add_tensor(from);
  rule.add_tensor(to);
  for (std::size_t dim = 0; dim < perm.size(); ++dim) {
    const int factor = rule.add_factor(to[static_cast<int>(dim)]);
    rule.put(0, perm[dim], factor);
    rule.put(1, static_cast<std::int64_t>(dim), factor);
  }
  return rule.take(true);
}

FactorRule broadcast_rule(const Shape& from, std::span<const std::int64_t> dims, const Shape& to) {
  RuleMaker rule;
  rule.add_tensor(from);
  rule.add_tensor(to);
  for (int dim = 0; dim < to.size(); ++dim) rule.put(1, dim, rule.add_factor(to[dim]));
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int dim = static_cast<int>(dims[i]);
    const std::int64_t size = from[static_cast<int>(i)];
    const bool expands = size != to[dim];
    rule.put(0, static_cast<std::int64_t>(i), expands ? rule.add_factor(size) : dim);
  }
  return rule.take(false);
}

/// `others`: operands without dims. Where `is_whole(dim)`, the dim passes through; elsewhere
/// neither side can be cut.
template <typename IsWhole>
FactorRule window_rule(const Shape& from, std::size_t others, const Shape& to, IsWhole is_whole) {
  RuleMaker rule;
  rule.add_tensor(from);
  for (std::size_t i = 0; i < others; ++i) rule.add_tensor({});
  rule.add_tensor(to);
  for (int dim = 0; dim < from.size(); ++dim) {
    if (is_whole(static_cast<std::size_t>(dim))) {
      const int factor = rule.add_factor(from[dim]);
      rule.put(0, dim, factor);
      rule.put(1 + others, dim, factor);
    } else {
      rule.put(0, dim, rule.add_factor(from[dim], FactorType::need_replication));
      rule.put(1 + others, dim, rule.add_factor(to[dim], FactorType::need_replication));
    }
  }
  return rule.take(false);
}

FactorRule slice_rule(const Shape& from, std::span<const std::int64_t> attrs, const Shape& to) {
  return window_rule(from, 0, to, [&](std::size_t dim) { return is_whole_dim(attrs, dim, from); });
}

FactorRule pad_rule(const Shape& from, std::span<const std::int64_t> attrs, const Shape& to) {
  const auto [low, high, interior] = triples(attrs);
  return window_rule(from, 1, to, [&, low = low, high = high, interior = interior](std::size_t d) {
    return low[d] == 0 && high[d] == 0 && interior[d] == 0;
  });
}

FactorRule reverse_rule(const Shape& shape, std::span<const std::int64_t> dims) {
  return window_rule(shape, 0, shape, [&](std::size_t dim) {
    return std::ranges::count(dims, static_cast<std::int64_t>(dim)) == 0;
  });
}

/// A dim that is taken whole begins at 0 whatever its start says.
FactorRule dynamic_slice_rule(const Shape& from, const Shape& to) {
  return window_rule(from, static_cast<std::size_t>(from.size()), to, [&](std::size_t dim) {
    return from[static_cast<int>(dim)] == to[static_cast<int>(dim)];
  });
}

/// A dim that the update fills passes through. Of the others each chip could write its own part,
/// given the whole update; in this version they aren't cut.
FactorRule dynamic_update_slice_rule(const Shape& whole, const Shape& update) {
  const auto dims = static_cast<std::size_t>(whole.size());
  RuleMaker rule;
  rule.add_tensor(whole);
  rule.add_tensor(update);
  for (std::size_t i = 0; i < dims; ++i) rule.add_tensor({});
  rule.add_tensor(whole);
  for (int dim = 0; dim < whole.size(); ++dim) {
    const bool filled = whole[dim] == update[dim];
    const FactorType type = filled ? FactorType::pass_through : FactorType::need_replication;
    const int factor = rule.add_factor(whole[dim], type);
    rule.put(0, dim, factor);
    rule.put(1, dim, filled ? factor : rule.add_factor(update[dim], type));
    rule.put(2 + dims, dim, factor);
  }
  return rule.take(false);
}

/// The tensors of a gather and a scatter, by what they have: the index its own dims, `rows` the
/// rows' dim and those of a row, `at_index` the dims of the index and those of a row.
struct RowTensors {
  std::size_t index, at_index, rows;
};

FactorRule row_rule(const Shape& index, const Shape& rows, RowTensors tensors,
                    FactorType index_type, FactorType rows_type) {
  RuleMaker rule;
  std::vector<std::int64_t> dims(index.begin(), index.end());
  dims.insert(dims.end(), rows.begin() + 1, rows.end());
  const Shape at_index{std::span<const std::int64_t>(dims)};
  for (std::size_t tensor = 0; tensor < 3; ++tensor) {
    rule.add_tensor(tensor == tensors.index ? index : tensor == tensors.rows ? rows : at_index);
  }
  for (int dim = 0; dim < index.size(); ++dim) {
    const int factor = rule.add_factor(index[dim], index_type);
    rule.put(tensors.index, dim, factor);
    rule.put(tensors.at_index, dim, factor);
  }
  rule.put(tensors.rows, 0, rule.add_factor(rows[0], rows_type));
  for (int dim = 1; dim < rows.size(); ++dim) {
    const int factor = rule.add_factor(rows[dim]);
    rule.put(tensors.rows, dim, factor);
    rule.put(tensors.at_index, index.size() + dim - 1, factor);
  }
  return rule.take(false);
}

/// A chip with some of the table's rows gives zeros for the others. pred can't be added.
FactorRule gather_rule(const TensorType& table, const Shape& index) {
  const bool adds = table.dtype != DType::pred;
  return row_rule(index, table.shape, {.index = 1, .at_index = 2, .rows = 0},
                  FactorType::pass_through,
                  adds ? FactorType::reduction : FactorType::need_replication);
}

/// A chip drops what belongs to the rows of others; one with some of the updates adds only those.
FactorRule scatter_rule(const Shape& index, const Shape& rows) {
  return row_rule(index, rows, {.index = 0, .at_index = 1, .rows = 2}, FactorType::reduction,
                  FactorType::pass_through);
}

FactorRule rng_rule(const Shape& state, const Shape& result) {
  RuleMaker rule;
  rule.add_tensor(state);
  rule.add_tensor(result);
  rule.put(0, 0, rule.add_factor(state[0], FactorType::need_replication));
  for (int dim = 0; dim < result.size(); ++dim) rule.put(1, dim, rule.add_factor(result[dim]));
  return rule.take(false);
}

FactorRule concatenate_rule(const Program& program, OpId op) {
  const auto joined = static_cast<int>(program.op_attrs(op)[0]);
  const Shape& to = program.shape(program.result(op));
  const auto operands = program.op_operands(op);
  RuleMaker rule;
  for (const ValueId operand : operands) rule.add_tensor(program.shape(operand));
  rule.add_tensor(to);
  for (int dim = 0; dim < to.size(); ++dim) {
    if (dim == joined) continue;  // a factor for each part would be as many as there are parts
    const int factor = rule.add_factor(to[dim]);
    for (std::size_t tensor = 0; tensor <= operands.size(); ++tensor) {
      rule.put(tensor, dim, factor);
    }
  }
  return rule.take(false);
}

FactorRule dot_general_rule(const Shape& lhs, const Shape& rhs, const Shape& result,
                            std::span<const std::int64_t> attrs) {
  const DotDimsView dims = dot_dims(attrs);
  RuleMaker rule;
  for (const Shape* shape : {&lhs, &rhs, &result}) rule.add_tensor(*shape);
  const auto size_of = [](const Shape& shape, std::int64_t dim) {
    return shape[static_cast<int>(dim)];
  };
  std::int64_t result_dim = 0;
  for (std::size_t i = 0; i < dims.lhs_batch.size(); ++i) {
    const int factor = rule.add_factor(size_of(lhs, dims.lhs_batch[i]));
    rule.put(0, dims.lhs_batch[i], factor);
    rule.put(1, dims.rhs_batch[i], factor);
    rule.put(2, result_dim++, factor);
  }
  for (const std::int64_t dim : free_dims(lhs.size(), dims.lhs_batch, dims.lhs_contracting)) {
    const int factor = rule.add_factor(size_of(lhs, dim));
    rule.put(0, dim, factor);
    rule.put(2, result_dim++, factor);
  }
  for (const std::int64_t dim : free_dims(rhs.size(), dims.rhs_batch, dims.rhs_contracting)) {
    const int factor = rule.add_factor(size_of(rhs, dim));
    rule.put(1, dim, factor);
    rule.put(2, result_dim++, factor);
  }
  for (std::size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
    const int factor = rule.add_factor(size_of(lhs, dims.lhs_contracting[i]), FactorType::reduction,
                                       ReduceKind::add);
    rule.put(0, dims.lhs_contracting[i], factor);
    rule.put(1, dims.rhs_contracting[i], factor);
  }
  return rule.take(false);
}

FactorRule reduce_rule(const Shape& from, std::span<const std::int64_t> attrs, const Shape& to) {
  const auto kind = static_cast<ReduceKind>(attrs[0]);
  const auto reduced = attrs.subspan(1);
  RuleMaker rule;
  rule.add_tensor(from);
  rule.add_tensor(to);
  std::int64_t result_dim = 0;
  for (int dim = 0; dim < from.size(); ++dim) {
    if (std::ranges::count(reduced, dim) > 0) {
      rule.put(0, dim, rule.add_factor(from[dim], FactorType::reduction, kind));
    } else {
      const int factor = rule.add_factor(from[dim]);
      rule.put(0, dim, factor);
      rule.put(1, result_dim++, factor);
    }
  }
  return rule.take(false);
}

FactorRule convolution_rule(const Shape& lhs, const Shape& rhs, const Shape& result,
                            const Convolution& c) {
  RuleMaker rule;
  const std::array<const Shape*, 3> shapes{&lhs, &rhs, &result};
  const std::array sides{&c.lhs, &c.rhs, &c.result};
  for (const Shape* shape : shapes) rule.add_tensor(*shape);
  const auto size_of = [](const Shape& shape, std::int64_t dim) {
    return shape[static_cast<int>(dim)];
  };
  const int batch = rule.add_factor(size_of(lhs, c.lhs[0]));
  rule.put(0, c.lhs[0], batch);
  rule.put(2, c.result[0], batch);
  const int output = rule.add_factor(size_of(rhs, c.rhs[1]));
  rule.put(1, c.rhs[1], output);
  rule.put(2, c.result[1], output);
  const int input = rule.add_factor(size_of(lhs, c.lhs[1]), FactorType::reduction);
  rule.put(0, c.lhs[1], input);
  rule.put(1, c.rhs[0], input);
  if (!c.group.empty()) {
    const int group = rule.add_factor(size_of(lhs, c.group[0]));
    for (std::size_t tensor = 0; tensor < 3; ++tensor) rule.put(tensor, c.group[tensor], group);
  }
  for (std::size_t tensor = 0; tensor < 3; ++tensor) {
    for (std::size_t i = 2; i < sides[tensor]->size(); ++i) {
      const std::int64_t dim = (*sides[tensor])[i];
      rule.put(tensor, dim,
               rule.add_factor(size_of(*shapes[tensor], dim), FactorType::need_replication));
    }
  }
  return rule.take(false);
}

/// The dims that no window joins pass through.
FactorRule select_and_scatter_rule(const Shape& x, const Shape& y,
                                   const WindowReduction& reduction) {
  RuleMaker rule;
  for (const Shape* shape : {&x, &y, &x}) rule.add_tensor(*shape);
  for (int dim = 0; dim < x.size(); ++dim) {
    const bool is_whole = reduction.dims[static_cast<std::size_t>(dim)] == WindowDim{};
    const auto type = is_whole ? FactorType::pass_through : FactorType::need_replication;
    const int factor = rule.add_factor(x[dim], type);
    rule.put(0, dim, factor);
    rule.put(1, dim, is_whole ? factor : rule.add_factor(y[dim], type));
    rule.put(2, dim, factor);
  }
  return rule.take(false);
}

}  // namespace

FactorRule factor_rule(const Program& program, OpId op) {
  const OpKind kind = program.kind(op);
  const auto operands = program.op_operands(op);
  const auto attrs = program.op_attrs(op);
  const Shape& result = program.shape(program.result(op));
  const auto operand = [&](std::size_t i) -> const Shape& { return program.shape(operands[i]); };
  switch (kind) {
    case OpKind::constant:
    case OpKind::iota: return same_dims_rule(result, 0, false);
    case OpKind::sharding_constraint:
    case OpKind::copy:
    case OpKind::check_index:
    case OpKind::optimization_barrier: return identity_rule(result);
    case OpKind::reshape: return reshape_rule(operand(0), result);
    case OpKind::transpose: return transpose_rule(operand(0), attrs, result);
    case OpKind::broadcast_in_dim: return broadcast_rule(operand(0), attrs, result);
    case OpKind::slice: return slice_rule(operand(0), attrs, result);
    case OpKind::pad: return pad_rule(operand(0), attrs, result);
    case OpKind::concatenate: return concatenate_rule(program, op);
    case OpKind::reverse: return reverse_rule(result, attrs);
    case OpKind::gather: return gather_rule(program.type(operands[0]), operand(1));
    case OpKind::scatter: return scatter_rule(operand(0), result);
    case OpKind::dynamic_slice: return dynamic_slice_rule(operand(0), result);
    case OpKind::dynamic_update_slice: return dynamic_update_slice_rule(operand(0), operand(1));
    case OpKind::rng_bit_generator: return rng_rule(operand(0), result);
    case OpKind::dot_general: return dot_general_rule(operand(0), operand(1), result, attrs);
    case OpKind::reduce: return reduce_rule(operand(0), attrs, result);
    case OpKind::convolution:
      return convolution_rule(operand(0), operand(1), result, convolution_of(attrs, operand(1)));
    case OpKind::reduce_window:
      return window_rule(operand(0), 0, result, [&](std::size_t dim) {
        return window_reduction_of(attrs).dims[dim] == WindowDim{};
      });
    case OpKind::select_and_scatter:
      return select_and_scatter_rule(operand(0), operand(1), window_reduction_of(attrs));
    case OpKind::custom_call: return custom_rule(program, op);
    default: break;
  }
  if (is_composite(kind)) return composite_rule(program, op);
  WEFT_CHECK(is_elementwise(kind), to_string(kind));
  return same_dims_rule(result, operands.size(), true);
}

FactorRule identity_rule(const Shape& shape) { return same_dims_rule(shape, 1, true); }

Projection project(const FactorRule& rule, const Mesh& mesh, std::size_t tensor,
                   const DimAtoms& dims) {
  Projection projection{.atoms = FactorAtoms(rule.factors.size())};
  for (std::size_t dim = 0; dim < rule.dims[tensor].size(); ++dim) {
    if (project_dim(rule, mesh, rule.dims[tensor][dim], dims[dim], projection.atoms)) {
      projection.overflow_dims = static_cast<std::uint8_t>(projection.overflow_dims | (1U << dim));
    }
  }
  return projection;
}

bool project_dim(const FactorRule& rule, const Mesh& mesh, const DimFactors& factors,
                 AtomList dim_atoms, std::span<AtomList> atoms) {
  int taken = 0;
  for (const std::size_t id : factors) {
    const Factor& factor = rule.factors[id];
    std::int64_t parts = 1;
    for (; taken < dim_atoms.size() && parts < factor.size; ++taken) {
      parts *= mesh.atom_size(dim_atoms[taken]);
      if (factor.size % parts != 0) break;
      atoms[id].push_back(dim_atoms[taken]);
    }
    if (parts != factor.size) break;
  }
  return taken < dim_atoms.size();
}

DimAtoms unproject(const FactorRule& rule, std::size_t tensor,
                   std::span<const AtomList> factor_atoms) {
  DimAtoms dims{};
  for (std::size_t dim = 0; dim < rule.dims[tensor].size(); ++dim) {
    for (const std::size_t factor : rule.dims[tensor][dim]) dims[dim].append(factor_atoms[factor]);
  }
  return dims;
}

bool is_full(const Mesh& mesh, const Factor& factor, AtomList atoms) {
  return mesh.count(atoms) == factor.size;
}

}  // namespace weft
