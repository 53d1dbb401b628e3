/// Compares losses with torch (tests/golden/torch_nn/losses.py).

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <weft/nn/functional.hpp>
#include <weft/nn/losses.hpp>
#include <weft/nn/transforms.hpp>

#include "tests/support/safetensors.hpp"
#include "tests/support/torch_ops.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::torch_losses_test {
namespace {

using testing::expect_error;
using testing::expect_near;
using testing::f32;
using testing::i32;
using testing::OpCase;
using testing::Operands;

Tensor classes() { return f32({0.5, 1.25, 0.75, 1, 2, 0.25}, {6}); }

OpCase cross_entropy_case(const std::string& name, const CrossEntropyOptions& options,
                          bool weighted = false) {
  return {"cross_entropy_" + name, [=](Operands& of, const Tensor& index) {
            CrossEntropyOptions own = options;
            if (weighted) own.weight = classes();
            return cross_entropy(of["input"], of.contains("target") ? of["target"] : index, own);
          }};
}

OpCase nll_case(const std::string& name, Reduction reduction = Reduction::mean,
                bool weighted = false) {
  return {name, [=](Operands& of, const Tensor& index) {
            NllLossOptions options{.reduction = reduction};
            if (weighted) options.weight = classes();
            return nll_loss(of["input"], index, options);
          }};
}

/// Returns a case of a loss that takes an input and a target.
template <typename Options>
OpCase pair_case(const std::string& name,
                 Tensor (*loss)(Operand input, const Tensor& target, const Options& options),
                 const Options& options) {
  return {name,
          [=](Operands& of, const Tensor&) { return loss(of["input"], of["target"], options); }};
}

OpCase cosine_case(const std::string& name, int dim) {
  return {name,
          [dim](Operands& of, const Tensor&) { return cosine_similarity(of["a"], of["b"], dim); }};
}

OpCase embedding_case(const std::string& name, const CosineEmbeddingOptions& options) {
  return {name, [options](Operands& of, const Tensor& index) {
            return cosine_embedding_loss(of["a"], of["b"], cast(index, DType::f32), options);
          }};
}

std::vector<OpCase> class_cases() {
  return {
      cross_entropy_case("sum", {.reduction = Reduction::sum}),
      cross_entropy_case("none", {.reduction = Reduction::none}),
      cross_entropy_case("none_ignored", {.reduction = Reduction::none}),
      cross_entropy_case("sum_ignored", {.reduction = Reduction::sum}),
      cross_entropy_case("smoothing", {.label_smoothing = 0.3}),
      cross_entropy_case("smoothing_ignored", {.label_smoothing = 0.3}),
      cross_entropy_case("ignore_index", {.ignore_index = 2, .label_smoothing = 0.1}),
      cross_entropy_case("weight", {}, true),
      cross_entropy_case("weight_ignored", {}, true),
      cross_entropy_case("weight_none", {.reduction = Reduction::none}, true),
      cross_entropy_case("weight_smoothing", {.label_smoothing = 0.3}, true),
      cross_entropy_case("weight_smoothing_ignored", {.label_smoothing = 0.3}, true),
      cross_entropy_case("soft", {}),
      cross_entropy_case("soft_smoothing_sum",
                         {.label_smoothing = 0.2, .reduction = Reduction::sum}),
      cross_entropy_case("soft_none", {.reduction = Reduction::none}),
      cross_entropy_case("of_sequences", {}),
      nll_case("nll_loss"),
      nll_case("nll_loss_ignored"),
      nll_case("nll_loss_none", Reduction::none),
      nll_case("nll_loss_weight", Reduction::mean, true),
  };
}

std::vector<OpCase> cases() {
  std::vector<OpCase> all = class_cases();
  const std::vector<OpCase> others{
      pair_case<LossOptions>("mse_loss_sum", mse_loss, {.reduction = Reduction::sum}),
      pair_case<LossOptions>("l1_loss_none", l1_loss, {.reduction = Reduction::none}),
      pair_case<SmoothL1Options>("smooth_l1_loss", smooth_l1_loss, {}),
      pair_case<SmoothL1Options>("smooth_l1_loss_beta", smooth_l1_loss, {.beta = 0.4}),
      pair_case<SmoothL1Options>("smooth_l1_loss_linear", smooth_l1_loss, {.beta = 0}),
      pair_case<HuberOptions>("huber_loss", huber_loss, {}),
      pair_case<HuberOptions>("huber_loss_delta", huber_loss,
                              {.delta = 0.6, .reduction = Reduction::sum}),
      pair_case<LossOptions>("binary_cross_entropy", binary_cross_entropy, {}),
      pair_case<LossOptions>("binary_cross_entropy_none", binary_cross_entropy,
                             {.reduction = Reduction::none}),
      {"binary_cross_entropy_with_logits_pos_weight",
       [](Operands& of, const Tensor&) {
         return binary_cross_entropy_with_logits(
             of["input"], of["target"], {.pos_weight = f32({1.5, 0.5, 1, 2, 0.25, 3}, {6})});
       }},
      pair_case<KlDivOptions>("kl_div", kl_div, {}),
      pair_case<KlDivOptions>("kl_div_batch_mean", kl_div, {.reduction = Reduction::batch_mean}),
      pair_case<KlDivOptions>("kl_div_log_target", kl_div,
                              {.log_target = true, .reduction = Reduction::sum}),
      cosine_case("cosine_similarity", 1),
      cosine_case("cosine_similarity_dim_0", 0),
      cosine_case("cosine_similarity_broadcast", -1),
      embedding_case("cosine_embedding_loss", {}),
      embedding_case("cosine_embedding_loss_margin", {.margin = 0.2, .reduction = Reduction::none}),
  };
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

class TorchLoss : public ::testing::TestWithParam<OpCase> {};

TEST_P(TorchLoss, GivesItsValueAndGradients) {
  testing::expect_op_as_torch(GetParam(), "torch_nn/losses.safetensors");
}

TEST_P(TorchLoss, GivesThemOnChips) {
  const Mesh mesh({2, 2}, {"data", "model"});
  testing::expect_op_as_torch(GetParam(), "torch_nn/losses.safetensors", &mesh);
}

INSTANTIATE_TEST_SUITE_P(All, TorchLoss, ::testing::ValuesIn(cases()),
                         [](const auto& which) { return which.param.name; });

TEST(TorchLosses, CoverTheGoldenFile) {
  const testing::Safetensors file("torch_nn/losses.safetensors");
  std::size_t golden = 0;
  for (const std::string& name : file.names("")) golden += name.ends_with(".y");
  EXPECT_EQ(golden, cases().size());
}

using Losses = testing::TensorTest;

TEST_F(Losses, SampleWeightsGoWithEveryReduction) {
  const Tensor x = f32({1, 2, 3, 4}, {2, 2});
  const Tensor zero = full({2, 2}, 0);
  const Tensor rows = f32({1, 3}, {2});
  expect_near(l1_loss(x, zero, {.sample_weight = rows}), {(1 + 2 + 9 + 12) / 8.0});
  expect_near(l1_loss(x, zero, {.sample_weight = rows, .reduction = Reduction::sum}), {24});
  expect_near(l1_loss(x, zero, {.sample_weight = rows, .reduction = Reduction::none}),
              {1, 2, 9, 12});
  expect_near(l1_loss(x, zero, {.sample_weight = rows, .reduction = Reduction::batch_mean}), {12});
}

TEST_F(Losses, TheMeanDividesByBothWeights) {
  const Tensor logits = full({3, 2}, 0);  // the loss of each row is log 2
  const Tensor labels = i32({0, 1, -100}, {3});
  const Tensor weight = f32({1, 3}, {2});
  const Tensor sample = f32({2, 1, 5}, {3});
  const double log2 = std::log(2.0);
  expect_near(cross_entropy(logits, labels, {.sample_weight = sample, .weight = weight}), {log2});
  expect_near(
      cross_entropy(logits, labels,
                    {.sample_weight = sample, .weight = weight, .reduction = Reduction::none}),
      {2 * log2, 3 * log2, 0});
}

TEST_F(Losses, ProbabilitiesOfZeroAndOneHaveAFiniteLossAndGradient) {
  Parameter x = make_parameter("x", std::vector<float>{0, 1, 0, 1}, {4});
  const Tensor target = f32({0, 1, 1, 0}, {4});
  const Tensor losses = binary_cross_entropy(x, target, {.reduction = Reduction::none});
  const Tensor gradient = grad(sum(losses), std::vector{x})[0];
  sync();
  expect_near(losses, {0, 0, 100, 100});
  expect_near(gradient, {1, -1, 0, 0});
}

TEST_F(Losses, ATargetOfZeroAddsNothingToTheDivergence) {
  const Tensor input = f32({-1, -2}, {2});
  expect_near(kl_div(input, f32({0, 1}, {2}), {.reduction = Reduction::none}), {0, 2});
}

TEST_F(Losses, AreOfF32UnderAutocast) {
  const Tensor loss = autocast(DType::bf16, [] {
    const Tensor x = matmul(full({4, 4}, 1), full({4, 4}, 1));
    return huber_loss(x, full({4, 4}, 1));
  });
  EXPECT_EQ(loss.type().dtype, DType::f32);
  expect_near(loss, {2.5});
}

TEST_F(Losses, RefuseWhatDoesNotFit) {
  const Tensor x = full({2, 3}, 1);
  const Tensor labels = i32({0, 1}, {2});
  expect_error(
      Errc::invalid_argument,
      {"cross_entropy: the weight f32[2] doesn't fit: expected f32[3]", "torch_losses_test.cpp:"},
      [&] { cross_entropy(x, labels, {.weight = full({2}, 1)}); });
  expect_error(Errc::invalid_argument, {"label_smoothing = 2: expected 0 to 1"},
               [&] { cross_entropy(x, labels, {.label_smoothing = 2}); });
  expect_error(Errc::invalid_argument, {"logits f32[2,3] and probabilities f32[2]"},
               [&] { cross_entropy(x, full({2}, 1)); });
  expect_error(Errc::invalid_argument, {"ignore_index is set, but works only with labels"},
               [&] { cross_entropy(x, x, {.ignore_index = 1}); });
  expect_error(Errc::invalid_argument, {"nll_loss: logits f32[2,3] and labels i32[1] don't fit"},
               [&] { nll_loss(x, i32({0}, {1})); });
  expect_error(Errc::invalid_argument, {"huber_loss: delta = 0"},
               [&] { huber_loss(x, x, {.delta = 0}); });
  expect_error(Errc::invalid_argument, {"smooth_l1_loss: beta = -1"},
               [&] { smooth_l1_loss(x, x, {.beta = -1}); });
  expect_error(Errc::invalid_argument, {"kl_div: f32[2,3] and the target f32[3] differ"},
               [&] { kl_div(x, full({3}, 1)); });
  expect_error(Errc::invalid_argument, {"the pos_weight f32[4,2,3] doesn't broadcast to f32[2,3]"},
               [&] {
                 binary_cross_entropy_with_logits(x, x, {.pos_weight = full({4, 2, 3}, 1)});
               });
  expect_error(Errc::invalid_argument, {"the target f32[2,3] doesn't fit f32[2,3]"},
               [&] { cosine_embedding_loss(x, x, x); });
}

TEST_F(Losses, ALabelThatIsNoClassEndsTheRun) {
  const Tensor loss = nll_loss(full({2, 3}, -1), i32({0, 3}, {2}));
  expect_error(Errc::invalid_argument, {"3"}, [&] { loss.item(); });
}

}  // namespace
}  // namespace weft::torch_losses_test
