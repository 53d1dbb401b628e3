#include "spmd/passes/channels_last.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "spmd/control/loops.hpp"
#include "spmd/ops/attribute_views.hpp"
#include "spmd/passes/feature_dims.hpp"
#include "spmd/program/window.hpp"

namespace weft {
namespace {

/// Returns the new number of dim `dim` after dim `feature` of `num_dims` has become the last one.
std::int64_t moved_dim(std::int64_t dim, std::int64_t feature, std::int64_t num_dims) {
  return dim < feature ? dim : dim == feature ? num_dims - 1 : dim - 1;
}

/// Returns the permutation of a transpose that moves dim `feature` to the end.
DimList to_last(int num_dims, std::int64_t feature) {
  DimList perm;
  for (std::int64_t dim = 0; dim < num_dims; ++dim) {
    if (dim != feature) perm.push_back(dim);
  }
  perm.push_back(feature);
  return perm;
}

/// Returns the permutation of a transpose that moves the last dim back to dim `feature`.
DimList from_last(int num_dims, std::int64_t feature) {
  const DimList perm = to_last(num_dims, feature);
  return inverse_permutation(Words(perm.data(), perm.size()));
}

Shape moved(const Shape& shape, int feature) {
  DimList sizes;
  for (const std::int64_t dim : to_last(shape.size(), feature)) {
    sizes.push_back(shape[static_cast<int>(dim)]);
  }
  return Shape(Words(sizes.data(), sizes.size()));
}

class Mover {
 public:
  Mover(const Program& program, const FeatureDims& features)
      : program_(program),
        features_(features),
        made_(program.num_values(), kNoId),
        as_was_(program.num_values(), kNoId),
        at_border_(program.num_values(), false) {
    for (OpId op = 0; op < program.num_ops(); ++op) {
      const OpKind kind = program.kind(op);
      if (!is_border(kind) && kind != OpKind::merge) continue;
      for (const ValueId operand : program.op_operands(op)) at_border_[operand] = true;
    }
    result_.begin_from(program);
  }

  Program run() {
    for (const ProgramInput& input : program_.inputs) {
      made_[input.value] = result_.add_input(program_.type(input.value), input.kind, input.name,
                                             input.sharding, input.loc);
    }
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      loc_ = program_.op_locs[op];
      const ValueId old = program_.result(op);
      made_[old] = make(op);
      if (at_border_[old] && made_feature(old) >= 0) as_was_[old] = value(old, kStays);
    }
    for (const ProgramOutput& output : program_.outputs) {
      result_.add_output(value(output.value, kStays), output.name, output.sharding, output.updates);
    }
    return std::move(result_);
  }

 private:
  /// Returns the dim that is last in the new value for `value`, or kStays if its dims have the old
  /// order. Inputs, sums, and results of ops that refuse reordering keep the old order.
  int made_feature(ValueId value) const {
    const OpId op = program_.defining_op(value);
    if (op == kNoId) return kStays;
    const Reorder reorder = reorder_of(program_.kind(op));
    return reorder == Reorder::refused || reorder == Reorder::summed_dims ? kStays
                                                                          : features_.of(value);
  }

  /// Returns the new value for `old`, with dim `feature` moved to the end, or with no dim moved if
  /// `feature` is kStays.
  ValueId value(ValueId old, int feature) {
    if (feature >= 0 && features_.is_made_anywhere(old)) {
      const OpId op = program_.defining_op(old);
      TensorType type = program_.type(old);
      type.shape = moved(type.shape, feature);
      std::vector<ValueId> operands;
      for (const ValueId operand : program_.op_operands(op)) operands.push_back(made_[operand]);
      return result_.add_op(program_.kind(op), operands, program_.op_attrs(op), type, loc_);
    }
    if (feature < 0 && as_was_[old] != kNoId) return as_was_[old];
    const int now = made_feature(old);
    ValueId made = made_[old];
    if (now == feature) return made;
    const int num_dims = program_.shape(old).size();
    if (now >= 0) made = transpose(made, from_last(num_dims, now));
    return feature < 0 ? made : transpose(made, to_last(num_dims, feature));
  }

  ValueId transpose(ValueId x, const DimList& perm) {
    TensorType type = result_.type(x);
    DimList sizes;
    for (const std::int64_t dim : perm) sizes.push_back(type.shape[static_cast<int>(dim)]);
    type.shape = Shape(Words(sizes.data(), sizes.size()));
    return result_.add_op(OpKind::transpose, std::array{x}, Words(perm.data(), perm.size()), type,
                          loc_);
  }

  ValueId make(OpId op) {
    const OpKind kind = program_.kind(op);
    const Reorder reorder = reorder_of(kind);
    const auto operands = program_.op_operands(op);
    const ValueId result = program_.result(op);
    if (reorder == Reorder::convolution) return convolution(op);
    if (reorder == Reorder::summed_dims) return sum(op);
    const int feature = made_feature(result);
    if (reorder == Reorder::broadcast && feature >= 0) return spread(op, feature);
    std::vector<ValueId> values;
    for (const ValueId operand : operands) {
      const bool is_alike = program_.shape(operand).size() == program_.shape(result).size();
      values.push_back(value(operand, is_alike ? feature : kStays));
    }
    TensorType type = program_.type(result);
    if (feature < 0) return result_.add_op(kind, values, program_.op_attrs(op), type, loc_);
    const int num_dims = type.shape.size();
    type.shape = moved(type.shape, feature);
    const auto attrs = moved_attrs(reorder, program_.op_attrs(op), feature, num_dims);
    return result_.add_op(kind, values, attrs, type, loc_);
  }

