#pragma once
/// The interface between the reference interpreters and the functions that compute the values of
/// ops.

#include <cstdint>
#include <span>
#include <vector>

#include "spmd/ops/attributes.hpp"
#include "spmd/program/program.hpp"

namespace weft {

/// The position of a chip's part along a dim, and the number of parts of the dim. There is one
/// PartPlace for each attribute word with OnChip::atoms.
struct PartPlace {
  std::int64_t first = 0;  ///< the index of the part's first element in the whole dim
  std::int64_t parts = 1;
};

/// Row-major elements of a value, for every dtype. A pred is 0 or 1.
using Elements = std::vector<double>;

/// One evaluation of an op on one chip, for the reference interpreters.
struct Evaluation {
  const Program& program;
  OpId op;
  std::span<const Elements* const> operands;
  std::span<const PartPlace> place{};  ///< one for each attribute word with OnChip::atoms

  const TensorType& type() const { return program.type(program.result(op)); }
  const Shape& shape() const { return type().shape; }
  const TensorType& operand_type(std::size_t i) const {
    return program.type(program.op_operands(op)[i]);
  }
  const Shape& operand_shape(std::size_t i) const { return operand_type(i).shape; }
  const Elements& operand(std::size_t i) const { return *operands[i]; }
  Words attrs() const { return program.op_attrs(op); }
};

/// A function that computes the op's value in double. It takes single elements, complete operands,
/// or, for collectives, the parts of all chips in a group, in which this chip is number `self`.
struct Evaluate {
  using Group = Elements (*)(const Program&, OpId, std::span<const Elements> parts,
                             std::int64_t self);
  double (*unary)(double) = nullptr;
  double (*binary)(double, double) = nullptr;
  Elements (*whole)(const Evaluation&) = nullptr;
  Group group = nullptr;
  constexpr Evaluate() = default;
  constexpr Evaluate(double (*f)(double)) : unary(f) {}
  constexpr Evaluate(double (*f)(double, double)) : binary(f) {}
  constexpr Evaluate(Elements (*f)(const Evaluation&)) : whole(f) {}
  constexpr Evaluate(Group f) : group(f) {}
};

}  // namespace weft
