#pragma once
/// Keeps the process's table of custom ops, and binds custom_calls of a program to their functions.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <weft/ops/custom_call.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// The function of a custom op, as it is registered in this process.
struct CustomFunction {
  CustomTarget target;
  void (*kernel)(const CustomCall& call) = nullptr;
  void (*vjp)() = nullptr;  ///< CustomOp::vjp; only the tensor layer knows its type
};

/// Registers a function until the process ends. Thread-safe. Throws invalid_argument if the name
/// already stands for another op.
const CustomFunction& register_custom_function(const CustomFunction& function);
/// Returns the target's function; null if no function with this name and rule is registered.
/// Thread-safe.
const CustomFunction* find_custom_function(const CustomTarget& target);

/// A custom_call of a program, bound to its function.
class BoundCustomCall {
 public:
  /// Throws not_found if the op isn't registered in this process.
  BoundCustomCall(const Program& program, OpId op);
  /// Runs the kernel. `operands` has at least as many entries as the op has operands. Rethrows the
  /// kernel's exceptions: the message of an Error gets the op's name and source line; other
  /// exceptions become loop_failed.
  void run(std::span<const std::byte* const> operands, std::byte* result) const;

 private:
  const CustomFunction* function_;
  std::vector<TensorType> types_;
  std::string loc_;
};

}  // namespace weft
