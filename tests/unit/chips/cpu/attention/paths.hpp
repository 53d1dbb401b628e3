#pragma once
/// Runs attention on all paths of its kernel. Paths that multiply in the same dtype give the same
/// bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "chips/cpu/loops/vectorize.hpp"
#include "chips/cpu/onednn/matmul.hpp"
#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

namespace weft::kernels {

/// Returns the paths that this processor has; the first is `portable`, the oracle for the others.
inline std::vector<KernelPath> paths() {
  std::vector<KernelPath> all;
  for (const Vectors vectors : {Vectors::portable, Vectors::avx2, Vectors::avx512}) {
    if (vectors <= parse_kernel_path("").vectors) all.push_back({vectors, false});
  }
  return all;
}

/// Restores the process's path at the end of the scope.
struct PathScope {
  const KernelPath before = kernel_path();
  ~PathScope() { set_kernel_path(before); }
};

inline void expect_bits(const std::vector<Elements>& actual,
                        const std::vector<Elements>& expected) {
  for (std::size_t output = 0; output < expected.size(); ++output) {
    for (std::size_t i = 0; i < expected[output].size(); ++i) {
      const double a = actual[output][i];
      const double e = expected[output][i];
      if (std::isnan(a) && std::isnan(e)) continue;
      ASSERT_EQ(std::bit_cast<std::uint64_t>(a), std::bit_cast<std::uint64_t>(e))
          << "output " << output << ", element " << i << ": " << a << ", expected " << e;
    }
  }
}

/// Expects that each element's error is at most `relative` times a scale: its magnitude or 4,
/// whichever is larger, but at most the largest expected element.
inline void expect_close(const std::vector<Elements>& actual, const std::vector<Elements>& expected,
                         double relative) {
  for (std::size_t output = 0; output < expected.size(); ++output) {
    double largest = 0;
    for (const double e : expected[output]) largest = std::max(largest, std::fabs(e));
    for (std::size_t i = 0; i < expected[output].size(); ++i) {
      const double e = expected[output][i];
      const double size = std::min(largest, std::max(std::fabs(e), 4.0));
      ASSERT_NEAR(actual[output][i], e, relative * size)
          << "output " << output << ", element " << i;
    }
  }
}

/// Returns whether this path multiplies pairs of bf16, whose sums round differently from those of
/// f32.
inline bool multiplies_pairs(const TensorType& queries, const KernelPath& path) {
  return queries.dtype == DType::bf16 && queries.shape[3] % 2 == 0 &&
         path.vectors == Vectors::avx512 && multiplied_dtype(DType::bf16) == DType::bf16;
}

/// Expects the interpreter's values on every path, and equal bits on paths that multiply in the
/// same dtype. The case's first input is q.
inline void expect_reference_on_paths(const KernelCase& test, double relative) {
  const PathScope scope;
  const std::vector<Elements> expected = interpret(test.program, test.inputs);
  std::vector<Elements> oracle;
  for (const KernelPath& path : paths()) {
    set_kernel_path(path);
    const std::vector<Elements> actual = run_kernels(test);
    if (oracle.empty()) oracle = actual;
    if (multiplies_pairs(test.program.type(test.program.inputs[0].value), path)) {
      expect_close(actual, oracle, 0x1p-6);
    } else {
      expect_bits(actual, oracle);
    }
    expect_close(actual, expected, relative);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace weft::kernels
