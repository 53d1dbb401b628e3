/// Compares convolutions, their gradients and products of random shapes in bf16 and f16 with plain
/// loops in f64. All values are small whole numbers, so sums are exact in any order and each result
/// is rounded once. For some shapes oneDNN's kernels for bf16 give wrong results without an error
/// (decision 0056). WEFT_TEST_TIMES=100 tries a hundred times as many shapes.

#include <algorithm>
#include <array>
#include <numeric>

#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "chips/cpu/kernels/convolution.hpp"
#include "spmd/grad/grad.hpp"
#include "spmd/program/element.hpp"
#include "tests/property/seeds.hpp"
#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

namespace weft::kernels::half_products_test {
namespace {

constexpr std::array kFloats{DType::bf16, DType::bf16, DType::f16, DType::f32};

/// Returns a number of features: small, odd, or one that fills a register or almost fills it.
int any_features(std::mt19937& random) {
  constexpr std::array kSizes{1,  1,  2,  2,  3,  3,  4,  5,  6,  7,  8,  9,
                              12, 15, 16, 16, 17, 24, 31, 32, 33, 48, 64, 65};
  return kSizes[static_cast<std::size_t>(random_int(random, 0, int{kSizes.size()} - 1))];
}

/// Adds an input without zeros, so that a missing term always changes the sum.
ValueId any_input(KernelCase& test, std::mt19937& random, DType dtype, const Shape& shape) {
  constexpr std::array kValues{-2.0, -1.0, 1.0, 2.0};
  Elements elements(static_cast<std::size_t>(shape.num_elements()));
  for (double& element : elements) {
    element = kValues[static_cast<std::size_t>(random_int(random, 0, 3))];
  }
  return test.input({dtype, shape}, elements);
}

struct Layer {
  Shape x, w;
  Convolution attrs;
};

/// Returns the size and the window of a kernel that fits a dim of `input` elements.
std::pair<int, WindowDim> any_window(std::mt19937& random, int input, bool is_point) {
  WindowDim window;
  if (random_int(random, 0, 1) == 0) window.stride = random_int(random, 2, 4);
  if (random_int(random, 0, 3) == 0) window.dilation = random_int(random, 2, 3);
  int kernel = is_point ? 1 : random_int(random, 1, random_int(random, 0, 5) == 0 ? 9 : 4);
  if (!is_point && random_int(random, 0, 1) == 0) {
    const auto span = static_cast<int>(dilated(kernel, window.dilation));
    window.low = random_int(random, 0, span + 1);
    window.high = random_int(random, 0, 1) == 0 ? window.low : random_int(random, 0, span + 1);
  }
  while (window.low + input + window.high < dilated(kernel, window.dilation)) --kernel;
  return {kernel, window};
}

/// Reduces the features of large images, so that the plain loops don't take long.
void limit_terms(std::int64_t& input, std::int64_t& output, double others) {
  constexpr double kTermsMax = 1e6;
  while (others * static_cast<double>(input * output) > kTermsMax && input * output > 1) {
    std::int64_t& larger = input > output ? input : output;
    larger = larger > 3 ? larger / 2 : larger - 1;
  }
}

/// Returns a random layer. Its features are the first or last dims, as in a program or after the
/// pass channels_last().
Layer any_layer(std::mt19937& random) {
  constexpr std::array kSpatial{1, 2, 2, 2, 2, 3};
  const int spatial = kSpatial[static_cast<std::size_t>(random_int(random, 0, 5))];
  const bool is_point = random_int(random, 0, 3) == 0;
  const int groups = std::max(1, random_int(random, -8, 4));
  const bool last = groups == 1 && random_int(random, 0, 1) == 0;
  const int batch = random_int(random, 1, 4);
  const int most = spatial == 3 ? 6 : 14;
  Layer layer;
  std::vector<std::int64_t> pixels;
  std::vector<std::int64_t> kernels;
  double terms = batch * groups;
  for (int i = 0; i < spatial; ++i) {
    const bool large = random_int(random, 0, 4) == 0;
    pixels.push_back(random_int(random, 1, large ? 3 * most : most));
    const auto [kernel, window] = any_window(random, static_cast<int>(pixels.back()), is_point);
    kernels.push_back(kernel);
    layer.attrs.window.push_back(window);
    terms *= static_cast<double>(pixels.back() * kernel);
  }
  std::int64_t input = any_features(random);
  std::int64_t output = any_features(random);
  limit_terms(input, output, terms);
  std::vector<std::int64_t> x{batch};
  std::vector<std::int64_t> w{output, input};
  x.insert(x.end(), pixels.begin(), pixels.end());
  x.insert(last ? x.end() : x.begin() + 1, input);
  w.insert(w.end(), kernels.begin(), kernels.end());
  Convolution& c = layer.attrs;
  c.rhs = {1, 0};
  c.lhs = {0, last ? spatial + 1 : 1};
  for (int i = 0; i < spatial; ++i) {
    c.rhs.push_back(2 + i);
    c.lhs.push_back(last ? 1 + i : 2 + i);
  }
  if (groups > 1) {
    c.group = {1, 0, 1};
    for (std::size_t i = 1; i < c.lhs.size(); ++i) ++c.lhs[i];
    for (std::int64_t& dim : c.rhs) ++dim;
    x.insert(x.begin() + 1, groups);
    w.insert(w.begin(), groups);
  }
  c.result = c.lhs;
  layer.x = Shape(x);
  layer.w = Shape(w);
  return layer;
}

/// Adds y = x * w and the gradients of sum(y * t), which is linear in x and in w, so that all
/// results are whole numbers.
void make_layer(KernelCase& test, const Layer& layer, std::mt19937& random, DType dtype) {
  Builder& b = test.build;
  const ValueId x = any_input(test, random, dtype, layer.x);
  const ValueId w = any_input(test, random, dtype, layer.w);
  const ValueId y = b.convolution(x, w, layer.attrs);
  const Shape shape = test.program.shape(y);
  const ValueId t = any_input(test, random, dtype, shape);
  std::vector<std::int64_t> all(static_cast<std::size_t>(shape.size()));
  std::iota(all.begin(), all.end(), 0);
  const ValueId loss = b.reduce(ReduceKind::add, b.binary(OpKind::multiply, y, t), all);
  test.output(y);
  for (const ValueId g : grad(b, loss, std::vector{x, w})) test.output(g);
}

double rounded(DType dtype, double value) {
  std::array<std::byte, 8> bytes{};
  store_element(dtype, value, bytes.data());
  return load_element(dtype, bytes.data());
}

/// Compares a case in `dtype` with the same case in f64; `make` adds the ops to both.
void expect_exact_sums(DType dtype, const auto& make) {
  KernelCase exact;
  make(exact, DType::f64);
  KernelCase test;
  make(test, dtype);
  const std::vector<Elements> expected = run_kernels(exact);
  const std::vector<Elements> actual = run_kernels(test);
  for (std::size_t output = 0; output < expected.size(); ++output) {
    for (std::size_t i = 0; i < expected[output].size(); ++i) {
      ASSERT_EQ(actual[output][i], rounded(dtype, expected[output][i]))
          << "element " << i << " of output " << output;
    }
  }
}

void expect_exact_layer(const Layer& layer, std::uint64_t seed, DType dtype) {
  SCOPED_TRACE(fmt::format("{}: x {} w {} attributes {}", to_string(dtype), layer.x.to_string(),
                           layer.w.to_string(), fmt::join(to_attrs(layer.attrs), ",")));
  expect_exact_sums(dtype, [&](KernelCase& test, DType type) {
    std::mt19937 random(static_cast<unsigned>(seed));
    make_layer(test, layer, random, type);
  });
}

TEST(HalfProducts, ConvolutionsAndTheirGradientsAreExact) {
  for (const std::uint64_t seed : testing::seeds(300)) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(static_cast<unsigned>(seed));
    const Layer layer = any_layer(random);
    expect_exact_layer(layer, seed, kFloats[seed % kFloats.size()]);
    if (HasFatalFailure()) return;
  }
}

/// Returns a layer with two spatial dims.
Layer layer_of(const Shape& x, const Shape& w, const WindowDim& rows, const WindowDim& columns,
               bool last) {
  Layer layer{x,
              w,
              {.lhs = {0, 1, 2, 3},
               .rhs = {1, 0, 2, 3},
               .result = {0, 1, 2, 3},
               .window = {rows, columns}}};
  if (last) {
    layer.x = {x[0], x[2], x[3], x[1]};
    layer.attrs.lhs = layer.attrs.result = {0, 3, 1, 2};
  }
  return layer;
}

TEST(HalfProducts, PointKernelsWithStridesAndFewFeaturesAreExact) {
  for (const bool last : {false, true}) {
    for (const auto& [rows, columns] :
         std::vector<std::pair<int, int>>{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {3, 2}}) {
      for (const auto& [input, output] : std::vector<std::pair<int, int>>{
               {3, 3}, {1, 2}, {2, 2}, {4, 1}, {16, 3}, {1, 7}, {12, 96}, {16, 32}}) {
        for (const auto& [height, width] :
             std::vector<std::pair<int, int>>{{2, 4}, {4, 3}, {6, 10}, {8, 4}, {12, 12}, {3, 14}}) {
          for (const DType dtype : {DType::f32, DType::bf16}) {
            expect_exact_layer(layer_of({2, input, height, width}, {output, input, 1, 1},
                                        {.stride = rows}, {.stride = columns}, last),
                               1, dtype);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(HalfProducts, TapsThatMeetOnlyPaddingHaveNoGradient) {
  const std::vector<std::array<WindowDim, 2>> windows{
      {WindowDim{.stride = 2, .low = 1, .high = 1}, {.stride = 3, .low = 1, .high = 1}},
      {WindowDim{.stride = 3, .low = 1, .high = 1}, {.stride = 3, .high = 1}},
      {WindowDim{.stride = 4, .high = 2}, {.low = 2, .high = 2}},
      {WindowDim{.low = 3, .high = 3}, {.stride = 2, .low = 3}}};
  for (const bool last : {false, true}) {
    for (const auto& [rows, columns] : windows) {
      for (const int input : {1, 2, 16, 24}) {
        for (const int output : {1, 3, 16, 40}) {
          expect_exact_layer(layer_of({2, input, 3, 2}, {output, input, 3, 2}, rows, columns, last),
                             1, DType::bf16);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(HalfProducts, ThreeDimsWithMuchPaddingHaveExactGradients) {
  const Layer layer{{3, 4, 10, 6, 2},
                    {16, 2, 4, 2, 3},
                    {.lhs = {0, 4, 1, 2, 3},
                     .rhs = {1, 0, 2, 3, 4},
                     .result = {0, 4, 1, 2, 3},
                     .window = {{.stride = 2, .low = 3, .high = 3},
                                {.low = 1, .high = 1, .dilation = 2},
                                {.low = 1, .high = 1, .dilation = 3}}}};
  for (const DType dtype : kFloats) expect_exact_layer(layer, 1, dtype);
}

/// Adds a product of operands whose dims are in random order, so that batch dims may be between the
/// rows and the columns.
void make_product(KernelCase& test, std::mt19937& random, DType dtype) {
  const auto size = [&] {
    return random_int(random, 1,
                      std::array{3, 20, 70}[static_cast<std::size_t>(random_int(random, 0, 2))]);
  };
  const std::array batch{random_int(random, 1, 4), random_int(random, 1, 3)};
  const std::array m{size(), random_int(random, 0, 3) == 0 ? 2 : 1};
  const std::array n{size(), random_int(random, 0, 3) == 0 ? 2 : 1};
  const int k = size();
  const auto operand = [&](const std::array<int, 2>& free, DimList& batch_dims, DimList& summed) {
    const std::array<int, 5> sizes{batch[0], batch[1], k, free[0], free[1]};
    std::array<std::int64_t, 5> order{0, 1, 2, 3, 4};
    std::ranges::shuffle(order, random);
    std::vector<std::int64_t> shape(5);
    for (std::size_t i = 0; i < 5; ++i) shape[static_cast<std::size_t>(order[i])] = sizes[i];
    batch_dims = {order[0], order[1]};
    summed = {order[2]};
    return any_input(test, random, dtype, Shape(shape));
  };
  Builder::DotDims dims;
  const ValueId lhs = operand(m, dims.lhs_batch, dims.lhs_contracting);
  const ValueId rhs = operand(n, dims.rhs_batch, dims.rhs_contracting);
  test.output(test.build.dot_general(lhs, rhs, dims));
}

TEST(HalfProducts, ProductsAreExact) {
  for (const std::uint64_t seed : testing::seeds(400)) {
    const DType dtype = kFloats[seed % kFloats.size()];
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(dtype)));
    expect_exact_sums(dtype, [&](KernelCase& test, DType type) {
      std::mt19937 random(static_cast<unsigned>(seed));
      make_product(test, random, type);
    });
    if (HasFatalFailure()) return;
  }
}

TEST(HalfProducts, RowsWhoseElementsLieApartAreExact) {
  // The batch is lhs's last dim, so consecutive elements of a row are b elements apart.
  for (const DType dtype : kFloats) {
    for (const int k : {2, 5, 33}) {
      for (const int n : {1, 4, 21}) {
        expect_exact_sums(dtype, [&](KernelCase& test, DType type) {
          std::mt19937 random(3);
          const ValueId lhs = any_input(test, random, type, {k, 3});
          const ValueId rhs = any_input(test, random, type, {3, k, n});
          test.output(test.build.dot_general(lhs, rhs, {{1}, {0}, {0}, {1}}));
        });
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace weft::kernels::half_products_test
