#include <weft/nn/layers.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "spmd/nn/init.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Throws invalid_argument for a size below 1.
void expect_size(const char* layer, const std::string& name, const char* option,
                 std::int64_t size) {
  if (size >= 1) return;
  fail(Errc::invalid_argument, "{} '{}': {} = {}: expected 1 or more", layer, name, option, size);
}

}  // namespace

Linear::Linear(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)) {
  const auto [in, out, has_bias] = options;
  expect_size("Linear", path(), "in_features", in);
  expect_size("Linear", path(), "out_features", out);
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  weight = begin_uniform(add_parameter("weight", 0, {out, in}), bound);
  if (has_bias) bias = begin_uniform(add_parameter("bias", 0, {out}), bound);
}

Tensor Linear::operator()(const Tensor& x, std::source_location loc) const {
  if (!adapter_) return linear(Operand(x, loc), weight, bias);
  const Call call("linear", loc);
  return linear(x, weight, bias) + adapter_(x);
}

Embedding::Embedding(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), padding_idx_(options.padding_idx) {
  const auto [rows, size, deviation, padding_idx] = options;
  expect_size("Embedding", path(), "num_embeddings", rows);
  expect_size("Embedding", path(), "embedding_dim", size);
  if (padding_idx && (*padding_idx < -rows || *padding_idx >= rows)) {
    fail(Errc::invalid_argument, "Embedding '{}': padding_idx = {}: expected a row, from {} to {}",
         path(), *padding_idx, -rows, rows - 1);
  }
  // The row of padding_idx consists of zeros. `zeros` is the number of the row's first element.
  const std::int64_t row = padding_idx.value_or(rows);
  const auto zeros = static_cast<std::uint64_t>((row < 0 ? row + rows : row) * size);
  const auto end = zeros + static_cast<std::uint64_t>(size);
  const std::string about = fmt::format("normal {} {} {}", initial_seed(), deviation, zeros);
  weight = begin_with(add_parameter("weight", 0, {rows, size}), about,
                      [=, normal = normal_elements(path("weight"), 0, deviation)](
                          std::uint64_t first, std::span<float> out) {
                        normal(first, out);
                        for (std::size_t i = 0; i < out.size(); ++i) {
                          if (first + i >= zeros && first + i < end) out[i] = 0;
                        }
                      });
}

Tensor Embedding::operator()(const Tensor& index, std::source_location loc) const {
  return embedding(Operand(weight, loc), index, padding_idx_);
}

LayerNorm::LayerNorm(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), eps_(options.eps) {
  expect_size("LayerNorm", path(), "size", options.size);
  weight = add_parameter("weight", 1, {options.size});
  if (options.bias) bias = add_parameter("bias", 0, {options.size});
}

Tensor LayerNorm::operator()(const Tensor& x, std::source_location loc) const {
  return layer_norm(Operand(x, loc), weight, bias, eps_);
}

RMSNorm::RMSNorm(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), eps_(options.eps) {
  expect_size("RMSNorm", path(), "size", options.size);
  weight = add_parameter("weight", 1, {options.size});
}

Tensor RMSNorm::operator()(const Tensor& x, std::source_location loc) const {
  return rms_norm(Operand(x, loc), weight, eps_);
}

PReLU::PReLU(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)) {
  expect_size("PReLU", path(), "num_parameters", options.num_parameters);
  weight = add_parameter("weight", options.init, {options.num_parameters});
}

Tensor PReLU::operator()(const Tensor& x, std::source_location loc) const {
  return prelu(Operand(x, loc), weight);
}

DropoutLayer::DropoutLayer(Module& parent, std::string name, double p, Function function)
    : Module(parent, std::move(name)), p_(p), function_(function) {
  if (!(p >= 0 && p <= 1)) {
    fail(Errc::invalid_argument, "Dropout '{}': p = {}: expected 0 to 1", path(), p);
  }
}

Tensor DropoutLayer::operator()(const Tensor& x, std::source_location loc) const {
  return is_training() ? function_(Operand(x, loc), p_) : x;
}

}  // namespace weft
