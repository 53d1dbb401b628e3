#pragma once
/// Compares operations with torch: the golden files have its results (tests/golden/torch/make.py).

#include <functional>
#include <map>
#include <ostream>
#include <span>
#include <string>

#include <weft/nn/parameter.hpp>
#include <weft/tensor/tensor.hpp>

namespace weft::testing {

/// Floating operands by their names in the golden file.
using Operands = std::map<std::string, Parameter>;
struct OpCase {
  std::string name;
  /// `index`: the i32 operand, if there is one.
  std::function<Tensor(Operands&, const Tensor& index)> function;
};
std::ostream& operator<<(std::ostream& out, const OpCase& which);

/// Expects the op's value, and if that is floating its gradients, to equal the file's. On a mesh
/// with axes "data" and "model", an operand's first dim is divided over "data" and its last over
/// "model".
void expect_op_as_torch(const OpCase& which, const std::string& golden, const Mesh* mesh = nullptr);

/// Expects that there is a case for each case of the file.
void expect_all_in(const std::string& golden, std::span<const OpCase> cases);

}  // namespace weft::testing
