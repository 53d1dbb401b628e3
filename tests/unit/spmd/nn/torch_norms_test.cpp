/// Compares normalization layers with torch (tests/golden/torch_nn/norms.py).

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weft/nn/conv_layers.hpp>
#include <weft/nn/layers.hpp>
#include <weft/nn/losses.hpp>
#include <weft/nn/norm_layers.hpp>
#include <weft/optim/optimizer.hpp>
#include <weft/sharding/presets.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/golden_training.hpp"
#include "tests/support/simulate_runtime.hpp"
#include "tests/support/torch_ops.hpp"
#include "tests/support/torch_training.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::torch_norms_test {
namespace {

using testing::expect_error;
using testing::golden_entry;
using testing::load_golden;
using testing::OpCase;
using testing::Operands;
using testing::Safetensors;

template <typename Layer, typename Options>
OpCase layer_case(const std::string& name, const Options& options) {
  return {name, [options](Operands& of, const Tensor&) {
            Module root;
            Layer layer(root, "layer", options);
            if (of.contains("scale")) layer.weight = of["scale"];
            if (of.contains("bias")) layer.bias = of["bias"];
            return layer(of["x"]);
          }};
}

std::vector<OpCase> cases() {
  const BatchNormOptions batch{.num_features = 4};
  const BatchNormOptions plain{.num_features = 4, .affine = false, .track_running_stats = false};
  const InstanceNormOptions instance{.num_features = 4};
  const GroupNorm::Options groups{.num_groups = 2, .num_channels = 4};
  return {
      layer_case<BatchNorm1d>("batch_norm1d", batch),
      layer_case<BatchNorm1d>("batch_norm1d_of_lines", batch),
      layer_case<BatchNorm2d>("batch_norm2d", batch),
      layer_case<BatchNorm2d>("batch_norm2d_without_weights", plain),
      layer_case<GroupNorm>("group_norm", groups),
      layer_case<GroupNorm>("group_norm_of_rows", groups),
      layer_case<GroupNorm>(
          "group_norm_eps",
          GroupNorm::Options{.num_groups = 1, .num_channels = 4, .eps = 0.5, .affine = false}),
      layer_case<InstanceNorm1d>("instance_norm1d",
                                 InstanceNormOptions{.num_features = 4, .affine = true}),
      layer_case<InstanceNorm2d>("instance_norm2d", instance),
  };
}

class TorchNorm : public ::testing::TestWithParam<OpCase> {};

TEST_P(TorchNorm, GivesItsValueAndGradients) {
  testing::expect_op_as_torch(GetParam(), "torch_nn/norms.safetensors");
}

TEST_P(TorchNorm, GivesThemOnChips) {
  const Mesh mesh({2, 2}, {"data", "model"});
  testing::expect_op_as_torch(GetParam(), "torch_nn/norms.safetensors", &mesh);
}

INSTANTIATE_TEST_SUITE_P(All, TorchNorm, ::testing::ValuesIn(cases()),
                         [](const auto& which) { return which.param.name; });

struct Net : Module {
  Conv2d conv{*this,
              "conv",
              {.in_channels = 2, .out_channels = 4, .kernel_size = 3, .window = {.padding = 1}}};
  BatchNorm2d bn{*this, "bn", {.num_features = 4, .momentum = 0.3}};
  GroupNorm gn{*this, "gn", {.num_groups = 2, .num_channels = 4}};
  InstanceNorm2d instance{
      *this, "instance", {.num_features = 4, .affine = true, .track_running_stats = true}};
  Linear fc{*this, "fc", {.in_features = 32, .out_features = 8}};
  BatchNorm1d mean{*this, "mean", {.num_features = 8, .momentum = std::nullopt}};
  BatchNorm1d plain{
      *this, "plain", {.num_features = 8, .affine = false, .track_running_stats = false}};
  Linear head{*this, "head", {.in_features = 8, .out_features = 5}};

