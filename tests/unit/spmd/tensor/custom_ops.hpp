#pragma once
/// Custom ops with gradients, for tests of the tensor API.

#include <algorithm>
#include <atomic>
#include <cmath>

#include <weft/ops/custom_op.hpp>
#include <weft/ops/elementwise.hpp>

namespace weft::testing {

/// Computes limit * tanh(x / limit) in f32 or f64.
template <typename T>
void soft_clip(const CustomCall& call) {
  const auto x = call.operand<T>(0);
  const auto limit = call.operand<T>(1);
  const auto y = call.result<T>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const T most = limit[i % limit.size()];
    y[i] = most * std::tanh(x[i] / most);
  }
}

inline const CustomOp kSoftClip{
    .name = "soft_clip",
    .sharding_rule = "b s, s -> b s",
    .kernel =
        [](const CustomCall& call) {
          call.operand_type(0).dtype == DType::f64 ? soft_clip<double>(call)
                                                   : soft_clip<float>(call);
        },
    .vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
      const Tensor ratio = v.result / v.operands[1];
      const Tensor slope = 1.0 - ratio * ratio;
      const Tensor of_limit = ratio - v.operands[0] / v.operands[1] * slope;
      return {v.cotangent * slope, sum(v.cotangent * of_limit, {0})};
    }};

/// Computes the same as the custom op with ordinary ops.
inline Tensor soft_clip(const Tensor& x, const Tensor& limit) { return limit * tanh(x / limit); }

/// Computes y[b] = sum over s of x[b,s] * x[b,s]. A chip may compute it from a part of each row.
inline const CustomOp kRowNorm{.name = "row_norm",
                               .sharding_rule = "b s -> b",
                               .reduction_factors = {"s"},
                               .kernel =
                                   [](const CustomCall& call) {
                                     const auto x = call.operand<float>(0);
                                     const auto y = call.result<float>();
                                     std::ranges::fill(y, 0.0F);
                                     for (std::size_t i = 0; i < x.size(); ++i) {
                                       y[i / (x.size() / y.size())] += x[i] * x[i];
                                     }
                                   },
                               .vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
                                 const Tensor& x = v.operands[0];
                                 return {2.0 * x * reshape(v.cotangent, {x.dim(0), 1})};
                               }};

/// Computes the prefix sums of each row.
inline const CustomOp kCumsum{.name = "cumsum",
                              .sharding_rule = "b s -> b s",
                              .need_replication_factors = {"s"},
                              .kernel =
                                  [](const CustomCall& call) {
                                    const auto x = call.operand<float>(0);
                                    const auto y = call.result<float>();
                                    const auto size =
                                        static_cast<std::size_t>(call.result_type().shape[1]);
                                    for (std::size_t i = 0; i < y.size(); ++i) {
                                      y[i] = x[i] + (i % size == 0 ? 0.0F : y[i - 1]);
                                    }
                                  },
                              .vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
                                return {flip(custom_call(kCumsum, {flip(v.cotangent, {1})}), {1})};
                              }};

/// Counts the calls of kCounted's kernel.
inline std::atomic<int> calls{0};
inline const CustomOp kCounted{
    .name = "counted",
    .sharding_rule = "b s -> b s",
    .kernel =
        [](const CustomCall& call) {
          ++calls;
          std::ranges::copy(call.operand<float>(0), call.result<float>().begin());
        },
    .vjp = [](const CustomVjp& v) -> std::vector<Tensor> { return {v.cotangent * v.result}; }};

/// Computes x^T g for x[b,i] and g[b,o]. If the batch b is sharded, each chip sums over its rows.
inline const CustomOp kOuter{.name = "outer",
                             .sharding_rule = "b i, b o -> i o",
                             .reduction_factors = {"b"},
                             .kernel = [](const CustomCall& call) {
                               const auto x = call.operand<float>(0);
                               const auto g = call.operand<float>(1);
                               const auto y = call.result<float>();
                               const auto size = [&](std::size_t i) {
                                 return static_cast<std::size_t>(call.operand_type(i).shape[1]);
                               };
                               std::ranges::fill(y, 0.0F);
                               for (std::size_t i = 0; i < x.size(); ++i) {
                                 for (std::size_t o = 0; o < size(1); ++o) {
                                   y[i % size(0) * size(1) + o] +=
                                       x[i] * g[i / size(0) * size(1) + o];
                                 }
                               }
                             }};
inline const CustomOp kProduct{
    .name = "product",
    .sharding_rule = "b i, i o -> b o",
    .reduction_factors = {"i"},
    .result_type =
        [](std::span<const TensorType> operands) {
          return TensorType{DType::f32, {operands[0].shape[0], operands[1].shape[1]}};
        },
    .kernel =
        [](const CustomCall& call) {
          const auto x = call.operand<float>(0);
          const auto w = call.operand<float>(1);
          const auto y = call.result<float>();
          const auto columns = static_cast<std::size_t>(call.result_type().shape[1]);
          const std::size_t inner = w.size() / columns;
          std::ranges::fill(y, 0.0F);
          for (std::size_t i = 0; i < x.size(); ++i) {
            for (std::size_t o = 0; o < columns; ++o) {
              y[i / inner * columns + o] += x[i] * w[i % inner * columns + o];
            }
          }
        },
    .vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
      return {{}, custom_call(kOuter, {v.operands[0], v.cotangent})};
    }};

/// Returns different numbers from -1 to 2.
inline std::vector<float> numbers(std::size_t count) {
  std::vector<float> elements;
  for (std::size_t i = 0; i < count; ++i)
    elements.push_back(static_cast<float>(i * 5 % 13) / 4 - 1);
  return elements;
}

}  // namespace weft::testing
