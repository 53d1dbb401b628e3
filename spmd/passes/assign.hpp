#pragma once
/// Factor assignment: chooses the atoms that cut each factor of an op, the same for all its
/// tensors.

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "spmd/passes/factors.hpp"

namespace weft {

/// An operand or the result of an op, with the sharding that propagation gave it.
struct OpTensor {
  TensorType type;
  Sharding sharding;
  bool free = false;  ///< the tensor costs nothing in any layout (constants)

  friend bool operator==(const OpTensor&, const OpTensor&) = default;
};

/// The factor assignments of a program's ops. Equal ops share one assignment, because the layers of
/// a network repeat.
///
/// An assignment is one atom list per factor. An atom cuts at most one factor, and cuts it evenly.
/// The candidates for a factor are the atom lists that the op's tensors have for it. If candidates
/// exclude each other, the candidate with the best user priority of its atoms wins, then the one
/// with the lowest cost of the resulting reshards, then that of a pass-through factor.
class FactorAssignments {
 public:
  explicit FactorAssignments(const Mesh& mesh) : mesh_(mesh) {}

  /// Returns the assignment of the op that has this rule and these tensors. The reference is valid
  /// as long as this object, and `rule` must live as long.
  const std::vector<AtomList>& of(const FactorRule& rule, std::vector<OpTensor> tensors);

 private:
  struct Key {
    const FactorRule* rule;
    std::vector<OpTensor> tensors;

    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  const Mesh& mesh_;
  std::unordered_map<Key, std::vector<AtomList>, Hash> assignments_;
};

/// Returns the layout that an assignment gives to a tensor of the op. The op's result is unreduced
/// over the atoms of the reduction factors.
Sharding assigned_layout(const FactorRule& rule, const std::vector<AtomList>& assignment,
                         std::size_t tensor);

/// Returns the layout of an output whose value got the sharding `home` from propagation. Closed
/// dims have the requested atoms. Open dims also get the atoms of `home`, up to the first atom that
/// another dim uses or over which the output is replicated.
Sharding layout_of_output(const ProgramOutput& output, const Sharding& home);

/// Returns whether each chip can make the value without communication in any layout: whether the
/// value is a constant, a fill or an iota.
bool is_made_anywhere(const Program& program, ValueId value);
/// Returns whether the value is a fill or an iota. A chip makes such a value again in each layout
/// that is used.
bool is_made_on_demand(const Program& program, ValueId value);

}  // namespace weft
