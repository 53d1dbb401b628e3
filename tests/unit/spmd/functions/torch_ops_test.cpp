/// Compares functions of tensors with torch.

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weft/nn/functional.hpp>
#include <weft/ops/along_dim.hpp>

#include "tests/support/torch_ops.hpp"

namespace weft::torch_ops_test {
namespace {

using testing::OpCase;
using testing::Operands;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

OpCase of_x(const std::string& name, Tensor (*function)(const Tensor& x)) {
  return {name, [function](Operands& of, const Tensor&) { return function(of["x"]); }};
}
OpCase of_a_b(const std::string& name, Tensor (*function)(const Tensor& a, const Tensor& b)) {
  return {name, [function](Operands& of, const Tensor&) { return function(of["a"], of["b"]); }};
}

Tensor cat_reversed(std::vector<Tensor> parts, int dim) {
  return cat({parts.rbegin(), parts.rend()}, dim);
}

using X = const Tensor&;

std::vector<OpCase> cases() {
  return {
      of_x("tan", [](X x) { return tan(x); }),
      of_x("log1p", [](X x) { return log1p(x); }),
      of_x("expm1", [](X x) { return expm1(x); }),
      of_x("remainder_by_a_number", [](X x) { return remainder(x, -1.5); }),
      of_x("stddev_of_equals", [](X x) { return stddev(x); }),
      of_x("elu_of_zeros", [](X x) { return elu(x); }),
      of_x("clamp_between_nothing", [](X x) { return clamp(x, 3, 1); }),
      of_x("norm_of_roots", [](X x) { return norm(x, 0.5, {1}); }),
      of_x("hardsigmoid_at_its_ends", [](X x) { return hardsigmoid(x); }),
      of_x("tril_of_all", [](X x) { return tril(x, std::int64_t{1} << 40); }),
      of_x("erf", [](X x) { return erf(x); }),
      of_x("sign", [](X x) { return sign(x); }),
      of_x("floor", [](X x) { return floor(x); }),
      of_x("ceil", [](X x) { return ceil(x); }),
      of_x("round", [](X x) { return round(x); }),
      of_x("clamp", [](X x) { return clamp(x, -0.5, 0.75); }),
      of_x("clamp_min", [](X x) { return clamp(x, 0.25); }),
      of_x("clamp_max", [](X x) { return clamp(x, {}, 0.25); }),
      of_x("clamp_at_its_bounds", [](X x) { return clamp(x, -1, 1); }),
      of_x("masked_fill", [](X x) { return masked_fill(x * x, greater(x, 0.0), 7.0); }),
      of_x("stop_gradient", [](X x) { return stop_gradient(x) * x; }),
      of_x("gelu_exact", [](X x) { return gelu(x); }),
      of_x("leaky_relu", [](X x) { return leaky_relu(x, 0.1); }),
      of_x("elu", [](X x) { return elu(x, 1.5); }),
      of_x("mish", [](X x) { return mish(x); }),
      of_x("hardsigmoid", [](X x) { return hardsigmoid(x); }),
      of_x("hardswish", [](X x) { return hardswish(x); }),
      of_x("amin", [](X x) { return amin(x); }),
      of_x("amin_dim", [](X x) { return amin(x, {1}, true); }),
      of_x("var", [](X x) { return var(x); }),
      of_x("var_dim", [](X x) { return var(x, {0}, 0, true); }),
      of_x("stddev", [](X x) { return stddev(x); }),
      of_x("stddev_dim", [](X x) { return stddev(x, {1}); }),
      of_x("norm", [](X x) { return norm(x); }),
      of_x("norm_dim", [](X x) { return norm(x, 2, {1}, true); }),
      of_x("norm_1", [](X x) { return norm(x, 1, {0}); }),
      of_x("norm_3", [](X x) { return norm(x, 3, {0}); }),
      of_x("norm_infinity", [](X x) { return norm(x, kInfinity, {0}); }),
      of_x("norm_minus_infinity", [](X x) { return norm(x, -kInfinity, {0}); }),
      of_x("norm_of_zeros", [](X x) { return norm(x, 2, {0}); }),
      of_x("logsumexp", [](X x) { return logsumexp(x); }),
      of_x("logsumexp_dim", [](X x) { return logsumexp(x, {0}, true); }),
      of_x("unsqueeze", [](X x) { return unsqueeze(x, -1); }),
      of_x("flatten", [](X x) { return flatten(x); }),
      of_x("squeeze", [](X x) { return squeeze(x); }),
      of_x("squeeze_dim", [](X x) { return squeeze(x, 2); }),
      of_x("flatten_dims", [](X x) { return flatten(x, 1, 2); }),
      of_x("split", [](X x) { return cat_reversed(split(x, 4, 1), 1); }),
      of_x("split_sizes",
           [](X x) {
             return cat_reversed(split(x, {1, 0, 3, 2}, 1), 1);
           }),
      of_x("chunk", [](X x) { return cat_reversed(chunk(x, 3), 0); }),
      of_x("repeat",
           [](X x) {
             return repeat(x, {3, 1, 2});
           }),
      of_x("roll", [](X x) { return roll(x, -2, 1); }),
      of_x("tril", [](X x) { return tril(x); }),
      of_x("triu", [](X x) { return triu(x, 1); }),
      of_a_b("atan2", [](X a, X b) { return atan2(a, b); }),
      of_a_b("fmod", [](X a, X b) { return fmod(a, b); }),
      of_a_b("remainder", [](X a, X b) { return remainder(a, b); }),
      of_a_b("stack",
             [](X a, X b) {
               return stack({a, b}, -1);
             }),
      of_x("argmax", [](X x) { return argmax(x, 1); }),
      of_x("argmax_flat", [](X x) { return argmax(x); }),
      of_x("argmin", [](X x) { return argmin(x, -1, true); }),
      of_x("any", [](X x) { return cast(any(x, {1}), DType::i32); }),
      of_x("all", [](X x) { return cast(all(x, {1}), DType::i32); }),
      of_x("logical",
           [](X x) {
             const Tensor exclusive = logical_xor(x, greater(x, 0.0));
             const Tensor both = logical_and(x, less(x, 2.0));
             return cast(logical_or(exclusive, logical_not(both)), DType::i32);
           }),
      of_x("sort", [](X x) { return sort(x, 1).values; }),
      of_x("sort_descending", [](X x) { return sort(x, 0, true).values; }),
      of_x("topk", [](X x) { return topk(x, 3).values; }),
      of_x("topk_smallest", [](X x) { return topk(x, 2, 0, false).values; }),
      of_x("cumsum", [](X x) { return cumsum(x, 0); }),
      of_x("cumprod", [](X x) { return cumprod(x, 1); }),
      of_x("cumprod_of_zeros", [](X x) { return cumprod(x, -1); }),
      of_x("argsort", [](X x) { return argsort(x); }),
      of_x("argsort_descending", [](X x) { return argsort(x, 1, true); }),
      {"gather", [](Operands& of, X index) { return gather(of["x"], 1, index); }},
      {"gather_dim_0", [](Operands& of, X index) { return gather(of["x"], 0, index); }},
      {"scatter_add",
       [](Operands& of, X index) { return scatter_add(of["x"], 1, index, of["source"]); }},
      {"one_hot", [](Operands&, X index) { return one_hot(index, 5, DType::i32); }},
      {"index_select", [](Operands& of, X index) { return index_select(of["x"], 1, index); }},
  };
}

class TorchTensorOp : public ::testing::TestWithParam<OpCase> {};

TEST_P(TorchTensorOp, GivesItsValueAndGradients) {
  testing::expect_op_as_torch(GetParam(), "torch/tensor_ops.safetensors");
}

TEST_P(TorchTensorOp, GivesThemOnChips) {
  const Mesh mesh({2, 2}, {"data", "model"});
  testing::expect_op_as_torch(GetParam(), "torch/tensor_ops.safetensors", &mesh);
}

INSTANTIATE_TEST_SUITE_P(All, TorchTensorOp, ::testing::ValuesIn(cases()),
                         [](const auto& which) { return which.param.name; });

TEST(TorchTensorOps, CoverTheGoldenFile) {
  testing::expect_all_in("torch/tensor_ops.safetensors", cases());
}

}  // namespace
}  // namespace weft::torch_ops_test
