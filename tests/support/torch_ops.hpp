#pragma once
/// Operations against torch: the golden files say what it computes (tests/golden/torch/make.py).

#include <functional>
#include <map>
#include <ostream>
#include <span>
#include <string>

#include <weft/tensor.hpp>

namespace weft::testing {

/// Floating operands by their names in the golden file.
using Operands = std::map<std::string, Parameter>;
struct OpCase {
  std::string name;
  /// `index`: the operand of i32, if there is one.
  std::function<Tensor(Operands&, const Tensor& index)> function;
};
std::ostream& operator<<(std::ostream& out, const OpCase& which);

/// Its value and, where that is floating, its gradients are the file's. On a mesh with axes "data"
/// and "model", an operand's first dim is divided over the one and its last over the other.
void expect_op_as_torch(const OpCase& which, const std::string& golden, const Mesh* mesh = nullptr);

/// There is a case for each that the file has.
void expect_all_in(const std::string& golden, std::span<const OpCase> cases);

}  // namespace weft::testing
