#pragma once
/// Programs of a few ops, run by the kernels and by the reference interpreter.

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "chips/cpu/loops/kernel.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/reference/interpret.hpp"

namespace weft::kernels {

/// A program under construction, and values for its inputs.
struct KernelCase {
  Program program;
  Builder build{program};
  std::vector<Elements> inputs;

  KernelCase() = default;
  KernelCase(const KernelCase&) = delete;
  KernelCase& operator=(const KernelCase&) = delete;

  /// `elements` are rounded to the dtype.
  ValueId input(const TensorType& type, std::span<const double> elements);
  /// Uniform in [low, high]; whole numbers for integers and pred, and where `whole`.
  ValueId input(const TensorType& type, std::mt19937& random, double low, double high,
                bool whole = false);
  void output(ValueId value);
};

/// The outputs, computed by the kernels of the chip at `position`.
std::vector<Elements> run_kernels(const Program& program, std::span<const Elements> inputs,
                                  const Mesh& mesh, int position);
/// On a mesh of one chip.
std::vector<Elements> run_kernels(const KernelCase& test);

/// The only output of the case is exactly the interpreter's; NaN equals NaN.
void expect_exact(const KernelCase& test);
/// ... or within `relative` of it, relative to the larger of the result and `scale`.
void expect_near(const KernelCase& test, double relative, double scale = 0);

/// Largest relative error of rounding once to the dtype.
double epsilon(DType dtype);

/// Sizes from `low` to `high`.
Shape random_shape(std::mt19937& random, int num_dims, std::int64_t low, std::int64_t high);
int random_int(std::mt19937& random, int low, int high);

}  // namespace weft::kernels
