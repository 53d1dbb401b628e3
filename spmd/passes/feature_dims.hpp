#pragma once
/// Finds the values of a program whose dims are reordered together, so that their features are in
/// the last dim (channels_last.hpp).

#include <cstdint>
#include <vector>

#include "spmd/ops/row_fields.hpp"
#include "spmd/program/program.hpp"

namespace weft {

/// Returns how an op of this kind must be changed if the feature dim of its tensors moves.
Reorder reorder_of(OpKind kind);

/// FeatureDims::of() returns this for a value whose dims keep their order.
inline constexpr int kStays = -2;

class FeatureDims {
 public:
  /// The cost of a transpose is its number of elements times `transpose_cost`.
  FeatureDims(const Program& program, std::int64_t transpose_cost);

  /// Returns the dim of the value that becomes its last dim in the new program, or kStays if no dim
  /// moves.
  int of(ValueId value) const;
  bool any() const;
  /// Returns whether the value repeats one element, so that each use can make it in the order of
  /// dims that it needs.
  bool is_made_anywhere(ValueId value) const;

 private:
  static constexpr int kUnknown = -1;
  /// Values whose dims correspond one to one.
  struct Group {
    int feature = kUnknown;
    std::int64_t gain = 0;  ///< elements that then needn't be reordered
    std::int64_t cost = 0;  ///< elements of the transposes that are then needed
  };

  ValueId root(ValueId value) const;
  Group& group(ValueId value) { return groups_[root(value)]; }
  std::int64_t num_elements(ValueId value) const { return program_.type(value).num_elements(); }
  std::vector<ValueId> alike_in(OpId op) const;
  void add_convolution(OpId op);
  void say_feature(ValueId value, std::int64_t dim);
  void add_pool(OpId op);
  void add_transposes();

  const Program& program_;
  const std::int64_t transpose_cost_;
  std::vector<ValueId> parents_;
  std::vector<Group> groups_;  // indexed by root()
};

}  // namespace weft