  static std::vector<std::int64_t> moved_attrs(Reorder reorder, Words attrs, int feature,
                                               int num_dims) {
    std::vector<std::int64_t> words(attrs.begin(), attrs.end());
    // Moves element `feature` of each list to the end of the list.
    const auto rotate_lists = [&](auto first, std::ptrdiff_t length) {
      for (; first != words.end(); first += length) {
        std::rotate(first + feature, first + feature + 1, first + length);
      }
    };
    if (reorder == Reorder::lists) rotate_lists(words.begin(), num_dims);
    if (reorder == Reorder::joined_dim) words[0] = moved_dim(words[0], feature, num_dims);
    if (reorder == Reorder::window) {
      WindowReduction reduction = window_reduction_of(attrs);
      const auto dim = reduction.dims.begin() + feature;
      std::rotate(dim, dim + 1, reduction.dims.end());
      words = to_attrs(reduction);
    }
    return words;
  }

  /// Adds a broadcast_in_dim whose result has dim `feature` moved to the end. The list of the
  /// operand's dims stays ascending.
  ValueId spread(OpId op, int feature) {
    const ValueId operand = program_.op_operands(op)[0];
    const Words dims = program_.op_attrs(op);
    TensorType type = program_.type(program_.result(op));
    const int num_dims = type.shape.size();
    const auto place = std::ranges::find(dims, feature);
    const bool turns = place != dims.end() && place + 1 != dims.end();
    const int of_operand = turns ? static_cast<int>(place - dims.begin()) : kStays;
    std::vector<std::int64_t> words;
    for (const std::int64_t dim : dims) words.push_back(moved_dim(dim, feature, num_dims));
    std::ranges::sort(words);
    type.shape = moved(type.shape, feature);
    return result_.add_op(OpKind::broadcast_in_dim, std::array{value(operand, of_operand)}, words,
                          type, loc_);
  }

  /// Adds a reduce whose operand may have a moved dim. The result's dims are in the old order.
  ValueId sum(OpId op) {
    const ValueId operand = program_.op_operands(op)[0];
    const int feature = features_.of(operand);
    const Words attrs = program_.op_attrs(op);
    const TensorType& type = program_.type(program_.result(op));
    if (feature < 0) {
      return result_.add_op(OpKind::reduce, std::array{value(operand, kStays)}, attrs, type, loc_);
    }
    const int num_dims = program_.shape(operand).size();
    std::vector<std::int64_t> words{attrs[0]};
    int before = 0;  // number of remaining dims before the feature dim
    bool is_left = true;
    for (int dim = 0; dim < num_dims; ++dim) {
      if (std::ranges::find(attrs.subspan(1), dim) != attrs.end()) {
        words.push_back(moved_dim(dim, feature, num_dims));
        is_left = is_left && dim != feature;
      } else if (dim < feature) {
        ++before;
      }
    }
    std::ranges::sort(words.begin() + 1, words.end());
    TensorType reduced = type;
    if (is_left) reduced.shape = moved(type.shape, before);
    const ValueId made =
        result_.add_op(OpKind::reduce, std::array{value(operand, feature)}, words, reduced, loc_);
    if (!is_left || before + 1 == type.shape.size()) return made;
    return transpose(made, from_last(type.shape.size(), before));
  }

  ValueId convolution(OpId op) {
    Convolution c =
        convolution_of(program_.op_attrs(op), program_.shape(program_.op_operands(op)[1]));
    const auto operands = program_.op_operands(op);
    const auto place = [&](ValueId old, std::vector<std::int64_t>& side) {
      const int feature = features_.of(old);
      if (feature < 0 || !c.group.empty()) return kStays;
      for (std::int64_t& dim : side) {
        dim = moved_dim(dim, feature, program_.shape(old).size());
      }
      return feature;
    };
    const ValueId lhs = value(operands[0], place(operands[0], c.lhs));
    const ValueId rhs = value(operands[1], place(operands[1], c.rhs));
    const ValueId result = program_.result(op);
    TensorType type = program_.type(result);
    const int feature = place(result, c.result);
    if (feature >= 0) type.shape = moved(type.shape, feature);
    const ValueId made =
        result_.add_op(OpKind::convolution, std::array{lhs, rhs}, to_attrs(c), type, loc_);
    const int wanted = features_.of(result);
    return wanted == feature ? made : transpose(made, to_last(type.shape.size(), wanted));
  }

  const Program& program_;
  const FeatureDims& features_;
  Program result_;
  std::vector<ValueId> made_;    // indexed by old value
  std::vector<ValueId> as_was_;  // in the old order of dims, for values in at_border_
  /// By old value: whether a border op of a loop or a branch reads it. The value is then transposed
  /// where it is made, because there can be no transpose between the ops of a border.
  std::vector<bool> at_border_;
  LocId loc_ = 0;
};

}  // namespace

std::optional<Program> channels_last(const Program& chip_program, std::int64_t transpose_cost) {
  if (std::ranges::find(chip_program.op_kinds, OpKind::convolution) ==
      chip_program.op_kinds.end()) {
    return std::nullopt;
  }
  const FeatureDims features(chip_program, transpose_cost);
  if (!features.any()) return std::nullopt;
  return Mover(chip_program, features).run();
}

}  // namespace weft
