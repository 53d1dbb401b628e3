#pragma once
/// Runs programs of a few ops with the kernels and with the reference interpreter.

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "chips/cpu/loops/kernel.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/reference/interpret.hpp"

namespace weft::kernels {

/// A program under construction, and the values of its inputs.
struct KernelCase {
  Program program;
  Builder build{program};
  std::vector<Elements> inputs;

  KernelCase() = default;
  KernelCase(const KernelCase&) = delete;
  KernelCase& operator=(const KernelCase&) = delete;

  /// Adds an input with these elements, rounded to the dtype.
  ValueId input(const TensorType& type, std::span<const double> elements);
  /// Adds an input of uniform random numbers from `low` to `high`. They are whole numbers if the
  /// dtype is an integer type or pred, or if `whole` is true.
  ValueId input(const TensorType& type, std::mt19937& random, double low, double high,
                bool whole = false);
  void output(ValueId value);
};

/// Returns the outputs that the kernels of the chip at `position` compute.
std::vector<Elements> run_kernels(const Program& program, std::span<const Elements> inputs,
                                  const Mesh& mesh, int position);
/// Runs the kernels on a mesh of one chip.
std::vector<Elements> run_kernels(const KernelCase& test);

/// Expects that the case's only output equals the interpreter's exactly; a NaN equals any NaN.
void expect_exact(const KernelCase& test);
/// Expects that the error of the case's only output is at most `relative` times the larger of
/// `scale` and the interpreter's result.
void expect_near(const KernelCase& test, double relative, double scale = 0);

/// Returns the largest relative error of one rounding to the dtype.
double epsilon(DType dtype);

/// Returns a shape with sizes from `low` to `high`.
Shape random_shape(std::mt19937& random, int num_dims, std::int64_t low, std::int64_t high);
int random_int(std::mt19937& random, int low, int high);

}  // namespace weft::kernels
