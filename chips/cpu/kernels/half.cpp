#include "chips/cpu/kernels/half.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <weft/tensor/element.hpp>

#include "chips/cpu/loops/element.hpp"
#include "transport/reduce/f16c.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft::kernels {

#if defined(__x86_64__)
namespace {

[[gnu::target("avx,f16c")]] void widen(const F16* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const auto* halves = reinterpret_cast<const __m128i*>(from + i);
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(halves)));
  }
  for (; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

[[gnu::target("avx,f16c")]] void narrow(const float* from, F16* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
  }
  for (; i < count; ++i) to[i] = F16(from[i]);
}

}  // namespace

Kernel convert_by_f16c(std::int64_t size, DType from, DType to) {
  if (!has_f16c()) return {};
  if (from == DType::f16 && to == DType::f32) {
    return {[size](const KernelArgs& args) {
      widen(as<F16>(args.operands[0]), as<float>(args.result), std::min(size, args.count_max));
    }};
  }
  if (from == DType::f32 && to == DType::f16) {
    return {[size](const KernelArgs& args) {
      narrow(as<float>(args.operands[0]), as<F16>(args.result), std::min(size, args.count_max));
    }};
  }
  return {};
}

Kernel by_f32_blocks(std::int64_t size, std::size_t num_operands, bool rounds, Kernel of_f32) {
  if (!has_f16c()) return {};
  return {[=, run = std::move(of_f32.run)](const KernelArgs& args) {
    constexpr std::int64_t kBlock = 512;  // 6 KiB with two operands and the result
    using Block = std::array<float, kBlock>;
    alignas(64) std::array<Block, 2> operands;
    alignas(64) Block result;
    const std::int64_t count = std::min(size, args.count_max);
    for (std::int64_t first = 0; first < count; first += kBlock) {
      const std::int64_t part = std::min(kBlock, count - first);
      KernelArgs block{.count_max = part};
      for (std::size_t k = 0; k < num_operands; ++k) {
        widen(as<F16>(args.operands[k]) + first, operands[k].data(), part);
        block.operands[k] = reinterpret_cast<const std::byte*>(operands[k].data());
      }
      block.result = rounds ? reinterpret_cast<std::byte*>(result.data()) : args.result + first;
      run(block);
      if (rounds) narrow(result.data(), as<F16>(args.result) + first, part);
    }
  }};
}

#else

Kernel convert_by_f16c(std::int64_t, DType, DType) { return {}; }
Kernel by_f32_blocks(std::int64_t, std::size_t, bool, Kernel) { return {}; }

#endif

}  // namespace weft::kernels
