/// Counts the allocations in each step of a loop after its first steps, by replacing operator new.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string_view>
#include <vector>

#include "tests/jobs/run_loop.hpp"

namespace weft::allocations_test {
namespace {

// These counters don't include allocations that oneDNN makes.
thread_local std::int64_t of_this_thread = 0;
std::atomic<std::int64_t> of_all_threads = 0;

bool is_onednn(const void* caller) {
  Dl_info info;
  return dladdr(caller, &info) != 0 &&
         std::string_view(info.dli_fname).find("libdnnl") != std::string_view::npos;
}

void count(const void* caller) {
  static thread_local bool counts = false;  // true while counting, because dladdr() may allocate
  if (counts) return;
  counts = true;
  if (!is_onednn(caller)) {
    ++of_this_thread;
    ++of_all_threads;
  }
  counts = false;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment;
  if (void* const block = std::aligned_alloc(alignment, rounded * alignment)) return block;
  throw std::bad_alloc();
}

constexpr int kWarmUp = 32;
constexpr int kSteps = 64;

/// Trains a perceptron of `layers` layers. Reports how many allocations a step makes in the loop's
/// thread (median) and in all other threads (mean).
Loop learns{
    "test.allocations", [](TrainContext& ctx, const Config& config) {
      Module net("net");
      std::vector<std::unique_ptr<Linear>> layers;
      for (int i = 0; i < config.at("layers").get<int>(); ++i) {
        layers.push_back(std::make_unique<Linear>(
            net, "fc" + std::to_string(i), Linear::Options{.in_features = 32, .out_features = 32}));
      }
      AdamW adamw(net.parameters(), {.lr = 1e-3});
      const Tensor x = to_device(std::vector<float>(16 * 32, 0.5F), {16, 32});
      const Tensor y = to_device(std::vector<std::int32_t>(16, 3), {16});
      auto step = compile([&] {
        Tensor h = x;
        for (const auto& layer : layers) h = tanh((*layer)(h));
        const Tensor loss = cross_entropy(h, y);
        adamw.step(grad(loss, net.parameters()));
        return loss;
      });
      std::vector<std::int64_t> own(kSteps);
      for (int i = 0; i < kWarmUp; ++i) step().item();
      const std::int64_t own_before = of_this_thread;
      const std::int64_t all_before = of_all_threads;
      for (std::int64_t& count : own) {
        const std::int64_t before = of_this_thread;
        step().item();
        count = of_this_thread - before;
      }
      const std::int64_t others = of_all_threads - all_before - (of_this_thread - own_before);
      std::ranges::nth_element(own, own.begin() + kSteps / 2);
      ctx.report({{"loop", own[kSteps / 2]}, {"others", double(others) / kSteps}});
    }};

Metrics allocations_of(int layers) {
  const Result result = testing::run_loop(
      learns, 0, {{"layers", layers}}, [](TrainerOptions& to) { to.scaling.chips_per_worker = 1; });
  testing::expect_ok(result);
  return result.metrics;
}

// A compiled step sends one request to its chip and allocates only the request's objects. Their
// number doesn't depend on the model. The chip's thread allocates nothing.
TEST(Allocations, OfACompiledStepDoNotGrowWithTheModel) {
  const Metrics shallow = allocations_of(1);
  const Metrics deep = allocations_of(8);
  EXPECT_EQ(shallow.at("loop"), deep.at("loop"));
  EXPECT_LE(deep.at("loop"), 16);
  // The trainer gets a message for each lease, but a lease allows several steps.
  EXPECT_LT(shallow.at("others"), 1);
  EXPECT_LT(deep.at("others"), 1);
}

}  // namespace
}  // namespace weft::allocations_test

void* operator new(std::size_t bytes) {
  weft::allocations_test::count(__builtin_return_address(0));
  return weft::allocations_test::allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  weft::allocations_test::count(__builtin_return_address(0));
  return weft::allocations_test::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }
