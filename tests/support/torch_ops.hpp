#pragma once
/// Compares ops with torch, whose results are in golden files (tests/golden/torch/make.py).

#include <functional>
#include <map>
#include <ostream>
#include <span>
#include <string>

#include <weft/nn/parameter.hpp>
#include <weft/tensor/tensor.hpp>

namespace weft::testing {

/// The floating operands, by their names in the golden file.
using Operands = std::map<std::string, Parameter>;
struct OpCase {
  std::string name;
  /// Computes the op; `index` is the i32 operand, if the op has one.
  std::function<Tensor(Operands&, const Tensor& index)> function;
};
std::ostream& operator<<(std::ostream& out, const OpCase& which);

/// Expects that the op's value and, if the value is floating, its gradients equal those in the
/// file. On a mesh with axes "data" and "model", an operand's first dim is sharded over "data" and
/// its last over "model".
void expect_op_as_torch(const OpCase& which, const std::string& golden, const Mesh* mesh = nullptr);

/// Expects that `cases` has every case of the file.
void expect_all_in(const std::string& golden, std::span<const OpCase> cases);

}  // namespace weft::testing
