#pragma once
/// The process's table of custom ops, and custom_calls of a program in executable form.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <weft/custom_call.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// What a name means in this process.
struct CustomFunction {
  CustomTarget target;
  void (*kernel)(const CustomCall& call) = nullptr;
  void (*vjp)() = nullptr;  ///< CustomOp::vjp; of a type that only the tensor layer knows
};

/// Thread-safe; registered ops stay. Throws invalid_argument if the name already stands for another
/// op.
const CustomFunction& register_custom_function(const CustomFunction& function);
/// Null for a target that isn't registered, or is registered with another rule. Thread-safe.
const CustomFunction* find_custom_function(const CustomTarget& target);

/// A custom_call of a program with its function.
class BoundCustomCall {
 public:
  /// Throws not_found where the op isn't registered in this process.
  BoundCustomCall(const Program& program, OpId op);
  /// `operands`: at least as many as the op has. Rethrows the kernel's exceptions: an Error with
  /// the op's name and place added to its message, others as loop_failed.
  void run(std::span<const std::byte* const> operands, std::byte* result) const;

 private:
  const CustomFunction* function_;
  std::vector<TensorType> types_;
  std::string loc_;
};

}  // namespace weft
