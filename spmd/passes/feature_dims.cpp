#include "spmd/passes/feature_dims.hpp"

#include <algorithm>
#include <numeric>
#include <ranges>

#include "spmd/ops/row.hpp"
#include "spmd/program/window.hpp"

namespace weft {

Reorder reorder_of(OpKind kind) {
  return is_elementwise(kind) ? Reorder::nothing : row(kind).traits->reorder;
}

FeatureDims::FeatureDims(const Program& program, std::int64_t transpose_cost)
    : program_(program), transpose_cost_(transpose_cost), parents_(program.num_values()) {
  std::iota(parents_.begin(), parents_.end(), ValueId{0});
  for (OpId op = 0; op < program.num_ops(); ++op) {
    const std::vector<ValueId> alike = alike_in(op);
    for (const ValueId value : alike) parents_[root(value)] = root(alike.front());
  }
  groups_.resize(program.num_values());
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (reorder_of(program.kind(op)) == Reorder::convolution) add_convolution(op);
  }
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (reorder_of(program.kind(op)) == Reorder::window) add_pool(op);
  }
  add_transposes();
}

int FeatureDims::of(ValueId value) const {
  if (is_made_anywhere(value)) return kStays;
  const Group& group = groups_[root(value)];
  const bool moves = group.feature >= 0 && group.gain > group.cost &&
                     group.feature + 1 < program_.shape(value).size();
  return moves ? group.feature : kStays;
}

bool FeatureDims::any() const {
  const auto moves = [this](ValueId value) { return of(value) >= 0; };
  return std::ranges::any_of(std::views::iota(ValueId{0}, program_.num_values()), moves);
}

bool FeatureDims::is_made_anywhere(ValueId value) const {
  const OpId op = program_.defining_op(value);
  return op != kNoId && program_.is_fill(op);
}

/// Returns the op's tensors whose dims correspond one to one, so that the same dim of each must
/// move.
std::vector<ValueId> FeatureDims::alike_in(OpId op) const {
  const auto operands = program_.op_operands(op);
  const ValueId result = program_.result(op);
  const int num_dims = program_.shape(result).size();
  std::vector<ValueId> alike;
  const auto add = [&](ValueId value) {
    if (!is_made_anywhere(value) && program_.shape(value).size() == num_dims) {
      alike.push_back(value);
    }
  };
  switch (reorder_of(program_.kind(op))) {
    case Reorder::refused:
    case Reorder::convolution: return {};
    case Reorder::summed_dims: return {operands[0]};
    case Reorder::lists: add(operands[0]); break;
    default: std::ranges::for_each(operands, add);
  }
  add(result);
  return alike;
}

ValueId FeatureDims::root(ValueId value) const {
  while (parents_[value] != value) value = parents_[value];
  return value;
}

void FeatureDims::add_convolution(OpId op) {
  const ValueId result = program_.result(op);
  const DType dtype = program_.type(result).dtype;
  const Convolution c =
      convolution_of(program_.op_attrs(op), program_.shape(program_.op_operands(op)[1]));
  if (!c.group.empty() || (dtype != DType::f32 && !is_half(dtype))) {
    for (const ValueId value : program_.op_operands(op)) group(value).cost += num_elements(value);
    group(result).cost += num_elements(result);
    return;
  }
  const ValueId lhs = program_.op_operands(op)[0];
  const ValueId rhs = program_.op_operands(op)[1];
  std::int64_t window = 1;
  std::int64_t places = 1;
  for (std::size_t i = 0; i < c.window.size(); ++i) {
    window *= c.window[i].size;
    places *= program_.shape(result)[static_cast<int>(c.result[2 + i])];
  }
  group(lhs).gain += num_elements(lhs);
  if (window > places) {  // gradient of the weights: both operands are images
    group(rhs).gain += num_elements(rhs);
  } else {
    group(result).gain += num_elements(result);
    say_feature(lhs, c.lhs[1]);
    say_feature(result, c.result[1]);
  }
}

void FeatureDims::say_feature(ValueId value, std::int64_t dim) {
  int& feature = group(value).feature;
  if (feature == kUnknown) feature = static_cast<int>(dim);
  if (feature != dim) feature = kStays;
}

/// Adds the gain of a pool. If its windows extend over features, its dims keep their order, because
/// a move would change the order of the elements in a window.
void FeatureDims::add_pool(OpId op) {
  const ValueId x = program_.op_operands(op)[0];
  const WindowReduction reduction = window_reduction_of(program_.op_attrs(op));
  const auto is_whole = [](const WindowDim& dim) { return dim == WindowDim{}; };
  Group& of_x = group(x);
  if (of_x.feature >= 0 && !is_whole(reduction.dims[static_cast<std::size_t>(of_x.feature)])) {
    of_x.feature = kStays;
  }
  of_x.gain += 2 * num_elements(x);
}

/// Adds the cost of transposes for values that are needed in the original order by an op, as an
/// input or as an output.
void FeatureDims::add_transposes() {
  std::vector<bool> is_fixed(program_.num_values(), false);
  for (OpId op = 0; op < program_.num_ops(); ++op) {
    const Reorder reorder = reorder_of(program_.kind(op));
    if (reorder == Reorder::refused || reorder == Reorder::summed_dims)
      is_fixed[program_.result(op)] = true;
    if (reorder != Reorder::refused) continue;
    for (const ValueId value : program_.op_operands(op)) is_fixed[value] = true;
  }
  for (const ProgramInput& input : program_.inputs) is_fixed[input.value] = true;
  for (const ProgramOutput& output : program_.outputs) is_fixed[output.value] = true;
  for (ValueId value = 0; value < program_.num_values(); ++value) {
    if (!is_fixed[value] || is_made_anywhere(value)) continue;
    group(value).cost += transpose_cost_ * num_elements(value);
  }
}

}  // namespace weft
