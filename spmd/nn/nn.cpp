#include <weft/nn.hpp>

#include <cmath>
#include <utility>

#include "spmd/nn/init.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

std::vector<float> filled(std::int64_t size, float value) {
  return std::vector<float>(static_cast<std::size_t>(size), value);
}

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
  weight = add_parameter("weight", uniform_init(path("weight"), out * in, bound), {out, in});
  if (has_bias) bias = add_parameter("bias", uniform_init(path("bias"), out, bound), {out});
}

Tensor Linear::operator()(const Tensor& x, std::source_location loc) const {
  return linear(Operand(x, loc), weight, bias);
}

Embedding::Embedding(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)) {
  const auto [rows, size, deviation] = options;
  expect_size("Embedding", path(), "num_embeddings", rows);
  expect_size("Embedding", path(), "embedding_dim", size);
  weight =
      add_parameter("weight", normal_init(path("weight"), rows * size, 0, deviation), {rows, size});
}

Tensor Embedding::operator()(const Tensor& index, std::source_location loc) const {
  return embedding(Operand(weight, loc), index);
}

LayerNorm::LayerNorm(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), eps_(options.eps) {
  expect_size("LayerNorm", path(), "size", options.size);
  weight = add_parameter("weight", filled(options.size, 1), {options.size});
  if (options.bias) bias = add_parameter("bias", filled(options.size, 0), {options.size});
}

Tensor LayerNorm::operator()(const Tensor& x, std::source_location loc) const {
  return layer_norm(Operand(x, loc), weight, bias, eps_);
}

RMSNorm::RMSNorm(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), eps_(options.eps) {
  expect_size("RMSNorm", path(), "size", options.size);
  weight = add_parameter("weight", filled(options.size, 1), {options.size});
}

Tensor RMSNorm::operator()(const Tensor& x, std::source_location loc) const {
  return rms_norm(Operand(x, loc), weight, eps_);
}

Dropout::Dropout(Module& parent, std::string name, double p)
    : Module(parent, std::move(name)), p_(p) {
  if (!(p >= 0 && p <= 1)) {
    fail(Errc::invalid_argument, "Dropout '{}': p = {}: expected 0 to 1", path(), p);
  }
}

Tensor Dropout::operator()(const Tensor& x, std::source_location loc) const {
  return is_training() ? dropout(Operand(x, loc), p_) : x;
}

}  // namespace weft
