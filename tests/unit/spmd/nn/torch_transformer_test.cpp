/// Compares attention and transformer layers with torch (tests/golden/torch_nn/transformer.py).

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weft/nn/attention.hpp>
#include <weft/nn/functional.hpp>
#include <weft/nn/losses.hpp>
#include <weft/nn/transformer.hpp>
#include <weft/nn/transforms.hpp>

#include "tests/support/safetensors.hpp"
#include "tests/support/simulate_runtime.hpp"
#include "tests/support/torch_layers.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::torch_transformer_test {
namespace {

using testing::expect_error;
using testing::expect_near;
using testing::f32;
using testing::i32;
using testing::layer_case;
using testing::OpCase;
using testing::Operands;
using Floats = std::vector<float>;

constexpr std::int64_t kSize = 8;
constexpr std::int64_t kHeads = 2;

/// Returns a mask that is true where a query must not see a key.
Tensor causal_mask(std::int64_t length) {
  return greater(iota({length, length}, 1), iota({length, length}, 0));
}

std::vector<OpCase> attention_cases() {
  return {
      {"attention_mask",
       [](Operands& of, const Tensor& index) {
         return attention(of["q"], of["k"], of["v"], {.mask = not_equal(index, 0.0)});
       }},
      {"attention_bias",
       [](Operands& of, const Tensor&) {
         return attention(of["q"], of["k"], of["v"], {.bias = of["bias"]});
       }},
      {"attention_bias_causal",
       [](Operands& of, const Tensor&) {
         return attention(of["q"], of["k"], of["v"],
                          {.causal = true, .scale = 0.3, .bias = of["bias"]});
       }},
      {"attention_gqa",
       [](Operands& of, const Tensor&) {
         return attention(of["q"], of["k"], of["v"], {.enable_gqa = true});
       }},
      {"rope_from",
       [](Operands& of, const Tensor&) { return rope(of["x"], 100, full({}, 7, DType::i32)); }},
  };
}

std::vector<OpCase> multi_head_cases() {
  using Layer = MultiHeadAttention;
  const Layer::Options options{.embed_dim = kSize, .num_heads = kHeads};
  Layer::Options without_bias = options;
  without_bias.bias = false;
  Layer::Options of_dims = options;
  of_dims.kdim = 6;
  of_dims.vdim = 10;
  return {
      layer_case<Layer>("self_attention_masks", options,
                        [](const Layer& layer, Operands& of, const Tensor& index) {
                          const Tensor& x = of["x"];
                          return layer(x, x, x,
                                       {.attn_mask = causal_mask(4),
                                        .key_padding_mask = not_equal(index, 0.0)});
                        }),
      layer_case<Layer>("self_attention_float_mask", without_bias,
                        [](const Layer& layer, Operands& of, const Tensor&) {
                          const Tensor& x = of["x"];
                          return layer(x, x, x, {.attn_mask = of["mask"]});
                        }),
      layer_case<Layer>("cross_attention", options,
                        [](const Layer& layer, Operands& of, const Tensor&) {
                          return layer(of["x"], of["memory"], of["memory"], {});
                        }),
      layer_case<Layer>("cross_attention_dims", of_dims,
                        [](const Layer& layer, Operands& of, const Tensor& index) {
                          return layer(of["x"], of["key"], of["value"],
                                       {.key_padding_mask = not_equal(index, 0.0)});
                        }),
      layer_case<Layer>(
          "grouped_attention",
          {.embed_dim = kSize, .num_heads = 4, .causal = true, .num_kv_heads = 2},
          [](const Layer& layer, Operands& of, const Tensor&) { return layer(of["x"]); }),
  };
}

std::vector<OpCase> transformer_cases() {
  const TransformerLayerOptions options{.d_model = kSize, .nhead = kHeads, .dim_feedforward = 12};
  TransformerLayerOptions gelu_first = options;
  gelu_first.activation = [](const Tensor& x) { return gelu(x); };
  gelu_first.layer_norm_eps = 0.1;
  gelu_first.norm_first = true;
  TransformerLayerOptions norm_first = options;
  norm_first.norm_first = true;
  const auto encode = [](const auto& layer, Operands& of, const Tensor& index) {
    return layer(of["x"], {.mask = causal_mask(4), .key_padding_mask = not_equal(index, 0.0)});
  };
  const auto decode = [](const auto& layer, Operands& of, const Tensor& index) {
    return layer(of["x"], of["memory"],
                 {.tgt_mask = causal_mask(4), .tgt_key_padding_mask = not_equal(index, 0.0)});
  };
  return {
      layer_case<TransformerEncoderLayer>("encoder_layer", options, encode),
      layer_case<TransformerEncoderLayer>("encoder_layer_norm_first", gelu_first, encode),
      layer_case<TransformerDecoderLayer>("decoder_layer", options, decode),
      layer_case<TransformerDecoderLayer>("decoder_layer_norm_first", norm_first, decode),
      layer_case<TransformerEncoder>("encoder", {.layer = options, .num_layers = 2, .norm = true},
                                     encode),
      layer_case<TransformerDecoder>("decoder", {.layer = options, .num_layers = 2}, decode),
  };
}

std::vector<OpCase> cases() {
  std::vector<OpCase> all = attention_cases();
  for (const auto& more : {multi_head_cases(), transformer_cases()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

class TorchTransformer : public ::testing::TestWithParam<OpCase> {};

TEST_P(TorchTransformer, GivesItsValueAndGradients) {
  testing::expect_op_as_torch(GetParam(), "torch_nn/transformer.safetensors");
}

TEST_P(TorchTransformer, GivesThemOnChips) {
  const Mesh mesh({2, 2}, {"data", "model"});
  testing::expect_op_as_torch(GetParam(), "torch_nn/transformer.safetensors", &mesh);
}

INSTANTIATE_TEST_SUITE_P(All, TorchTransformer, ::testing::ValuesIn(cases()),
                         [](const auto& which) { return which.param.name; });

TEST(TorchTransformers, CoverTheGoldenFile) {
  const testing::Safetensors file("torch_nn/transformer.safetensors");
  std::size_t golden = 0;
  for (const std::string& name : file.names("")) golden += name.ends_with(".y");
  EXPECT_EQ(golden, cases().size());
}

using Attention = testing::TensorTest;

Parameter counting(const std::string& name, const Shape& shape) {
  Floats elements(static_cast<std::size_t>(shape.num_elements()));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = std::sin(static_cast<float>(i) + static_cast<float>(name.size()));
  }
  return make_parameter(name, elements, shape);
}

TEST_F(Attention, AQueryThatSeesNoKeyHasAResultOfZeroAndAFiniteGradient) {
  const Parameter q = counting("q", {1, 1, 2, 3});
  const Parameter k = counting("kk", {1, 1, 2, 3});
  const Parameter v = counting("vvv", {1, 1, 2, 3});
  const Tensor mask = not_equal(i32({0, 0, 1, 0}, {2, 2}), 0.0);
  const Tensor y = attention(q, k, v, {.mask = mask});
  const std::vector<Tensor> grads = grad(sum(y), std::vector{q, k, v});
  sync();
  const Floats values = v.to_vector();
  expect_near(y, {0, 0, 0, values[0], values[1], values[2]});
  expect_near(grads[2], {1, 1, 1, 0, 0, 0});
  for (const float g : grads[0].to_vector()) EXPECT_TRUE(std::isfinite(g));
}

TEST_F(Attention, AMaskUnderAutocastHidesKeysToo) {
  const Tensor q = counting("q", {1, 1, 2, 4});
  const Tensor mask = not_equal(i32({1, 0, 1, 0}, {2, 2}), 0.0);
  const Tensor y = autocast(DType::bf16, [&] { return attention(q, q, q, {.mask = mask}); });
  EXPECT_EQ(y.type().dtype, DType::bf16);
  const Floats first = q.to_vector();
  const Floats seen = cast(y, DType::f32).to_vector();
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(seen[i], first[i % 4], 0.01);
}

TEST_F(Attention, DropsWeightsOnlyInTraining) {
  Module root;
  MultiHeadAttention layer(root, "layer", {.embed_dim = 4, .num_heads = 2, .dropout = 0.5});
  const Tensor x = counting("x", {2, 8, 4});
  const Floats trained = layer(x).to_vector();
  layer.eval();
  const Floats evaluated = layer(x).to_vector();
  EXPECT_NE(trained, evaluated);
  EXPECT_EQ(layer(x).to_vector(), evaluated);
}

TEST_F(Attention, DroppedWeightsKeepTheirMean) {
  const Tensor ones = full({1, 1, 2000, 1}, 1);
  const Tensor y = attention(ones, full({1, 1, 4, 1}, 1), full({1, 1, 4, 1}, 1), {.dropout = 0.25});
  // Each element is the mean of 4 numbers, each 0 or 4/3, so its variance is (1/3) / 4.
  EXPECT_NEAR(mean(y).item(), 1, 6 * std::sqrt(1 / 12.0 / 2000));
}

TEST_F(Attention, HasTorchsInitialValues) {
  Module root;
  const MultiHeadAttention layer(root, "layer", {.embed_dim = 8, .num_heads = 2});
  EXPECT_EQ(layer.out_proj.bias.to_vector(), Floats(8, 0));
  EXPECT_EQ(layer.in_proj_bias.to_vector(), Floats(24, 0));
  const MultiHeadAttention cross(root, "cross",
                                 {.embed_dim = 8, .num_heads = 2, .bias = false, .kdim = 4});
  std::vector<std::string> names;
  for (const Parameter& own : cross.parameters()) {
    names.push_back(fmt::format("{} {}", own.name(), own.type().to_string()));
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "cross.q_proj_weight f32[8,8]", "cross.k_proj_weight f32[8,4]",
                       "cross.v_proj_weight f32[8,8]", "cross.out_proj.weight f32[8,8]"}));
}

TEST_F(Attention, TokensThroughTheCacheGiveWhatTheyGiveTogether) {
  Module root;
  TransformerEncoderLayer layer(root, "layer", {.d_model = 8, .nhead = 2, .dim_feedforward = 12});
  layer.eval();
  const Tensor x = counting("x", {2, 6, 8});
  const Floats together = layer(x, {.is_causal = true}).to_vector();
  KeyValueCache cache({.batch = 2, .num_heads = 2, .length = 7, .head_dim = 4});
  for (int round = 0; round < 2; ++round) {
    std::int64_t at = 0;
    for (const std::int64_t count : {3, 1, 1, 1}) {
      const Tensor y = layer(slice(x, 1, at, at + count), {.cache = &cache});
      sync();
      const Floats part = y.to_vector();
      for (std::size_t i = 0; i < part.size(); ++i) {
        const std::size_t row = i / (static_cast<std::size_t>(count) * 8);
        const std::size_t place = i % (static_cast<std::size_t>(count) * 8);
        EXPECT_NEAR(part[i], together[row * 48 + static_cast<std::size_t>(at) * 8 + place], 2e-6)
            << "token " << at << ", element " << i;
      }
      at += count;
      EXPECT_EQ(cache.length().item(), static_cast<double>(at));
    }
    cache.reset();
    sync();
  }
}

TEST_F(Attention, TokensBeyondTheCacheEndTheRun) {
  KeyValueCache cache({.num_heads = 1, .length = 3, .head_dim = 2, .name = "small"});
  const Tensor two = full({1, 1, 2, 2}, 1);
  cache.extend(two, two);
  sync();
  cache.extend(two, two);
  expect_error(Errc::invalid_argument,
               {"KeyValueCache 'small' of length 3 is full", "end at position 3",
                "the last position is 2", "torch_transformer_test.cpp:"},
               [] { sync(); });
}

TEST_F(Attention, RefusesWhatDoesNotFit) {
  const Tensor x = full({1, 2, 3, 4}, 1);
  expect_error(Errc::invalid_argument, {"the mask f32[3,3] isn't pred", "bias"}, [&] {
    attention(x, x, x, {.mask = full({3, 3}, 1)});
  });
  expect_error(Errc::invalid_argument,
               {"the bias f32[2,3] doesn't broadcast to the scores f32[1,2,3,3]",
                "torch_transformer_test.cpp:"},
               [&] {
                 attention(x, x, x, {.bias = full({2, 3}, 1)});
               });
  expect_error(Errc::invalid_argument, {"2 and 1 heads; set enable_gqa"}, [&] {
    attention(x, full({1, 1, 3, 4}, 1), full({1, 1, 3, 4}, 1));
  });
  expect_error(Errc::invalid_argument,
               {"positions f32[] for", "expected i32[], the first position"},
               [&] { rope(x, 10000, full({}, 1)); });
  const Tensor ids = full({1, 2}, 1, DType::i32);
  expect_error(Errc::invalid_argument, {"the segment_ids i32[1,2]", "expected i32[1,3]"},
               [&] { attention(x, x, x, {.segment_ids = ids}); });
  expect_error(Errc::invalid_argument, {"key_segment_ids is given without segment_ids"},
               [&] { attention(x, x, x, {.key_segment_ids = ids}); });
  expect_error(Errc::invalid_argument, {"positions i32[1,2] for", "or i32[1,3]"},
               [&] { rope(x, 10000, ids); });
  Module root;
  const MultiHeadAttention layer(root, "layer", {.embed_dim = 4, .num_heads = 2});
  const Tensor y = full({2, 3, 4}, 1);
  expect_error(Errc::invalid_argument,
               {"the attn_mask f32[3] doesn't fit: expected [3,3] or [4,3,3]"},
               [&] { layer(y, y, y, {.attn_mask = full({3}, 1)}); });
  expect_error(Errc::invalid_argument, {"the key_padding_mask f32[3,3]", "expected [2,3]"}, [&] {
    layer(y, y, y, {.key_padding_mask = full({3, 3}, 1)});
  });
  expect_error(Errc::invalid_argument, {"'bad'", "num_kv_heads = 3"}, [&] {
    MultiHeadAttention(root, "bad", {.embed_dim = 4, .num_heads = 2, .num_kv_heads = 3});
  });
  expect_error(Errc::invalid_argument, {"KeyValueCache 'cache'", "num_heads = 0"},
               [] { KeyValueCache({}); });
  expect_error(Errc::invalid_argument, {"TransformerEncoder 'none'", "num_layers = 0"},
               [&] { TransformerEncoder(root, "none", {.layer = {.d_model = 4, .nhead = 2}}); });
}

}  // namespace
}  // namespace weft::torch_transformer_test
