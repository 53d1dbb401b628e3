#include <gtest/gtest.h>

#include <array>
#include <limits>

#include <weft/nn/transforms.hpp>
#include <weft/ops/convolution.hpp>
#include <weft/ops/interpolate.hpp>
#include <weft/ops/products.hpp>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::products_test {
namespace {

using testing::expect_refusal;
using testing::f32;
using testing::i32;
using Floats = std::vector<float>;

class Products : public testing::TensorTest {};

TEST_F(Products, OfIntegersAreExact) {
  const Tensor a = i32({1, 2, 3, 1 << 24 | 1}, {2, 2});
  const Tensor y = matmul(a, i32({1, 1}, {2}));
  EXPECT_EQ(y.type(), (TensorType{DType::i32, {2}}));
  const Tensor wanted = i32({3, (1 << 24 | 1) + 3}, {2});
  EXPECT_EQ(sum(cast(equal(y, wanted), DType::i32)).item(), 2);
}

TEST_F(Products, OfNoElementsAreZeros) {
  EXPECT_EQ(matmul(full({2, 0}, 1), full({0, 3}, 1)).to_vector(), Floats(6, 0));
  EXPECT_EQ(prod(full({0, 2}, 3), {0}).to_vector(), (Floats{1, 1}));
  EXPECT_EQ(prod(full({0, 2}, 3), {1}).to_vector(), Floats{});
  EXPECT_EQ(prod(full({0, 0}, 3), {0}, true).shape(), (Shape{1, 0}));
}

TEST_F(Products, RefuseOperandsThatDoNotFit) {
  const Tensor a = f32({1, 2, 3, 4, 5, 6}, {2, 3});
  expect_refusal({"matmul: f32[2,3] and f32[2,3]", "leading dims that broadcast"},
                 [&](int& line) { line = __LINE__, matmul(a, a); });
  expect_refusal({"matmul: f32[] ", "is a scalar"},
                 [&](int& line) { line = __LINE__, matmul(full({}, 1), a); });
  expect_refusal({"einsum: ", "2 operands, but 1 are given"},
                 [&](int& line) { line = __LINE__, einsum("ij,jk", {a}); });
  expect_refusal({"einsum: \"ijk\"", "f32[2,3]"},
                 [&](int& line) { line = __LINE__, einsum("ijk->i", {a}); });
  expect_refusal({"einsum: the result \"ik\" of \"ij->ik\""},
                 [&](int& line) { line = __LINE__, einsum("ij->ik", {a}); });
  expect_refusal({"einsum: 'j' has size 3 in one operand and 2 in another"}, [&](int& line) {
    line = __LINE__, einsum("ij,jk->ik", {a, a});
  });
  expect_refusal({"einsum: 'i' has sizes 2 and 3 in one operand"},
                 [&](int& line) { line = __LINE__, einsum("ii", {a}); });
  expect_refusal({"einsum: '1' in \"i1\""},
                 [&](int& line) { line = __LINE__, einsum("i1->i", {a}); });
}

TEST_F(Products, RefuseCotangentsThatDoNotFit) {
  const std::array<Tensor, 1> x{f32({1, 2}, {2})};
  const std::array<Tensor, 1> y{x[0] * x[0]};
  const std::array<Tensor, 1> scalar{full({}, 1)};
  expect_refusal({"vjp: cotangents[0] is f32[], but outputs[0] is f32[2]"},
                 [&](int& line) { line = __LINE__, vjp(y, scalar, x); });
  expect_refusal({"jvp: tangents[0] is f32[], but wrt[0] is f32[2]"},
                 [&](int& line) { line = __LINE__, jvp(y, x, scalar); });
  expect_refusal({"vjp: 0 cotangents are given for 1 outputs"},
                 [&](int& line) { line = __LINE__, vjp(y, {}, x); });
}

TEST_F(Products, RefuseOutputsThatWereComputedAlready) {
  const std::array<Tensor, 1> x{f32({1, 2}, {2})};
  const std::array<Tensor, 1> y{x[0] * x[0]};
  EXPECT_EQ(vjp(x, x, x)[0].to_vector(), (Floats{1, 2}));
  sync();
  expect_refusal({"vjp: the output f32[2] isn't being recorded"},
                 [&](int& line) { line = __LINE__, vjp(y, x, x); });
}

TEST_F(Products, PoolsStayInTheirDtypeUnderAutocast) {
  const Tensor x = full({1, 2, 7}, 1);
  for (const std::int64_t size : {1, 3}) {
    const Tensor y = autocast(DType::bf16, [&] { return adaptive_avg_pool1d(x, size); });
    EXPECT_EQ(y.type(), (TensorType{DType::f32, {1, 2, size}}));
  }
}

TEST_F(Products, RefuseWindowsAndSizesThatDoNotFit) {
  const Tensor x = full({1, 2, 4}, 1);
  const Tensor weight = full({2, 3, 2}, 1);
  expect_refusal(
      {"conv_transpose1d: output_padding = 1", "stride 1 or dilation 1"},
      [&](int& line) { line = __LINE__, conv_transpose1d(x, weight, {}, {.output_padding = 1}); });
  expect_refusal({"conv_transpose1d: padding = 3 removes the whole result of"}, [&](int& line) {
    line = __LINE__, conv_transpose1d(x, weight, {}, {.padding = 3});
  });
  expect_refusal({"conv_transpose1d: ", "[C,O/2,kernel..]", "C a multiple of 2"}, [&](int& line) {
    line = __LINE__, conv_transpose1d(full({1, 3, 4}, 1), weight, {}, {.groups = 2});
  });
  expect_refusal({"adaptive_avg_pool1d: output_size = {0}", "1 to 2^20"},
                 [&](int& line) { line = __LINE__, adaptive_avg_pool1d(x, 0); });
  expect_refusal(
      {"interpolate: size = {2}, scale_factor = {2}", "only one of the two"},
      [&](int& line) { line = __LINE__, interpolate(x, {.size = {2}, .scale_factor = {2}}); });
  expect_refusal({"interpolate: align_corners is set"}, [&](int& line) {
    line = __LINE__, interpolate(x, {.size = {2}, .align_corners = true});
  });
  expect_refusal({"interpolate: size = {}, scale_factor = {0.1}", "dim 2"},
                 [&](int& line) { line = __LINE__, interpolate(x, {.scale_factor = {0.1}}); });
}

}  // namespace
}  // namespace weft::products_test
