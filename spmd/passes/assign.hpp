#pragma once
/// Factor assignment: chooses the atoms that cut each factor of an op, so that all its tensors
/// agree.

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "spmd/passes/factors.hpp"

namespace weft {

/// An operand or the result of an op, with the sharding that propagation gave it.
struct OpTensor {
  TensorType type;
  Sharding sharding;
  bool free = false;  ///< any layout costs nothing (constants)

  friend bool operator==(const OpTensor&, const OpTensor&) = default;
};

/// The factor assignments of a program's ops. Equal ops share one assignment, because the layers of
/// a network repeat.
///
/// An assignment is one atom list per factor. An atom cuts at most one factor, and cuts it evenly.
/// The candidates are the atom lists that the tensors have for a factor. If candidates compete, the
/// best user priority of their atoms wins, then the lowest cost of the resulting reshards, then a
/// pass-through factor before a reduction factor.
class FactorAssignments {
 public:
  explicit FactorAssignments(const Mesh& mesh) : mesh_(mesh) {}

  /// Returns the op's assignment; the reference is valid for the lifetime of this object. `rule`
  /// must outlive the object.
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

/// Returns the layout that an assignment gives to a tensor of the op. The layout of the result is
/// unreduced over the atoms of the reduction factors.
Sharding assigned_layout(const FactorRule& rule, const std::vector<AtomList>& assignment,
                         std::size_t tensor);

/// Returns the layout of an output whose value got the sharding `home` from propagation. Closed
/// dims keep the requested atoms. Open dims also get the atoms of `home`, up to the first atom that
/// another dim uses or that is replicated.
Sharding layout_of_output(const ProgramOutput& output, const Sharding& home);

/// Returns whether each chip can make the value by itself, in any layout: a constant, a fill, an
/// iota.
bool is_made_anywhere(const Program& program, ValueId value);
/// Returns whether the value is a fill or an iota, which a chip makes at its use in the required
/// layout.
bool is_made_on_demand(const Program& program, ValueId value);

}  // namespace weft
