#pragma once
/// Compiles a kernel's loop for several generations of processors, and chooses one at run time.

#include <algorithm>
#include <string_view>
#include <utility>

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// The vector instructions that kernels may use. avx2 and avx512 include fused multiply-add.
enum class Vectors : std::uint8_t { portable, avx2, avx512 };

/// Says how kernels run. All paths give bitwise the same results, and each path is tested against a
/// simpler path. The only exception is attention of bf16, whose bits differ where AVX-512
/// multiplies bf16 directly (decision 0050).
struct KernelPath {
  Vectors vectors = Vectors::portable;
  bool compiles = false;  ///< loops over elementwise ops are compiled when a plan is loaded
  friend bool operator==(const KernelPath&, const KernelPath&) = default;
};

/// Returns the path that WEFT_KERNELS names, or else the best one for this processor. The variable
/// lists `tiles` (don't compile loops) and one of `portable`, `avx2`, `avx512`. Throws
/// invalid_argument for other words, and for vectors that this processor doesn't have.
KernelPath kernel_path();
KernelPath parse_kernel_path(std::string_view words);
/// Sets the path for all kernels that this process prepares from now on.
void set_kernel_path(const KernelPath& path);

#if defined(__x86_64__)
/// Call `body`, compiled with everything that it calls for AVX2 or AVX-512. The compiler doesn't
/// fuse multiplications and additions, so all processors give bitwise the same results.
template <typename Body>
[[gnu::target("avx2,fma"), gnu::flatten]] void run_avx2(const Body& body, const KernelArgs& args) {
  body(args);
}
template <typename Body>
[[gnu::target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"),
  gnu::flatten]] void
run_avx512(const Body& body, const KernelArgs& args) {
  body(args);
}
/// Calls `body`, compiled for AVX-512 BF16. Direct products of bf16 have other bits than products
/// in f32.
template <typename Body>
[[gnu::target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512"),
  gnu::flatten]] void
run_avx512_bf16(const Body& body, const KernelArgs& args) {
  body(args);
}
#endif

/// Returns the kernel that runs `body(args)`, compiled for the vectors of kernel_path() or for
/// `most`, whichever are smaller. (AVX2 is faster than AVX-512 for sums of short runs, and for
/// loops that skip elements, for which the compiler emits gathers with AVX-512.)
template <Vectors most = Vectors::avx512, typename Body>
Kernel vectorized(Body body) {
  // One function object is used for all versions, because each std::function would take longer to
  // compile than its loop.
  void (*run)(const Body&, const KernelArgs&) = [](const Body& each, const KernelArgs& args) {
    each(args);
  };
#if defined(__x86_64__)
  const Vectors vectors = std::min(kernel_path().vectors, most);
  if constexpr (most >= Vectors::avx2) {
    if (vectors == Vectors::avx2) run = run_avx2<Body>;
  }
  if constexpr (most >= Vectors::avx512) {
    if (vectors == Vectors::avx512) run = run_avx512<Body>;
  }
#endif
  return {[body = std::move(body), run](const KernelArgs& args) { run(body, args); }};
}

/// Returns the kernel that runs `body.run<bytes>(args)`, where `bytes` is the size of the vectors
/// of kernel_path() or of `most`, whichever is smaller.
template <Vectors most = Vectors::avx512, typename Body>
Kernel vectorized_by_size(Body body) {
#if defined(__x86_64__)
  switch (std::min(kernel_path().vectors, most)) {
    case Vectors::avx512:
      if constexpr (most == Vectors::avx512) {
        return {[body](const KernelArgs& args) {
          run_avx512([&body](const KernelArgs& each) { body.template run<64>(each); }, args);
        }};
      }
    case Vectors::avx2:
      return {[body](const KernelArgs& args) {
        run_avx2([&body](const KernelArgs& each) { body.template run<32>(each); }, args);
      }};
    case Vectors::portable: break;
  }
#endif
  return {[body](const KernelArgs& args) { body.template run<16>(args); }};
}

}  // namespace weft::kernels
