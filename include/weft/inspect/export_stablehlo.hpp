#pragma once
/// export_stablehlo() writes a compiled step as StableHLO text, for other compilers (IREE, XLA).

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include <weft/tensor/compile.hpp>
#include <weft/tensor/type.hpp>

namespace weft {

/// An argument of an exported step, in the order of the function's arguments.
struct ExportedArgument {
  std::string name;      ///< name of the parameter or other state; "" for most data
  std::string kind;      ///< "param", "opt_state", "buffer", "data" or "runtime_scalar"
  TensorType type;       ///< the type on one chip
  TensorType global;     ///< the type of the whole tensor
  std::string sharding;  ///< the mesh axes of each dim, such as [{"data"}, {}]
};

/// A result of an exported step, in the order of the function's results.
struct ExportedResult {
  std::string name;
  std::int32_t updates = -1;  ///< index of the argument whose next value this is; -1: none
  TensorType type;            ///< the type on one chip
  TensorType global;          ///< the type of the whole tensor
  std::string sharding;       ///< as in ExportedArgument
  /// True for the last result, an added i32[2] that reports errors. It is {-1, 0} if all labels and
  /// indices were in range; otherwise {the number of the op, the wrong index}.
  bool is_fault = false;
};

struct ExportedStep {
  /// An MLIR module in generic form. Its function `main` is the program of one chip.
  std::string text;
  std::vector<ExportedArgument> arguments;
  std::vector<ExportedResult> results;
  /// The mesh. The program runs once for each chip; the number of a chip's replica is the chip's
  /// row-major index in the mesh.
  std::vector<std::int64_t> mesh_shape;
  std::vector<std::string> axis_names;
};

/// Writes the program that the last call of a compiled function ran. Numbers other than Scalars are
/// constants of the program, as for the function itself. Must be called in the loop or Session that
/// has called the function. Throws invalid_argument if it hasn't, or if the call needed more than
/// one program, for example because of item(); not_found outside of a loop.
///
///     const auto step = weft::compile([&](const Tensor& x) { return model(x); });
///     step(batch);
///     std::ofstream("step.mlir") << weft::export_stablehlo(step).text;
ExportedStep export_stablehlo(const CompiledFunction& function,
                              std::source_location loc = std::source_location::current());

template <typename Function>
ExportedStep export_stablehlo(const Compiled<Function>& function,
                              std::source_location loc = std::source_location::current()) {
  return export_stablehlo(function.core(), loc);
}

}  // namespace weft
