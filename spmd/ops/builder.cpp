#include "spmd/ops/builder.hpp"

#include <algorithm>
#include <array>

#include "spmd/ops/row.hpp"
#include "spmd/program/element.hpp"
#include "spmd/rules/custom_rule.hpp"

namespace weft {
namespace {

std::int64_t packed(AtomList atoms) { return static_cast<std::int64_t>(atoms.bits()); }

std::vector<std::int64_t> joined(std::span<const std::int64_t> a, std::span<const std::int64_t> b,
                                 std::span<const std::int64_t> c) {
  std::vector<std::int64_t> all;
  for (const auto list : {a, b, c}) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

ValueId Builder::constant(double value, TensorType type) {
  std::array<std::byte, 8> element{};
  store_element(type.dtype, value, element.data());
  const auto size = static_cast<std::size_t>(byte_size(type.dtype));
  return constant(std::span<const std::byte>(element).first(size), type);
}

ValueId Builder::constant(std::span<const std::byte> elements, TensorType type) {
  std::vector<std::byte>& pool = program_->const_pool;
  const std::size_t offset = (pool.size() + 7) / 8 * 8;
  const std::array attrs{static_cast<std::int64_t>(offset),
                         static_cast<std::int64_t>(elements.size())};
  const ValueId value = emit(OpKind::constant, {}, attrs, type);
  pool.resize(offset);
  pool.insert(pool.end(), elements.begin(), elements.end());
  return value;
}

ValueId Builder::iota(TensorType type, int dim) {
  return emit(OpKind::iota, {}, std::array<std::int64_t, 2>{dim, 0}, type);
}

ValueId Builder::rng_bit_generator(ValueId state, const Shape& shape) {
  const std::vector<std::int64_t> atoms(static_cast<std::size_t>(shape.size()), 0);
  return emit(OpKind::rng_bit_generator, {state}, atoms, {DType::u32, shape});
}

ValueId Builder::unary(OpKind kind, ValueId x) { return emit(kind, {x}, {}); }

ValueId Builder::convert(ValueId x, DType dtype) {
  return emit(OpKind::convert, {x}, {}, {dtype, type(x).shape});
}

ValueId Builder::binary(OpKind kind, ValueId a, ValueId b) { return emit(kind, {a, b}, {}); }

ValueId Builder::compare(CompareDirection direction, ValueId a, ValueId b) {
  return emit(OpKind::compare, {a, b}, std::array{static_cast<std::int64_t>(direction)});
}

ValueId Builder::select(ValueId predicate, ValueId on_true, ValueId on_false) {
  return emit(OpKind::select, {predicate, on_true, on_false}, {});
}

ValueId Builder::reshape(ValueId x, const Shape& shape) {
  return emit(OpKind::reshape, {x}, {}, {type(x).dtype, shape});
}

ValueId Builder::transpose(ValueId x, std::span<const std::int64_t> perm) {
  return emit(OpKind::transpose, {x}, perm);
}

ValueId Builder::broadcast_in_dim(ValueId x, const Shape& shape,
                                  std::span<const std::int64_t> dims) {
  return emit(OpKind::broadcast_in_dim, {x}, dims, {type(x).dtype, shape});
}

ValueId Builder::slice(ValueId x, std::span<const std::int64_t> start,
                       std::span<const std::int64_t> limit, std::span<const std::int64_t> stride) {
  return emit(OpKind::slice, {x}, joined(start, limit, stride));
}

ValueId Builder::pad(ValueId x, ValueId padding, std::span<const std::int64_t> low,
                     std::span<const std::int64_t> high, std::span<const std::int64_t> interior) {
  return emit(OpKind::pad, {x, padding}, joined(low, high, interior));
}

ValueId Builder::concatenate(std::span<const ValueId> parts, int dim) {
  std::vector<ValueId> left(parts.begin(), parts.end());
  while (left.size() > kConcatenateCountMax) {
    std::vector<ValueId> joints;
    for (std::size_t i = 0; i < left.size(); i += kConcatenateCountMax) {
      const std::size_t count = std::min(kConcatenateCountMax, left.size() - i);
      joints.push_back(emit(OpKind::concatenate, std::span(left).subspan(i, count),
                            std::array{std::int64_t{dim}}));
    }
    left = std::move(joints);
  }
  return emit(OpKind::concatenate, left, std::array{std::int64_t{dim}});
}

ValueId Builder::reverse(ValueId x, std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> ascending(dims.begin(), dims.end());
  std::sort(ascending.begin(), ascending.end());
  return emit(OpKind::reverse, {x}, ascending);
}

ValueId Builder::gather(ValueId table, ValueId index) {
  return emit(OpKind::gather, {table, index}, std::array{std::int64_t{0}});
}

ValueId Builder::scatter(ValueId index, ValueId updates, std::int64_t rows) {
  return emit(OpKind::scatter, {index, updates}, std::array{rows, std::int64_t{0}});
}

ValueId Builder::dynamic_slice(ValueId x, std::span<const ValueId> starts,
                               std::span<const std::int64_t> sizes) {
  std::vector<ValueId> operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return emit(OpKind::dynamic_slice, operands, sizes);
}

ValueId Builder::dynamic_update_slice(ValueId x, ValueId update, std::span<const ValueId> starts) {
  std::vector<ValueId> operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return emit(OpKind::dynamic_update_slice, operands, {});
}

ValueId Builder::dot_general(ValueId lhs, ValueId rhs, const DotDims& dims) {
  if (dims.lhs_batch.size() != dims.rhs_batch.size() ||
      dims.lhs_contracting.size() != dims.rhs_contracting.size()) {
    fail(Errc::invalid_argument,
         "dot_general({}, {}): {} x {} batch and {} x {} contracting dims are given; they come in "
         "pairs (at {})",
         type(lhs).to_string(), type(rhs).to_string(), dims.lhs_batch.size(), dims.rhs_batch.size(),
         dims.lhs_contracting.size(), dims.rhs_contracting.size(), program_->locs[loc()]);
  }
  InplaceVector<std::int64_t, 3 + 4 * kDimCountMax> attrs{
      static_cast<std::int64_t>(dims.lhs_batch.size()),
      static_cast<std::int64_t>(dims.lhs_contracting.size())};
  for (const auto* list :
       {&dims.lhs_batch, &dims.rhs_batch, &dims.lhs_contracting, &dims.rhs_contracting}) {
    attrs.append_range(*list);
  }
  if (dims.skip_zeros != SkipZeros::never) {
    attrs.push_back(static_cast<std::int64_t>(dims.skip_zeros));
  }
  return emit(OpKind::dot_general, {lhs, rhs}, attrs);
}

ValueId Builder::reduce(ReduceKind kind, ValueId x, std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> attrs{static_cast<std::int64_t>(kind)};
  attrs.insert(attrs.end(), dims.begin(), dims.end());
  std::sort(attrs.begin() + 1, attrs.end());
  return emit(OpKind::reduce, {x}, attrs, {type(x).dtype, {}});
}

ValueId Builder::convolution(ValueId lhs, ValueId rhs, const Convolution& convolution) {
  return emit(OpKind::convolution, {lhs, rhs}, to_attrs(convolution));
}

ValueId Builder::reduce_window(ValueId x, const WindowReduction& reduction) {
  return emit(OpKind::reduce_window, {x}, to_attrs(reduction));
}

ValueId Builder::select_and_scatter(ValueId x, ValueId y, const WindowReduction& reduction) {
  return emit(OpKind::select_and_scatter, {x, y}, to_attrs(reduction));
}

ValueId Builder::softmax(ValueId x) { return emit(OpKind::softmax, {x}, {}); }

ValueId Builder::log_softmax(ValueId x) { return emit(OpKind::log_softmax, {x}, {}); }

ValueId Builder::softmax_grad(OpKind kind, ValueId y, ValueId g) { return emit(kind, {y, g}, {}); }

ValueId Builder::normalize(ValueId x, const Normalization& normalization) {
  return emit(OpKind::normalize, {x}, to_attrs(normalization));
}

ValueId Builder::normalize_grad(ValueId x, ValueId g, const Normalization& normalization) {
  return emit(OpKind::normalize_grad, {x, g}, to_attrs(normalization));
}

ValueId Builder::attention(ValueId q, ValueId k, ValueId v, const AttentionForm& form,
                           ValueId bias) {
  std::vector<std::int64_t> attrs = to_attrs(form);
  attrs.push_back(0);
  const std::array all{q, k, v, bias};
  return emit(OpKind::attention, std::span(all).first(bias == kNoId ? 3 : 4), attrs);
}

ValueId Builder::attention_grad(ValueId q, ValueId k, ValueId v, ValueId y, ValueId g,
                                const AttentionForm& form, ValueId bias) {
  const std::array all{q, k, v, y, g, bias};
  return emit(OpKind::attention_grad, std::span(all).first(bias == kNoId ? 5 : 6), to_attrs(form));
}

ValueId Builder::cross_entropy(ValueId x, ValueId labels) {
  return emit(OpKind::cross_entropy, {x, labels}, {});
}

ValueId Builder::cross_entropy_grad(ValueId x, ValueId labels, ValueId g) {
  return emit(OpKind::cross_entropy_grad, {x, labels, g}, {});
}

ValueId Builder::custom_call(const CustomTarget& target, std::span<const ValueId> operands,
                             const TensorType& result) {
  const RuleText rule = parse_custom_rule(target.rule);
  std::vector<TensorType> types;
  for (const ValueId operand : operands) types.push_back(type(operand));
  check_custom_result(rule, factor_sizes(rule, types), result);
  return emit(OpKind::custom_call, operands, std::array{program_->intern_target(target)}, result);
}

ValueId Builder::custom_gradient(std::span<const ValueId> operands, std::int64_t number) {
  return emit(OpKind::custom_gradient, operands, std::array{number});
}

ValueId Builder::argsort(ValueId x, bool descending, ValueId places) {
  const std::array operands{x, places};
  return emit(OpKind::argsort, std::span(operands).first(places == kNoId ? 1 : 2),
              std::array{std::int64_t{descending}});
}

ValueId Builder::take_along(ValueId x, ValueId index) {
  return emit(OpKind::take_along, {x, index}, {});
}

ValueId Builder::scatter_along(ValueId index, ValueId updates, std::int64_t size) {
  return emit(OpKind::scatter_along, {index, updates}, std::array{size});
}

ValueId Builder::linear_recurrence(ValueId a, ValueId b, bool reversed) {
  return emit(OpKind::linear_recurrence, {a, b}, std::array{std::int64_t{reversed}});
}

ValueId Builder::sharding_constraint(ValueId x, const Sharding& sharding) {
  const std::array index{static_cast<std::int64_t>(program_->constraints.size())};
  program_->constraints.push_back(sharding);
  return emit(OpKind::sharding_constraint, {x}, index);
}

ValueId Builder::optimization_barrier(ValueId x) {
  return emit(OpKind::optimization_barrier, {x}, {});
}

ValueId Builder::copy(ValueId x) { return emit(OpKind::copy, {x}, {}); }

ValueId Builder::check_index(ValueId index, std::int64_t limit, std::int64_t ignored) {
  return emit(OpKind::check_index, {index}, std::array{limit, ignored});
}

ValueId Builder::check_room(ValueId length, std::int64_t capacity, std::int64_t new_tokens) {
  const std::int64_t ignored = 0;
  return emit(OpKind::check_index, {length},
              std::array{capacity - new_tokens + 1, ignored, new_tokens});
}

ValueId Builder::all_reduce(const Mesh& mesh, ValueId x, AtomList atoms, ReduceKind kind) {
  return emit(OpKind::all_reduce, {x}, std::array{packed(atoms), static_cast<std::int64_t>(kind)},
              {}, &mesh);
}

ValueId Builder::all_gather(const Mesh& mesh, ValueId x, AtomList atoms, int dim) {
  return emit(OpKind::all_gather, {x}, std::array{packed(atoms), std::int64_t{dim}}, {}, &mesh);
}

ValueId Builder::reduce_scatter(const Mesh& mesh, ValueId x, AtomList atoms, ReduceKind kind,
                                int dim) {
  return emit(OpKind::reduce_scatter, {x},
              std::array{packed(atoms), static_cast<std::int64_t>(kind), std::int64_t{dim}}, {},
              &mesh);
}

ValueId Builder::all_to_all(const Mesh& mesh, ValueId x, AtomList atoms, int split_dim,
                            int concat_dim) {
  return emit(OpKind::all_to_all, {x},
              std::array{packed(atoms), std::int64_t{split_dim}, std::int64_t{concat_dim}}, {},
              &mesh);
}

ValueId Builder::collective_permute(ValueId x, std::span<const AtomList> from,
                                    std::span<const AtomList> to) {
  std::vector<std::int64_t> attrs;
  for (const AtomList atoms : from) attrs.push_back(packed(atoms));
  for (const AtomList atoms : to) attrs.push_back(packed(atoms));
  return emit(OpKind::collective_permute, {x}, attrs);
}

ValueId Builder::ppermute(const Mesh& mesh, ValueId x, AtomList atoms,
                          std::span<const int> sources) {
  std::vector<std::int64_t> attrs{packed(atoms)};
  attrs.insert(attrs.end(), sources.begin(), sources.end());
  return emit(OpKind::ppermute, {x}, attrs, {}, &mesh);
}

ValueId Builder::enter(ValueId x, std::span<const std::int64_t> attrs) {
  return emit(OpKind::enter, {x}, attrs, {}, &mesh());
}

ValueId Builder::leave(ValueId x, std::span<const std::int64_t> attrs) {
  return emit(OpKind::leave, {x}, attrs, {}, &mesh());
}

ValueId Builder::number_in_group(DType dtype, AtomList group, AtomMask manual) {
  // The chip's part of the sequence 0, 1, .. is one number: its number in the group.
  const std::array attrs{packed(mesh().list(manual)), packed(group)};
  return reshape(enter(iota({dtype, {mesh().count(group)}}, 0), attrs), {});
}

ValueId Builder::all_slice(const Mesh& mesh, ValueId x, AtomList atoms, int dim) {
  return emit(OpKind::all_slice, {x}, std::array{packed(atoms), std::int64_t{dim}}, {}, &mesh);
}

}  // namespace weft
