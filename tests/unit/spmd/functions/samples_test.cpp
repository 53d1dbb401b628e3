/// Compares every op on small inputs with torch, as torch's OpInfo tests do
/// (tests/golden/torch/samples.py): shapes with 0 and 1, scalars, views, and every dtype that both
/// have. edges.py adds numbers at which functions change. docs/torch_differences.md lists the
/// samples that differ; GOLDEN_UPDATE=1 rewrites that page, and WEFT_TEST_SHOW=1 prints those
/// samples.

#include <cstdlib>
#include <map>
#include <regex>

#include <gtest/gtest.h>

#include "tests/support/golden.hpp"
#include "tests/support/interpret_runtime.hpp"
#include "tests/support/torch_samples.hpp"

namespace weft::samples_test {
namespace {

using testing::InterpretRuntime;
using testing::Json;

// The functions below make the page docs/torch_differences.md.

/// Returns the message without types, numbers and places, which vary between samples of one cause.
std::string reason_of(const std::string& message) {
  const std::string found = message.substr(0, message.find(" (at "));
  if (found.find("differs: ") != found.npos) return found.substr(0, found.find(": "));
  static const std::regex kTypes("(f32|f64|f16|bf16|i32|i64|i8|u8|pred)?\\[[^\\]]*\\]");
  return std::regex_replace(found, kTypes, "x");
}

/// The number of samples that differ, by op and reason.
using LeftOut = std::map<std::pair<std::string, std::string>, int>;

std::string page(const LeftOut& left_out, std::size_t agreed, std::size_t count) {
  std::string text = fmt::format(
      R"(# Where weft differs from torch

`unit_tensor` runs {} small samples of ops of torch 2.15, forward and backward, and prints this
page: {} agree. The samples have scalars, shapes with 0 and 1, transposed and strided views, every
dtype that weft and torch both have, NaN, infinities, kinks, ties, and the largest and smallest
integers.

The samples have no complex numbers and no integers of 16 bits, because weft has no such dtypes.
Counts, indices, and sums and products of i8, u8 and i32 are i32 in weft, and i64 in torch; weft
also accepts i64 indices and labels. weft refuses operands of two dtypes, while torch promotes one
of them. If a cast to an integer dtype can't represent the number, weft gives the nearest number
that the dtype has (300 as u8 is 255). torch gives the remaining bits, or its result is undefined.
Arithmetic wraps around in both.

| op | samples | what weft says |
| --- | --- | --- |
)",
      count, agreed);
  for (const auto& [what, samples] : left_out) {
    text += fmt::format("| {} | {} | {} |\n", what.first, samples, what.second);
  }
  return text + R"(
- A mean over no elements is NaN in torch. A batch without rows is a mistake in the input, so weft
  refuses it.
- pred has no arithmetic: use a cast to choose whether `+` means "or" or a count.
- any and all of u8 are pred in weft. In torch they are u8, as they were before torch had bool.
- NaN: the sign of NaN is NaN in weft (torch: 0), and so are the gradients of abs and l1_loss there.
  In torch the gradient of a function with kinks depends on how the comparison in its kernel treats
  a NaN: at NaN it is 1 for hardswish, and 0 for clamp, hardtanh, relu6, hardsigmoid, hardshrink
  and softshrink. In weft it is the value of the formula: NaN for hardswish, and the incoming
  gradient, or a part of it, for the others. The gradients of celu and selu are those of torch,
  except in f64, where torch has NaN. The elements that are NaN share the gradient of amax and amin,
  as in torch.max without dim; torch.amax makes all of it NaN.
- In torch, a gradient of hardsigmoid in f64 has 1/6 in the precision of f32.
- gelu of infinity is infinity (torch: NaN). pow(-infinity, 0.5) is infinity, as in C (torch: NaN).
- The gradients of cumprod and prod are products of the other elements. torch divides by the
  element, which gives NaN if the element is infinite: for cumprod([inf, 1]) weft's gradient is
  [2, inf].
- The gradient of fmod and remainder by the divisor is NaN where their value is NaN. A clamp to a
  NaN is refused.
- binary_cross_entropy of 0 or 1 has no gradient where the logarithm is cut off at -100; torch has
  (x - y) / 1e-12. binary_cross_entropy_with_logits is exact in both.
- An integer divided by 0 is -1 (floor_divide: -1 or -2), and the remainder is the dividend; torch
  throws.
- A mean, a loss, a norm, a variance and an average pool of bf16 and f16 are computed in f32 and
  rounded once. So is a sum, on any number of chips.
)";
}

TEST(Samples, AgreeWithTorch) {
  std::size_t count = 0;
  std::size_t agreed = 0;
  LeftOut left_out;
  for (const char* name : {"samples", "edges.json"}) {
    for (const Json& sample : testing::torch_samples(name)) {
      InterpretRuntime runtime;
      const RuntimeScope scope(runtime);
      const std::string found = testing::disagreement(sample);
      ++count;
      agreed += found.empty() ? 1 : 0;
      if (found.empty()) continue;
      ++left_out[{sample.at("op"), reason_of(found)}];
      if (std::getenv("WEFT_TEST_SHOW") != nullptr) fmt::print("{}\n{}\n", sample.dump(), found);
    }
  }
  EXPECT_GT(count, 10500U);
  EXPECT_GE(static_cast<double>(agreed), 0.95 * static_cast<double>(count));
  testing::expect_golden("../../docs/torch_differences.md", page(left_out, agreed, count));
}

}  // namespace
}  // namespace weft::samples_test
