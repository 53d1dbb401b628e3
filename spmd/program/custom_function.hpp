#pragma once
/// The process's table of custom ops, and a custom_call of a program as something to run.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <weft/custom_call.hpp>

#include "spmd/program/program.hpp"

namespace weft {

class Tensor;
struct CustomVjp;

/// What a name means in this process.
struct CustomFunction {
  CustomTarget target;
  void (*kernel)(const CustomCall& call) = nullptr;
  std::vector<Tensor> (*vjp)(const CustomVjp& vjp) = nullptr;
};

/// Thread-safe; what is registered stays. Throws invalid_argument for a name that has another
/// meaning already.
const CustomFunction& register_custom_function(const CustomFunction& function);
/// Null for a target that isn't registered, or with another rule. Thread-safe.
const CustomFunction* find_custom_function(const CustomTarget& target);

/// A custom_call of a program, ready to be run.
class BoundCustomCall {
 public:
  /// Throws not_found where the op isn't registered in this process.
  BoundCustomCall(const Program& program, OpId op);
  /// `operands`: as many as the op has, or more. Throws what the kernel throws: an Error as it is
  /// but for the op's name and place in its message, another exception as loop_failed.
  void run(std::span<const std::byte* const> operands, std::byte* result) const;

 private:
  const CustomFunction* function_;
  std::vector<TensorType> types_;
  std::string loc_;
};

}  // namespace weft
