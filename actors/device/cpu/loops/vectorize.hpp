#pragma once
/// One loop, compiled for several generations of processors.

#include "actors/device/cpu/loops/kernel.hpp"

namespace weft::kernels {

#if defined(__x86_64__)
/// Everything that `body` calls is inlined and compiled for AVX2. (Without fused multiply-add, so
/// the results are bitwise those of every other processor.)
template <typename Body>
[[gnu::target("avx2"), gnu::flatten]] void run_avx2(const Body& body, const KernelArgs& args) {
  body(args);
}
#endif

/// The kernel that runs `body(args)`, in the best version that this processor has.
template <typename Body>
Kernel vectorized(Body body) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    return {[body](const KernelArgs& args) { run_avx2(body, args); }};
  }
#endif
  return {body};
}

}  // namespace weft::kernels
