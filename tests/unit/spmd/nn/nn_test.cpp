#include <weft/nn/layers.hpp>

#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include <weft/nn/containers.hpp>
#include <weft/nn/conv_layers.hpp>
#include <weft/nn/losses.hpp>
#include <weft/nn/multi_head_attention.hpp>
#include <weft/nn/transforms.hpp>
#include <weft/ops/elementwise.hpp>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::nn_test {
namespace {

using testing::expect_error;
using testing::f32;
using testing::i32;
using Floats = std::vector<float>;
using Nn = testing::TensorTest;

Floats counting(std::int64_t count, float step = 0.1F) {
  Floats elements(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = step * static_cast<float>(i);
  return elements;
}

TEST_F(Nn, NamesAreTorchsStateDict) {
  struct Net : Module {
    Embedding tokens{*this, "tokens", {.num_embeddings = 5, .embedding_dim = 4}};
    LayerNorm norm{*this, "norm", {.size = 4}};
    RMSNorm rms{*this, "rms", {.size = 4}};
    Conv2d conv{*this, "conv", {.in_channels = 2, .out_channels = 3, .kernel_size = {3, 2}}};
    Dropout dropout{*this, "dropout", 0.1};
    MultiHeadAttention attn{*this, "attn", {.embed_dim = 4, .num_heads = 2}};
    Sequential layers{*this, "layers"};
    Net() {
      layers.add<Linear>(Linear::Options{.in_features = 4, .out_features = 2})
          .add(relu)
          .add<Linear>(Linear::Options{.in_features = 2, .out_features = 1, .bias = false});
    }
  } net;
  std::vector<std::string> names;
  for (const Parameter& parameter : net.parameters()) {
    names.push_back(fmt::format("{} {}", parameter.name(), parameter.type().to_string()));
  }
  EXPECT_EQ(
      names,
      (std::vector<std::string>{
          "tokens.weight f32[5,4]", "norm.weight f32[4]", "norm.bias f32[4]", "rms.weight f32[4]",
          "conv.weight f32[3,2,3,2]", "conv.bias f32[3]", "attn.in_proj_weight f32[12,4]",
          "attn.in_proj_bias f32[12]", "attn.out_proj.weight f32[4,4]", "attn.out_proj.bias f32[4]",
          "layers.0.weight f32[2,4]", "layers.0.bias f32[2]", "layers.2.weight f32[1,2]"}));
}

TEST_F(Nn, StartAsInTorch) {
  Module root;
  manual_seed(1);
  const Embedding table(root, "table", {.num_embeddings = 1000, .embedding_dim = 20});
  const Floats drawn = table.weight.to_vector();
  const double mean = std::accumulate(drawn.begin(), drawn.end(), 0.0) / 20000;
  double variance = 0;
  for (const float x : drawn) variance += (x - mean) * (x - mean) / 20000;
  EXPECT_NEAR(mean, 0, 0.03);
  EXPECT_NEAR(variance, 1, 0.03);
  const Conv2d conv(root, "conv", {.in_channels = 4, .out_channels = 50, .kernel_size = 3});
  const Floats weights = conv.weight.to_vector();
  const float bound = 1 / std::sqrt(36.0F);
  EXPECT_LT(*std::max_element(weights.begin(), weights.end()), bound);
  EXPECT_GT(*std::max_element(weights.begin(), weights.end()), 0.98F * bound);
  const LayerNorm norm(root, "norm", {.size = 3});
  EXPECT_EQ(norm.weight.to_vector(), (Floats{1, 1, 1}));
  EXPECT_EQ(norm.bias.to_vector(), (Floats{0, 0, 0}));
}

TEST_F(Nn, NormsGiveMeanAndVariance) {
  Module root;
  const Tensor x = f32({1, 2, 3, 6, 0, 0, 0, 4}, {2, 4});
  const LayerNorm norm(root, "norm", {.size = 4, .eps = 0});
  // The first row has mean 3 and variance 3.5, and the second has mean 1 and variance 3.
  const Floats y = norm(x).to_vector();
  const Floats expected{-2 / std::sqrt(3.5F), -1 / std::sqrt(3.5F), 0,
                        3 / std::sqrt(3.5F),  -1 / std::sqrt(3.0F), -1 / std::sqrt(3.0F),
                        -1 / std::sqrt(3.0F), 3 / std::sqrt(3.0F)};
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-6);
  const RMSNorm rms(root, "rms", {.size = 4, .eps = 0});
  const Floats z = rms(x).to_vector();
  EXPECT_NEAR(z[0], 1 / std::sqrt(12.5F), 1e-6);
  EXPECT_NEAR(z[7], 2, 1e-6);
}

TEST_F(Nn, AttentionOfAQueryThatSeesNoKeyIsZero) {
  const Tensor q = f32({1, 2, 3, 4}, {1, 1, 2, 2});
  const Tensor v = f32({1, 2, 3, 4}, {1, 1, 2, 2});
  // The mask hides the first key, and the causal form hides the second key from the first query.
  const Tensor mask = not_equal(i32({0, 1}, {2}), 0);
  EXPECT_EQ(attention(q, q, v, {.causal = true, .mask = mask}).to_vector(), (Floats{0, 0, 3, 4}));
  const double hidden = -std::numeric_limits<double>::infinity();
  const Tensor bias = where(mask, full({2}, 0), hidden);
  EXPECT_EQ(attention(q, q, v, {.causal = true, .bias = bias}).to_vector(), (Floats{0, 0, 3, 4}));
}

TEST_F(Nn, CausalAttentionSeesWhatWentBefore) {
  const Tensor q = f32(counting(12), {1, 1, 3, 4});
  const Tensor k = f32(counting(12, 0.2F), {1, 1, 3, 4});
  const Floats v = counting(6, 1);
  const Floats all = attention(q, k, f32(v, {1, 1, 3, 2}), {.causal = true}).to_vector();
  EXPECT_NEAR(all[0], v[0], 1e-6);
  EXPECT_NEAR(all[1], v[1], 1e-6);
  Floats changed = v;
  changed[4] = 100;
  const Floats other = attention(q, k, f32(changed, {1, 1, 3, 2}), {.causal = true}).to_vector();
  EXPECT_EQ(Floats(all.begin(), all.begin() + 4), Floats(other.begin(), other.begin() + 4));
  EXPECT_NE(all[4], other[4]);
  const Floats open = attention(q, k, f32(changed, {1, 1, 3, 2})).to_vector();
  EXPECT_NE(open[0], all[0]);
}

TEST_F(Nn, HeadsAreSplitAndMergedBack) {
  const Tensor x = f32(counting(24, 1), {2, 3, 4});
  const Tensor split = split_heads(x, 2);
  EXPECT_EQ(split.shape(), (Shape{2, 2, 3, 2}));
  EXPECT_EQ(Floats(split.to_vector()), split.to_vector());
  EXPECT_EQ(slice(split, 1, 1, 2).to_vector(),
            (Floats{2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23}));
  EXPECT_EQ(merge_heads(split).to_vector(), x.to_vector());
}

TEST_F(Nn, DropoutsOfChannelsAreForTrainingOnly) {
  struct Net : Module {
    Dropout1d rows{*this, "rows"};
    Dropout2d planes{*this, "planes", 1};
    Dropout3d cubes{*this, "cubes", 1};
    AlphaDropout alpha{*this, "alpha", 1};
  } net;
  const Tensor x = full({1, 2, 1, 1, 1}, 1);
  EXPECT_EQ(net.cubes(x).to_vector(), (Floats{0, 0}));
  EXPECT_EQ(net.planes(reshape(x, {1, 2, 1, 1})).to_vector(), (Floats{0, 0}));
  EXPECT_EQ(net.alpha(x).to_vector(), (Floats{0, 0}));
  EXPECT_EQ(net.rows(reshape(x, {1, 2, 1})).shape(), (Shape{1, 2, 1}));
  net.eval();
  EXPECT_EQ(net.cubes(x).to_vector(), (Floats{1, 1}));
}

TEST_F(Nn, TheRowOfPaddingIsZeroAndStaysSo) {
  struct Net : Module {
    Embedding embed{*this, "embed", {.num_embeddings = 3, .embedding_dim = 2, .padding_idx = -1}};
  } net;
  const Tensor y = net.embed(iota({3}, 0));
  const Tensor g = grad(sum(y), std::vector<Tensor>{net.embed.weight})[0];
  const Floats rows = y.to_vector();
  EXPECT_EQ(g.to_vector(), (Floats{1, 1, 1, 1, 0, 0}));
  EXPECT_NE(rows[0], 0);
  EXPECT_EQ(rows[4], 0);
  EXPECT_EQ(rows[5], 0);
}

TEST_F(Nn, DropoutIsForTrainingOnly) {
  struct Net : Module {
    Dropout dropout{*this, "dropout", 0.5};
  } net;
  const Tensor x = full({1000}, 1);
  const Floats dropped = net.dropout(x).to_vector();
  const auto zeros = std::count(dropped.begin(), dropped.end(), 0.0F);
  EXPECT_NEAR(static_cast<double>(zeros), 500, 60);
  EXPECT_EQ(std::count(dropped.begin(), dropped.end(), 2.0F), 1000 - zeros);
  net.eval();
  EXPECT_FALSE(net.dropout.is_training());
  EXPECT_EQ(net.dropout(x).to_vector(), Floats(1000, 1));
}

TEST_F(Nn, LossesAreTorchs) {
  const Tensor x = f32({0, 2, -1}, {3});
  const Tensor y = f32({1, 0, 1}, {3});
  EXPECT_NEAR(mse_loss(x, y).item(), 3, 1e-6);
  EXPECT_NEAR(l1_loss(x, y).item(), 5.0 / 3, 1e-6);
  EXPECT_NEAR(binary_cross_entropy_with_logits(x, y).item(),
              (std::log(2) + std::log(1 + std::exp(2)) + std::log(1 + std::exp(1))) / 3, 1e-6);
  const Tensor logits = f32({1, 2, 0, 0, 5, 0, 1, 1}, {2, 2, 2});
  const double picked = std::log(1 + std::exp(1.0)) - 1 + 1;
  EXPECT_NEAR(cross_entropy(logits, i32({0, 1, 0, 0}, {2, 2})).item(),
              (picked + std::log(2) + std::log(1 + std::exp(-5.0)) + std::log(2)) / 4, 1e-6);
  expect_error(Errc::invalid_argument, {"mse_loss: f32[3] and the target f32[2] differ"}, [&] {
    mse_loss(x, f32({1, 2}, {2}));
  });
}

TEST_F(Nn, AutocastLowersProductsAndKeepsNormsAndLosses) {
  Module root;
  const Linear fc(root, "fc", {.in_features = 4, .out_features = 4});
  const LayerNorm norm(root, "norm", {.size = 4});
  const Tensor x = f32(counting(8), {2, 4});
  autocast(DType::bf16, [&] {
    const Tensor y = fc(norm(x));
    EXPECT_EQ(y.type().dtype, DType::bf16);
    EXPECT_EQ(norm(y).type().dtype, DType::f32);
    EXPECT_EQ((x + y).type().dtype, DType::f32);
    EXPECT_EQ(softmax(y).type().dtype, DType::f32);
    const Tensor loss = cross_entropy(y, i32({0, 1}, {2}));
    EXPECT_EQ(loss.type().dtype, DType::f32);
    EXPECT_EQ(grad(loss, std::vector{fc.weight})[0].type(), fc.weight.type());
    autocast(DType::f32, [&] { EXPECT_EQ(fc(x).type().dtype, DType::f32); });
  });
  EXPECT_EQ(fc(x).type().dtype, DType::f32);
  expect_error(Errc::invalid_argument, {"autocast: i32: expected bf16", "nn_test.cpp:"},
               [] { autocast(DType::i32, [] {}); });
}

TEST_F(Nn, RefusalsNameTheLayer) {
  Module root;
  expect_error(Errc::invalid_argument, {"Linear 'fc': out_features = 0"},
               [&] { Linear(root, "fc", {.in_features = 1, .out_features = 0}); });
  expect_error(Errc::invalid_argument, {"Conv2d 'conv': groups = 2: expected a divisor"}, [&] {
    Conv2d(root, "conv", {.in_channels = 3, .out_channels = 4, .window = {.groups = 2}});
  });
  expect_error(Errc::invalid_argument, {"Dropout 'd': p = 1.5: expected 0 to 1"},
               [&] { Dropout(root, "d", 1.5); });
  expect_error(Errc::invalid_argument, {"MultiHeadAttention 'a': num_heads = 3"},
               [&] { MultiHeadAttention(root, "a", {.embed_dim = 4, .num_heads = 3}); });
  expect_error(Errc::invalid_argument, {"split_heads: f32[2,4] doesn't split", "nn_test.cpp:"},
               [&] {
                 split_heads(f32(counting(8), {2, 4}), 2);
               });
}

}  // namespace
}  // namespace weft::nn_test
