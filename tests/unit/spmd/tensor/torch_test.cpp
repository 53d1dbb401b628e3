/// Compares training with torch, whose results are in golden files (tests/golden/torch/make.py).

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weft/nn/losses.hpp>
#include <weft/nn/multi_head_attention.hpp>

#include "tests/support/safetensors.hpp"
#include "tests/support/simulate_runtime.hpp"
#include "tests/support/torch_ops.hpp"
#include "tests/support/torch_training.hpp"

namespace weft::torch_test {
namespace {

using testing::expect_as_torch;
using testing::InterpretRuntime;
using testing::OpCase;
using testing::Operands;
using testing::Safetensors;
using testing::SimulateRuntime;
using testing::TorchCase;

class TorchTraining : public ::testing::TestWithParam<TorchCase> {};

TEST_P(TorchTraining, GivesItsLossesAndParameters) {
  InterpretRuntime runtime;
  const RuntimeScope scope(runtime);
  expect_as_torch(GetParam(), train(GetParam(), nullptr));
}

TEST_P(TorchTraining, GivesThemOnChipsWithDataAndTensorParallelism) {
  SimulateRuntime runtime(Mesh({2, 2}, {"data", "model"}));
  const RuntimeScope scope(runtime);
  expect_as_torch(GetParam(), train(GetParam(), runtime.mesh()));
}

INSTANTIATE_TEST_SUITE_P(All, TorchTraining, ::testing::ValuesIn(testing::torch_cases()),
                         [](const auto& which) { return which.param.name(); });

OpCase conv2d_case(const std::string& name, const Conv2dOptions& options) {
  return {name, [options](Operands& of, const Tensor&) {
            return conv2d(of["x"], of["kernel"], of["bias"], options);
          }};
}

OpCase max_pool2d_case(const std::string& name, const MaxPool2dOptions& options) {
  return {name, [options](Operands& of, const Tensor&) { return max_pool2d(of["x"], options); }};
}

OpCase avg_pool2d_case(const std::string& name, const AvgPool2dOptions& options) {
  return {name, [options](Operands& of, const Tensor&) { return avg_pool2d(of["x"], options); }};
}

OpCase attention_case(const std::string& name, bool causal) {
  return {name, [causal](Operands& of, const Tensor&) {
            MultiHeadAttention::Options options{.embed_dim = 8, .num_heads = 2, .causal = causal};
            Module root;
            MultiHeadAttention layer(root, "layer", options);
            layer.in_proj_weight = of["in_proj_weight"];
            layer.in_proj_bias = of["in_proj_bias"];
            layer.out_proj.weight = of["out_proj_weight"];
            layer.out_proj.bias = of["out_proj_bias"];
            return layer(of["x"]);
          }};
}

std::vector<OpCase> op_cases() {
  const AvgPool2dOptions padded{.kernel_size = {3, 2}, .stride = {{2, 1}}, .padding = 1};
  AvgPool2dOptions without_padding = padded;
  without_padding.count_include_pad = false;
  const auto layer_norm_of = [](Operands& of, const Tensor&) {
    return layer_norm(of["x"], of["scale"], of["bias"]);
  };
  const auto batch_norm_of = [](Operands& of, const Tensor&) {
    return batch_norm(of["x"], batch_statistics(of["x"]), of["scale"], of["bias"]);
  };
  return {
      {"gelu", [](Operands& of, const Tensor&) { return gelu(of["x"], Gelu::tanh); }},
      {"silu", [](Operands& of, const Tensor&) { return silu(of["x"]); }},
      {"softmax", [](Operands& of, const Tensor&) { return softmax(of["x"]); }},
      {"softmax_dim_0", [](Operands& of, const Tensor&) { return softmax(of["x"], 0); }},
      {"log_softmax", [](Operands& of, const Tensor&) { return log_softmax(of["x"]); }},
      {"layer_norm", layer_norm_of},
      {"layer_norm_2_dims", layer_norm_of},
      {"batch_norm", batch_norm_of},
      {"batch_norm_2_dims", batch_norm_of},
      {"rope", [](Operands& of, const Tensor&) { return rope(of["x"], 100); }},
      {"embedding", [](Operands& of, const Tensor& x) { return embedding(of["table"], x); }},
      conv2d_case("conv2d", {}),
      conv2d_case("conv2d_stride_padding", {.stride = {2, 3}, .padding = {1, 2}}),
      conv2d_case("conv2d_dilation", {.padding = 1, .dilation = {2, 3}}),
      conv2d_case("conv2d_groups", {.stride = 2, .padding = 1, .groups = 2}),
      conv2d_case("conv2d_depthwise", {.padding = 2, .dilation = 2, .groups = 4}),
      max_pool2d_case("max_pool2d", {.kernel_size = 2}),
      max_pool2d_case("max_pool2d_padding",
                      {.kernel_size = {3, 2}, .stride = {{2, 1}}, .padding = 1}),
      max_pool2d_case("max_pool2d_dilation", {.kernel_size = 2, .stride = 1, .dilation = {3, 2}}),
      max_pool2d_case("max_pool2d_ties", {.kernel_size = 3, .stride = 1, .padding = 1}),
      avg_pool2d_case("avg_pool2d", {.kernel_size = 2}),
      avg_pool2d_case("avg_pool2d_padding", padded),
      avg_pool2d_case("avg_pool2d_without_padding", without_padding),
      attention_case("multi_head_attention", false),
      attention_case("multi_head_attention_causal", true),
      {"binary_cross_entropy_with_logits",
       [](Operands& of, const Tensor&) {
         return binary_cross_entropy_with_logits(of["input"], of["target"]);
       }},
      {"l1_loss", [](Operands& of, const Tensor&) { return l1_loss(of["input"], of["target"]); }},
      {"mse_loss", [](Operands& of, const Tensor&) { return mse_loss(of["input"], of["target"]); }},
      {"cross_entropy",
       [](Operands& of, const Tensor& x) { return cross_entropy(of["input"], x); }},
  };
}

class TorchOp : public ::testing::TestWithParam<OpCase> {};

TEST_P(TorchOp, GivesItsValueAndGradients) {
  testing::expect_op_as_torch(GetParam(), "torch/ops.safetensors");
}

INSTANTIATE_TEST_SUITE_P(All, TorchOp, ::testing::ValuesIn(op_cases()),
                         [](const auto& which) { return which.param.name; });

TEST(TorchOps, CoverTheGoldenFile) {
  const Safetensors file("torch/ops.safetensors");
  std::size_t golden = 0;
  for (const std::string& name : file.names("")) golden += name.ends_with(".y");
  EXPECT_EQ(golden, op_cases().size());
}

}  // namespace
}  // namespace weft::torch_test
