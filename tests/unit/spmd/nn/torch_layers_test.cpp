/// Compares recurrent and convolution layers with torch (tests/golden/torch_nn/layers.py).

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weft/nn/conv_layers.hpp>
#include <weft/nn/recurrent.hpp>
#include <weft/nn/transforms.hpp>
#include <weft/ops/elementwise.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/safetensors.hpp"
#include "tests/support/torch_layers.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::torch_layers_test {
namespace {

using testing::expect_error;
using testing::layer_case;
using testing::OpCase;
using testing::Operands;

Tensor joined(const std::vector<Tensor>& results) {
  std::vector<Tensor> rows;
  for (const Tensor& result : results) rows.push_back(reshape(result, {-1}));
  return cat(rows);
}
Tensor flat(const RecurrentResult& result) { return joined({result.output, result.h_n}); }
Tensor flat(const LSTM::Result& result) { return joined({result.output, result.h_n, result.c_n}); }

constexpr RecurrentOptions kOne{.input_size = 3, .hidden_size = 4};

template <typename Layer>
OpCase recurrent_case(const std::string& name, const RecurrentOptions& options) {
  return layer_case<Layer>(name, options, [](const Layer& layer, Operands& of, const Tensor&) {
    return flat(layer(of["x"]));
  });
}

std::vector<OpCase> recurrent_cases() {
  RecurrentOptions both = kOne;
  both.num_layers = 2;
  both.batch_first = true;
  both.bidirectional = true;
  RecurrentOptions without_bias = kOne;
  without_bias.bias = false;
  RecurrentOptions two = kOne;
  two.num_layers = 2;
  return {
      recurrent_case<RNN>("rnn", kOne),
      recurrent_case<RNN>("rnn_layers", both),
      recurrent_case<GRU>("gru", kOne),
      recurrent_case<GRU>("gru_layers", both),
      recurrent_case<LSTM>("lstm", kOne),
      recurrent_case<LSTM>("lstm_layers", both),
      layer_case<GRU>("gru_state", without_bias,
                      [](const GRU& layer, Operands& of, const Tensor&) {
                        return flat(layer(of["x"], of["h"]));
                      }),
      layer_case<LSTM>("lstm_state", two,
                       [](const LSTM& layer, Operands& of, const Tensor&) {
                         return flat(layer(of["x"], {of["h"], of["c"]}));
                       }),
  };
}

template <typename Layer>
OpCase conv_case(const std::string& name, const typename Layer::Options& options) {
  return layer_case<Layer>(
      name, options, [](const Layer& layer, Operands& of, const Tensor&) { return layer(of["x"]); },
      "conv.");
}

std::vector<OpCase> cases() {
  std::vector<OpCase> all = recurrent_cases();
  const std::vector<OpCase> convolutions{
      conv_case<Conv1d>("conv1d", {.in_channels = 4,
                                   .out_channels = 6,
                                   .kernel_size = 3,
                                   .window = {.stride = 2, .padding = 1, .groups = 2}}),
      conv_case<Conv2d>("conv2d", {.in_channels = 4,
                                   .out_channels = 2,
                                   .kernel_size = {3, 1},
                                   .window = {.dilation = 2},
                                   .bias = false}),
      conv_case<Conv3d>("conv3d", {.in_channels = 2,
                                   .out_channels = 4,
                                   .kernel_size = {1, 2, 3},
                                   .window = {.padding = {0, 1, 1}}}),
      conv_case<ConvTranspose1d>("conv_transpose1d", {.in_channels = 4,
                                                      .out_channels = 2,
                                                      .kernel_size = 4,
                                                      .window = {.stride = 2, .padding = 1}}),
      conv_case<ConvTranspose2d>(
          "conv_transpose2d",
          {.in_channels = 4,
           .out_channels = 6,
           .kernel_size = {3, 2},
           .window = {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2}}),
      conv_case<ConvTranspose3d>(
          "conv_transpose3d",
          {.in_channels = 2, .out_channels = 2, .kernel_size = 2, .bias = false}),
  };
  all.insert(all.end(), convolutions.begin(), convolutions.end());
  return all;
}

class TorchLayer : public ::testing::TestWithParam<OpCase> {};

TEST_P(TorchLayer, GivesItsValueAndGradients) {
  testing::expect_op_as_torch(GetParam(), "torch_nn/layers.safetensors");
}

TEST_P(TorchLayer, GivesThemOnChips) {
  const Mesh mesh({2, 2}, {"data", "model"});
  testing::expect_op_as_torch(GetParam(), "torch_nn/layers.safetensors", &mesh);
}

INSTANTIATE_TEST_SUITE_P(All, TorchLayer, ::testing::ValuesIn(cases()),
                         [](const auto& which) { return which.param.name; });

TEST(TorchLayers, CoverTheGoldenFile) {
  const testing::Safetensors file("torch_nn/layers.safetensors");
  std::size_t golden = 0;
  for (const std::string& name : file.names("")) golden += name.ends_with(".y");
  EXPECT_EQ(golden, cases().size());
}

using RecurrentLayers = testing::TensorTest;

TEST_F(RecurrentLayers, HaveTorchsNames) {
  Module root;
  const LSTM lstm(root, "lstm",
                  {.input_size = 3, .hidden_size = 2, .num_layers = 2, .bidirectional = true});
  std::vector<std::string> names;
  for (const Parameter& own : root.parameters()) {
    names.push_back(fmt::format("{} {}", own.name(), own.type().to_string()));
  }
  ASSERT_EQ(names.size(), 16U);
  EXPECT_EQ(names[0], "lstm.weight_ih_l0 f32[8,3]");
  EXPECT_EQ(names[1], "lstm.weight_hh_l0 f32[8,2]");
  EXPECT_EQ(names[2], "lstm.bias_ih_l0 f32[8]");
  EXPECT_EQ(names[3], "lstm.bias_hh_l0 f32[8]");
  EXPECT_EQ(names[4], "lstm.weight_ih_l0_reverse f32[8,3]");
  EXPECT_EQ(names[8], "lstm.weight_ih_l1 f32[8,4]");
}

TEST_F(RecurrentLayers, DropBetweenLayersInTrainingOnly) {
  Module root;
  RecurrentOptions options = kOne;
  options.num_layers = 2;
  options.dropout = 0.5;
  GRU gru(root, "gru", options);
  const Tensor x = full({5, 4, 3}, 1);
  const std::vector<float> trained = gru(x).output.to_vector();
  gru.eval();
  const std::vector<float> evaluated = gru(x).output.to_vector();
  EXPECT_NE(trained, evaluated);
  EXPECT_EQ(gru(x).output.to_vector(), evaluated);
}

TEST_F(RecurrentLayers, CarryF32UnderAutocast) {
  Module root;
  const RNN rnn(root, "rnn", kOne);
  const RecurrentResult result = autocast(DType::bf16, [&] { return rnn(full({5, 4, 3}, 1)); });
  EXPECT_EQ(result.h_n.type(), (TensorType{DType::f32, {1, 4, 4}}));
}

TEST_F(RecurrentLayers, RefuseWhatDoesNotFit) {
  Module root;
  const LSTM lstm(root, "lstm", kOne);
  expect_error(Errc::invalid_argument,
               {"LSTM: 'lstm' expects a non-empty [time,batch,3], but got f32[5,3]",
                "torch_layers_test.cpp:"},
               [&] {
                 lstm(full({5, 3}, 1));
               });
  expect_error(Errc::invalid_argument, {"the first state f32[1,4]", "expected [1x2x4]"}, [&] {
    lstm(full({5, 2, 3}, 1), {.h_0 = full({1, 4}, 0)});
  });
  expect_error(Errc::invalid_argument, {"GRU 'gru'", "hidden_size = 0"},
               [&] { GRU(root, "gru", {.input_size = 3}); });
  expect_error(Errc::invalid_argument, {"Conv1d 'c'", "groups = 3"}, [&] {
    Conv1d(root, "c", {.in_channels = 2, .out_channels = 2, .window = {.groups = 3}});
  });
  expect_error(Errc::invalid_argument, {"ConvTranspose2d 't'", "kernel_size = 0"}, [&] {
    ConvTranspose2d(root, "t", {.in_channels = 2, .out_channels = 2, .kernel_size = 0});
  });
}

}  // namespace
}  // namespace weft::torch_layers_test
