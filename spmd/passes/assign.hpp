#pragma once
/// Factor assignment: which atoms cut each factor of an op, so that all its tensors agree.

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "spmd/passes/factors.hpp"

namespace weft {

/// An operand or the result of an op, as propagation left it.
struct OpTensor {
  TensorType type;
  Sharding sharding;
  bool free = false;  ///< any layout costs nothing (constants)

  friend bool operator==(const OpTensor&, const OpTensor&) = default;
};

/// The factor assignments of a program's ops. Equal ops share one assignment, because the layers of
/// a network repeat.
///
/// One atom list per factor; an atom serves one factor, and its factor's size is divided.
/// Candidates are what the tensors have; where they compete for an atom, the best user priority by
/// which it got there wins, then the lowest cost of the reshards that follow, then pass-through
/// before reduction.
class FactorAssignments {
 public:
  explicit FactorAssignments(const Mesh& mesh) : mesh_(mesh) {}

  /// The returned reference is valid as long as this object; `rule` must live as long.
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

/// Layout of a tensor of the op under an assignment; the result is unreduced over the atoms of the
/// reduction factors.
Sharding assigned_layout(const FactorRule& rule, const std::vector<AtomList>& assignment,
                         std::size_t tensor);

}  // namespace weft