  Tensor operator()(const Tensor& x) const {
    const Tensor y = gn(relu(bn(conv(x))));
    const Tensor z = avg_pool2d(instance(tanh(y)) * y, {.kernel_size = 2});
    const Tensor t = tanh(mean(fc(reshape(z, {-1, 32}))));
    return head(plain(t * t));
  }
};

/// Shards the rows over the mesh's data axis, if there is a mesh.
Tensor divided(const Tensor& tensor, const Mesh* mesh) {
  if (mesh != nullptr) data_parallel({tensor}, *mesh);
  return tensor;
}

void expect_training_as_torch(Runtime& runtime, const Mesh* mesh) {
  const RuntimeScope scope(runtime);
  const Safetensors file("torch_nn/train_norms.safetensors");
  Net net;
  if (mesh != nullptr) {
    tensor_parallel(net, *mesh,
                    {{"conv", TensorParallelStyle::columns}, {"bn", TensorParallelStyle::columns}});
  }
  load_golden(file, "parameter.", net.parameters());
  load_golden(file, "buffer.", net.buffers());
  SGD optimizer(net.parameters(), {.lr = 0.05, .momentum = 0.9});
  std::vector<float> losses;
  for (int step = 0; step < 3; ++step) {
    const Tensor x = divided(golden_entry<float>(file, "x", step), mesh);
    const Tensor loss =
        cross_entropy(net(x), divided(golden_entry<std::int32_t>(file, "labels", step), mesh));
    optimizer.step(grad(loss, net.parameters()));
    sync();
    losses.push_back(static_cast<float>(loss.item()));
  }
  testing::expect_as_torch("loss", losses, file.elements<float>("loss"));
  std::vector<Parameter> state = net.parameters();
  for (const Parameter& buffer : net.buffers()) state.push_back(buffer);
  EXPECT_EQ(file.names("after.").size(), state.size());
  for (const Parameter& own : state) {
    const std::string name = "after." + own.name();
    if (own.type().dtype == DType::i64) {
      EXPECT_EQ(own.item(), file.elements<std::int32_t>(name).at(0)) << name;
    } else {
      testing::expect_as_torch(name, own.to_vector(), file.elements<float>(name));
    }
  }
  net.eval();
  const Tensor logits = net(divided(golden_entry<float>(file, "x", 0), mesh));
  testing::expect_as_torch("logits", logits.to_vector(), file.elements<float>("logits"));
}

TEST(TorchNorms, TrainingUpdatesRunningStatisticsThatEvaluationUses) {
  testing::InterpretRuntime runtime;
  expect_training_as_torch(runtime, nullptr);
}

TEST(TorchNorms, ChipsTrainWithTheGlobalBatchsStatistics) {
  testing::SimulateRuntime runtime(Mesh({2, 2}, {"data", "model"}));
  expect_training_as_torch(runtime, runtime.mesh());
}

using NormLayers = testing::TensorTest;

TEST_F(NormLayers, HaveTorchsNames) {
  Module root;
  const BatchNorm1d bn(root, "bn", {.num_features = 3});
  const InstanceNorm1d plain(root, "plain", {.num_features = 3});
  std::vector<std::string> names;
  for (const Parameter& own : root.parameters()) names.push_back(own.name());
  for (const Parameter& own : root.buffers()) names.push_back(own.name());
  EXPECT_EQ(names, (std::vector<std::string>{"bn.weight", "bn.bias", "bn.running_mean",
                                             "bn.running_var", "bn.num_batches_tracked"}));
  EXPECT_EQ(bn.running_var.to_vector(), std::vector<float>(3, 1));
}

TEST_F(NormLayers, EvaluationLeavesTheBuffersAsTheyAre) {
  Module root;
  BatchNorm1d bn(root, "bn", {.num_features = 2, .eps = 0});
  bn.eval();
  EXPECT_EQ(bn(testing::f32({1, 2}, {1, 2})).to_vector(), (std::vector<float>{1, 2}));
  EXPECT_EQ(bn.num_batches_tracked.item(), 0);
}

TEST_F(NormLayers, RefuseWhatDoesNotFit) {
  Module root;
  const BatchNorm2d bn(root, "bn", {.num_features = 3});
  expect_error(Errc::invalid_argument,
               {"BatchNorm2d: 'bn' expects 4 dims, [N,C,...] with C = 3, but got f32[2,3,4]",
                "torch_norms_test.cpp:"},
               [&] {
                 bn(full({2, 3, 4}, 1));
               });
  expect_error(Errc::invalid_argument, {"with C = 3, but got f32[2,4,1,1]"}, [&] {
    bn(full({2, 4, 1, 1}, 1));
  });
  expect_error(Errc::invalid_argument, {"'bn' can't train on f32[1,3,1,1]", "1 element"}, [&] {
    bn(full({1, 3, 1, 1}, 1));
  });
  expect_error(Errc::invalid_argument, {"BatchNorm1d 'b'", "momentum = 2"},
               [&] { BatchNorm1d(root, "b", {.num_features = 3, .momentum = 2}); });
  expect_error(Errc::invalid_argument, {"GroupNorm 'g'", "num_groups = 2", "num_channels 3"},
               [&] { GroupNorm(root, "g", {.num_groups = 2, .num_channels = 3}); });
  expect_error(Errc::invalid_argument, {"group_norm: num_groups = 4", "3 channels"}, [&] {
    group_norm(full({2, 3, 4}, 1), 4);
  });
  expect_error(Errc::invalid_argument, {"instance_norm: f32[2,3]"}, [&] {
    instance_norm(full({2, 3}, 1));
  });
}

TEST(TorchNorms, CoverTheGoldenFile) {
  const Safetensors file("torch_nn/norms.safetensors");
  std::size_t golden = 0;
  for (const std::string& name : file.names("")) golden += name.ends_with(".y");
  EXPECT_EQ(golden, cases().size());
}

}  // namespace
}  // namespace weft::torch_norms_test
