#pragma once
/// Factor assignment: which atoms cut each factor of an op, so that all its tensors agree.

#include <vector>

#include <weft/spmd/passes/factors.hpp>

namespace weft {

/// An operand or the result of an op, as propagation left it.
struct OpTensor {
  TensorType type;
  Sharding sharding;
  bool free = false;  ///< made in any layout without traffic (constants): costs nothing
};

/// One atom list per factor; an atom serves one factor, and its factor's size is divided.
/// Candidates are what the tensors have; where they compete for an atom, the best user priority by
/// which it got there wins, then the lowest cost of the reshards that follow, then pass-through
/// before reduction.
std::vector<AtomList> assign_factors(const FactorRule& rule, const Mesh& mesh,
                                     const std::vector<OpTensor>& tensors);

/// Layout of a tensor of the op under an assignment; the result is unreduced over the atoms of the
/// reduction factors.
Sharding assigned_layout(const FactorRule& rule, const std::vector<AtomList>& assignment,
                         std::size_t tensor);

}  // namespace weft
