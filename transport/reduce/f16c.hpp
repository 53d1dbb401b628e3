#pragma once
/// has_f16c(): returns whether the processor can convert half floats (F16C).

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace weft {

/// Returns whether the processor has F16C, and the system saves the registers that F16C uses.
inline bool has_f16c() noexcept {
#if defined(__x86_64__)
  // This doesn't use __builtin_cpu_supports(), because some versions of clang don't know F16C.
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) != 0 &&
         (c & bit_F16C) != 0;
#else
  return false;
#endif
}

}  // namespace weft
