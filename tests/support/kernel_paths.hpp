#pragma once
/// Lists the paths of kernels that this processor has (chips/cpu/loops/vectorize.hpp).

#include <vector>

#include "chips/cpu/loops/vectorize.hpp"

namespace weft::testing {

/// Returns the paths. The first is the portable path; the results of all others must have the same
/// bits.
inline std::vector<kernels::KernelPath> kernel_paths() {
  using kernels::Vectors;
  std::vector<kernels::KernelPath> all;
  for (const Vectors vectors : {Vectors::portable, Vectors::avx2, Vectors::avx512}) {
    if (vectors > kernels::parse_kernel_path("").vectors) continue;
    all.push_back({vectors, false});
    if (vectors != Vectors::portable) all.push_back({vectors, true});
  }
  return all;
}

/// Restores the process's kernel path at the end of the scope.
struct PathScope {
  const kernels::KernelPath before = kernels::kernel_path();
  ~PathScope() { kernels::set_kernel_path(before); }
};

}  // namespace weft::testing
