#include "tools/weft/plan/machine_limits.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include <fmt/format.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr double kSeconds = 0.008;  // the duration of each try
constexpr double kWarmSeconds = 0.01;
constexpr std::size_t kTries = 4;
/// The least size of the three arrays together.
constexpr std::int64_t kLeastBytes = 32 << 10;
constexpr std::int64_t kMostBytes = 128 << 20;
constexpr std::int64_t kNextSize = 4;
constexpr int kSteps = 4096;  // multiply-adds of a chain in one call
/// The number of chains of multiply-adds that one unrolled loop computes. With so many chains, none
/// has to wait for its own previous step. The chains begin with different numbers, because a
/// compiler would merge equal chains.
constexpr int kChains = 8;

/// The work of a function in one call: multiplications and additions. Their result is used, so that
/// they aren't optimized away.
struct Products {
  float (*run)() = nullptr;
  double flops = 0;
};
using Adder = void (*)(const float*, const float*, float*, std::size_t);

float multiply_add_plain() {
  float sums[8 * kChains];
  for (int i = 0; i < 8 * kChains; ++i) sums[i] = static_cast<float>(i);
  for (int step = 0; step < kSteps; ++step) {
    for (float& sum : sums) sum = sum * 0.75F + 0.25F;
  }
  float all = 0;
  for (const float sum : sums) all += sum;
  return all;
}

void add_plain(const float* a, const float* b, float* sum, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) float multiply_add_512() {
  const __m512 factor = _mm512_set1_ps(0.75F);
  const __m512 term = _mm512_set1_ps(0.25F);
  __m512 sums[kChains];
#pragma GCC unroll 8
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 8
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, term);
  }
  __m512 all = sums[0];
#pragma GCC unroll 8
  for (const __m512& sum : sums) all = _mm512_add_ps(all, sum);
  return _mm512_cvtss_f32(all);
}

__attribute__((target("avx512f,avx512bf16"))) float multiply_add_bf16() {
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f80));
  __m512 sums[kChains];
#pragma GCC unroll 8
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 8
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, ones, ones);
  }
  __m512 all = sums[0];
#pragma GCC unroll 8
  for (const __m512& sum : sums) all = _mm512_add_ps(all, sum);
  return _mm512_cvtss_f32(all);
}

__attribute__((target("avx2,fma"))) float multiply_add_256() {
  const __m256 factor = _mm256_set1_ps(0.75F);
  const __m256 term = _mm256_set1_ps(0.25F);
  __m256 sums[kChains];
#pragma GCC unroll 8
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 8
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, term);
  }
  __m256 all = sums[0];
#pragma GCC unroll 8
  for (const __m256& sum : sums) all = _mm256_add_ps(all, sum);
  return _mm256_cvtss_f32(all);
}

__attribute__((target("avx512f"))) void add_512(const float* a, const float* b, float* sum,
                                                std::size_t count) {
  for (std::size_t i = 0; i + 16 <= count; i += 16) {
    _mm512_storeu_ps(sum + i, _mm512_add_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i)));
  }
}

__attribute__((target("avx2"))) void add_256(const float* a, const float* b, float* sum,
                                             std::size_t count) {
  for (std::size_t i = 0; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(sum + i, _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
  }
}
#endif

double flops_of_call(int lanes) { return 2.0 * lanes * kChains * kSteps; }

Products f32_work() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {multiply_add_512, flops_of_call(16)};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {multiply_add_256, flops_of_call(8)};
  }
#endif
  return {multiply_add_plain, flops_of_call(8)};
}

Products bf16_work() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) return {multiply_add_bf16, flops_of_call(32)};
#endif
  return f32_work();
}

Adder adder() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return add_512;
  if (__builtin_cpu_supports("avx2")) return add_256;
#endif
  return add_plain;
}

/// Returns the number of calls per second. Repeats the call for `seconds`.
template <typename Call>
double rate_of(Call& call, double seconds) {
  const auto begin = SteadyClock::now();
  std::chrono::duration<double> took{0};
  double count = 0;
  do {
    call();
    ++count;
    took = SteadyClock::now() - begin;
  } while (took.count() < seconds);
  return count / took.count();
}

/// Returns the number of calls per second of all threads together, in the best try. In each try,
/// all threads begin at the same time. `make()` returns the function that a thread calls.
template <typename Make>
double calls_per_second(int threads, const Make& make) {
  std::barrier begins(threads);
  std::vector<std::array<double, kTries>> rates(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> workers;
    for (auto& own : rates) {
      workers.emplace_back([&] {
        auto call = make();
        rate_of(call, kWarmSeconds);
        for (double& rate : own) {
          begins.arrive_and_wait();
          rate = rate_of(call, kSeconds);
        }
      });
    }
  }
  double best = 0;
  for (std::size_t i = 0; i < kTries; ++i) {
    double all = 0;
    for (const auto& own : rates) all += own[i];
    best = std::max(best, all);
  }
  return best;
}

double flops_per_second(int threads, const Products& work) {
  std::atomic<float> sink{0};
  const auto make = [&] { return [&] { sink.store(work.run(), std::memory_order_relaxed); }; };
  return calls_per_second(threads, make) * work.flops;
}

double bytes_per_second(int threads, std::int64_t bytes) {
  const std::size_t count = static_cast<std::size_t>(bytes) / 3 / sizeof(float) / 16 * 16;
  const Adder add = adder();
  const auto make = [&] {
    return [=, a = std::vector<float>(count, 1), b = std::vector<float>(count, 2),
            sum = std::vector<float>(count)]() mutable {
      add(a.data(), b.data(), sum.data(), count);
      a[0] = sum[count - 1];
    };
  };
  return calls_per_second(threads, make) * static_cast<double>(3 * sizeof(float) * count);
}

}  // namespace

ChipLimits measure_limits(int chips, int cores, std::int64_t bytes) {
  const int threads = std::clamp(chips, 1, std::max(cores, 1));
  ChipLimits limits{
      .core_share = static_cast<double>(threads) / std::max(chips, 1),
      .from = fmt::format("measured just now on {} threads for {} chips", threads, chips)};
  const auto measure_flops = [&] {
    const auto take = [&](double& limit, const Products& work) {
      limit = std::max(limit, flops_per_second(threads, work) / threads);
    };
    take(limits.f32_flops, f32_work());
    take(limits.bf16_flops, bf16_work());
  };
  measure_flops();
  const std::int64_t most = std::clamp(bytes, kLeastBytes, kMostBytes);
  for (std::int64_t size = kLeastBytes; size <= most; size *= kNextSize) {
    limits.memory.push_back({size, bytes_per_second(threads, size) / threads});
  }
  measure_flops();  // measured again, because other programs may have used the cores the first time
  // Small arrays also fit into the larger caches, so their rate must not be lower than that of
  // larger arrays.
  for (std::size_t i = limits.memory.size() - 1; i > 0; --i) {
    double& smaller = limits.memory[i - 1].bytes_per_s;
    smaller = std::max(smaller, limits.memory[i].bytes_per_s);
  }
  return limits;
}

}  // namespace weft
