#include "chips/cpu/loops/vectorize.hpp"

#include <atomic>
#include <cstdlib>
#include <string>

#include <weft/tensor/error.hpp>

namespace weft::kernels {
namespace {

Vectors best_vectors() {
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_avx2 && has_avx512) return Vectors::avx512;
  if (has_avx2) return Vectors::avx2;
#endif
  return Vectors::portable;
}

std::atomic<KernelPath>& current_path() {
  static std::atomic<KernelPath> path = [] {
    const char* words = std::getenv("WEFT_KERNELS");
    return parse_kernel_path(words == nullptr ? "" : words);
  }();
  return path;
}

}  // namespace

KernelPath parse_kernel_path(std::string_view words) {
  const Vectors best = best_vectors();
  KernelPath path{best, best != Vectors::portable};
  while (!words.empty()) {
    const std::size_t end = words.find(',');
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(end == std::string_view::npos ? words.size() : end + 1);
    if (word == "tiles") {
      path.compiles = false;
      continue;
    }
    if (word == "portable") {
      path = {};
    } else if (word == "avx2") {
      path.vectors = Vectors::avx2;
    } else if (word == "avx512") {
      path.vectors = Vectors::avx512;
    } else {
      fail(Errc::invalid_argument,
           "WEFT_KERNELS has the word '{}': expected one or more of tiles, portable, avx2, "
           "avx512, separated by commas",
           word);
    }
    if (path.vectors > best) {
      fail(Errc::invalid_argument,
           "WEFT_KERNELS asks for {}, which this processor doesn't have: unset the variable to "
           "use the best instructions that it has",
           word);
    }
  }
  return path;
}

KernelPath kernel_path() { return current_path().load(std::memory_order_relaxed); }

void set_kernel_path(const KernelPath& path) {
  current_path().store(path, std::memory_order_relaxed);
}

}  // namespace weft::kernels
