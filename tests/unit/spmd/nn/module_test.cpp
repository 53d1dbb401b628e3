#include <weft/nn/module.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include <weft/nn/containers.hpp>
#include <weft/nn/layers.hpp>
#include <weft/nn/transforms.hpp>
#include <weft/ops/elementwise.hpp>
#include <weft/optim/optimizer.hpp>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::module_test {
namespace {

using testing::expect_error;
using testing::f32;
using Floats = std::vector<float>;

struct Block : Module {
  Linear up{*this, "up", {.in_features = 4, .out_features = 8}};
  Linear down{*this, "down", {.in_features = 8, .out_features = 4, .bias = false}};

  Block(Module& parent, std::string name) : Module(parent, std::move(name)) {}
  Tensor operator()(const Tensor& x) const { return x + down(relu(up(x))); }
};

struct Net : Module {
  explicit Net(std::string name = "") : Module(std::move(name)) {
    for (int i = 0; i < 2; ++i) {
      blocks.push_back(std::make_unique<Block>(*this, fmt::format("blocks.{}", i)));
    }
  }
  Parameter scale = add_parameter("scale", Floats{2}, {1});
  std::vector<std::unique_ptr<Block>> blocks;
  Linear head{*this, "head", {.in_features = 4, .out_features = 2}};
};

std::vector<std::string> names(const Module& module) {
  std::vector<std::string> all;
  for (const Parameter& parameter : module.parameters()) all.push_back(parameter.name());
  return all;
}

TEST(Module, NamesParametersByTheirPathOwnOnesFirst) {
  EXPECT_EQ(names(Net()), (std::vector<std::string>{"scale", "head.weight", "head.bias",
                                                    "blocks.0.up.weight", "blocks.0.up.bias",
                                                    "blocks.0.down.weight", "blocks.1.up.weight",
                                                    "blocks.1.up.bias", "blocks.1.down.weight"}));
}

TEST(Module, ANamedRootStandsInFrontOfAllNames) {
  EXPECT_EQ(names(Net("teacher")).front(), "teacher.scale");
  EXPECT_EQ(names(Net("teacher")).back(), "teacher.blocks.1.down.weight");
}

struct Counter : Module {
  explicit Counter(Module& parent) : Module(parent, "counter") {}
  Parameter weight = add_parameter("weight", Floats{1, 2}, {2});
  Parameter mean = add_buffer("mean", Floats{3, 4}, {2});
  Parameter count = add_buffer("count", 0, {}, DType::i64);
};

TEST(Module, HasBuffersBesideItsParameters) {
  Module root("net");
  Counter counter(root);
  ASSERT_EQ(root.buffers().size(), 2U);
  EXPECT_EQ(root.buffers()[0].name(), "net.counter.mean");
  EXPECT_EQ(root.buffers()[1].type(), (TensorType{DType::i64, {}}));
  EXPECT_EQ(names(root), std::vector<std::string>{"net.counter.weight"});
  expect_error(Errc::invalid_argument, {"'net.counter.mean' is taken"}, [&] {
    struct Twice : Module {
      explicit Twice(Module& parent) : Module(parent, "counter") {
        add_buffer("mean", 0, {});
        add_parameter("mean", Floats{1}, {1});
      }
    };
    Module other("net");
    Twice twice(other);
  });
  expect_error(Errc::invalid_argument, {"buffer 'b'", "3 elements", "f32[2,2]"}, [] {
    make_buffer("b", Floats{1, 2, 3}, {2, 2});
  });
}

TEST(Module, ForgetsAChildThatIsGone) {
  Net net;
  net.blocks.pop_back();
  EXPECT_EQ(net.parameters().size(), 6U);
}

TEST(Module, AChildMayOutliveItsParent) {
  std::unique_ptr<Block> block;
  {
    Net net;
    block = std::move(net.blocks.front());
  }
  EXPECT_EQ(names(*block).front(), "blocks.0.up.weight");
}

TEST(Module, RefusesEmptyAndRepeatedNames) {
  struct Twice : Module {
    Linear a{*this, "fc", {.in_features = 1, .out_features = 1}};
    Linear b{*this, "fc", {.in_features = 1, .out_features = 1}};
  };
  expect_error(Errc::invalid_argument, {"the name 'fc' is taken"}, [] { Twice(); });
  struct Nameless : Module {
    Parameter p = add_parameter("", Floats{1}, {1});
  };
  expect_error(Errc::invalid_argument, {"has no name"}, [] { Nameless(); });
}

TEST(Module, RefusesAWrongNumberOfElements) {
  expect_error(Errc::invalid_argument,
               {"parameter 'w': 3 elements are given for f32[2,2], which has 4"}, [] {
                 make_parameter("w", Floats{1, 2, 3}, {2, 2});
               });
}

TEST(Linear, StartsUniformByFanIn) {
  struct Wide : Module {
    Linear fc{*this, "fc", {.in_features = 100, .out_features = 200}};
  };
  const Wide net;
  const Floats weight = net.fc.weight.to_vector();
  ASSERT_EQ(weight.size(), 20000U);
  const auto [low, high] = std::minmax_element(weight.begin(), weight.end());
  EXPECT_GE(*low, -0.1F);
  EXPECT_LT(*low, -0.0999F);
  EXPECT_LT(*high, 0.1F);
  EXPECT_GT(*high, 0.0999F);
  double total = 0;
  double squares = 0;
  for (const float w : weight) {
    total += w;
    squares += w * w;
  }
  // The tolerances are six standard errors of the mean and of the mean square of numbers that are
  // distributed uniformly.
  EXPECT_NEAR(total / 20000, 0, 6 * 0.1 / std::sqrt(3 * 20000.0));
  EXPECT_NEAR(squares / 20000, 0.01 / 3, 6 * 0.01 * std::sqrt(4.0 / 45) / std::sqrt(20000.0));
}

TEST(Linear, StartsFromTheSeedAndItsNameAlone) {
  struct Two : Module {
    Linear a{*this, "a", {.in_features = 3, .out_features = 2}};
    Linear b{*this, "b", {.in_features = 3, .out_features = 2}};
  };
  struct Reversed : Module {
    Linear b{*this, "b", {.in_features = 3, .out_features = 2}};
    Linear a{*this, "a", {.in_features = 3, .out_features = 2}};
  };
  const Two first;
  const Reversed second;
  EXPECT_EQ(first.a.weight.to_vector(), second.a.weight.to_vector());
  EXPECT_EQ(first.b.bias.to_vector(), second.b.bias.to_vector());
  EXPECT_NE(first.a.weight.to_vector(), first.b.weight.to_vector());
  manual_seed(1);
  const Two other;
  manual_seed(0);
  EXPECT_NE(first.a.weight.to_vector(), other.a.weight.to_vector());
}

TEST(Linear, RefusesSizesBelowOne) {
  struct Bad : Module {
    Linear fc{*this, "fc", {.in_features = 0, .out_features = 1}};
  };
  expect_error(Errc::invalid_argument, {"fc", "in_features = 0"}, [] { Bad(); });
}

using LinearOps = testing::TensorTest;

TEST_F(LinearOps, AppliesWeightAndBias) {
  struct One : Module {
    Linear fc{*this, "fc", {.in_features = 2, .out_features = 1}};
  };
  One net;
  net.fc.weight.assign(f32({2, 3}, {1, 2}));
  net.fc.bias.assign(f32({100}, {1}));
  EXPECT_EQ(net.fc(f32({1, 1, 0, 1}, {2, 2})).to_vector(), (Floats{105, 103}));
}

TEST_F(LinearOps, ErrorsNameTheWeightAndTheLine) {
  struct One : Module {
    Linear fc{*this, "fc", {.in_features = 2, .out_features = 1}};
  };
  const One net;
  const Tensor x = f32({1, 2, 3}, {1, 3});
  const int line = __LINE__ + 1;
  const auto call = [&] { net.fc(x); };
  expect_error(Errc::invalid_argument,
               {"f32[1,3] and the weight 'fc.weight' f32[1,2] don't fit",
                fmt::format("(at module_test.cpp:{})", line)},
               call);
}

TEST(ModuleList, NamesItsLayersByNumber) {
  Module root;
  ModuleList<Linear> layers(root, "layers");
  for (int i = 0; i < 3; ++i) layers.add(Linear::Options{.in_features = 2, .out_features = 2});
  EXPECT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[2].bias.name(), "layers.2.bias");
  std::vector<std::string> weights;
  for (const Linear& layer : layers) weights.push_back(layer.weight.name());
  EXPECT_EQ(weights,
            (std::vector<std::string>{"layers.0.weight", "layers.1.weight", "layers.2.weight"}));
  EXPECT_EQ(root.parameters().size(), 6U);
  EXPECT_THROW(layers[3], std::out_of_range);
  root.eval();
  EXPECT_FALSE(layers[1].is_training());
}

TEST(ModuleDict, KeepsTheOrderOfItsNames) {
  Module root;
  ModuleDict<Linear> heads(root, "heads");
  heads.add("value", Linear::Options{.in_features = 2, .out_features = 1, .bias = false});
  heads.add("policy", Linear::Options{.in_features = 2, .out_features = 3, .bias = false});
  EXPECT_EQ(heads.keys(), (std::vector<std::string>{"value", "policy"}));
  EXPECT_EQ(names(root), (std::vector<std::string>{"heads.value.weight", "heads.policy.weight"}));
  EXPECT_EQ(heads["policy"].weight.shape(), (Shape{3, 2}));
  EXPECT_TRUE(heads.contains("value"));
  EXPECT_FALSE(heads.contains("critic"));
  EXPECT_THROW(heads["critic"], std::out_of_range);
  expect_error(Errc::invalid_argument, {"'heads.value' is taken"},
               [&] { heads.add("value", Linear::Options{.in_features = 2, .out_features = 1}); });
  EXPECT_EQ(heads.size(), 2U);
}

using Freezing = testing::TensorTest;

struct Two : Module {
  Linear body{*this, "body", {.in_features = 2, .out_features = 2}};
  Linear head{*this, "head", {.in_features = 2, .out_features = 1, .bias = false}};

  Tensor operator()(const Tensor& x) const { return sum(head(tanh(body(x)))); }
};

std::size_t num_ops_of_gradients(bool frozen, testing::InterpretRuntime& runtime) {
  Two net;
  net.body.requires_grad(!frozen);
  const auto grads = grad(net(f32({1, 2}, {1, 2})), net.parameters());
  sync();
  return runtime.programs.back().num_ops();
}

TEST_F(Freezing, FrozenParametersHaveNoGradientAndStayAsTheyAre) {
  Two net;
  net.body.requires_grad(false);
  EXPECT_FALSE(net.body.bias.requires_grad());
  EXPECT_FALSE(net.parameters()[0].requires_grad());
  const Floats body = net.body.weight.to_vector();
  const Floats head = net.head.weight.to_vector();
  AdamW optimizer(net.parameters(), {.lr = 0.1});
  std::vector<Tensor> grads = grad(net(f32({1, 2}, {1, 2})), net.parameters());
  ASSERT_EQ(grads.size(), 3U);
  EXPECT_FALSE(grads[0].defined());
  EXPECT_FALSE(grads[1].defined());
  clip_by_global_norm(grads, 1);
  optimizer.step(grads);
  sync();
  EXPECT_EQ(net.body.weight.to_vector(), body);
  EXPECT_NE(net.head.weight.to_vector(), head);

  net.requires_grad(true);
  optimizer.step(grad(net(f32({1, 2}, {1, 2})), net.parameters()));
  sync();
  EXPECT_NE(net.body.weight.to_vector(), body);
}

TEST_F(Freezing, NothingIsComputedForThem) {
  EXPECT_LT(num_ops_of_gradients(true, runtime_), num_ops_of_gradients(false, runtime_));
}

TEST_F(Freezing, MicroBatchesLeaveThemOut) {
  Two net;
  net.body.requires_grad(false);
  const std::vector<Tensor> batch{f32({1, 2, 3, 4}, {2, 2})};
  const auto [loss, grads] = micro_batches(
      2, batch, net.parameters(), [&](std::span<const Tensor> part) { return net(part[0]); });
  EXPECT_FALSE(grads[0].defined());
  EXPECT_EQ(grads[2].shape(), (Shape{1, 2}));
}

TEST_F(Freezing, AnEmptyGradientOfATrainedOneIsRefused) {
  Two net;
  SGD optimizer(net.parameters(), {});
  expect_error(Errc::invalid_argument, {"has no value"},
               [&] { optimizer.step(std::vector<Tensor>(3)); });
}

struct Tied : Module {
  Linear in{*this, "in", {.in_features = 2, .out_features = 2, .bias = false}};
  Linear out{*this, "out", {.in_features = 2, .out_features = 2, .bias = false}};
  Tied() { out.tie(out.weight, in.weight); }

  Tensor operator()(const Tensor& x) const { return sum(out(in(x))); }
};

using Tying = testing::TensorTest;

TEST_F(Tying, ATiedParameterIsThereOnceAndHasTheSumOfItsGradients) {
  Tied net;
  EXPECT_EQ(names(net), std::vector<std::string>{"in.weight"});
  EXPECT_EQ(names(net.out), std::vector<std::string>{"in.weight"});
  net.in.weight.assign(f32({1, 2, 3, 4}, {2, 2}));
  // x = (1, 1), so y = W x = (3, 7). The gradient of sum(W y) by W is 1 y' + (W' 1) x'.
  const std::vector<Tensor> grads = grad(net(f32({1, 1}, {1, 2})), net.parameters());
  ASSERT_EQ(grads.size(), 1U);
  EXPECT_EQ(grads[0].to_vector(), (Floats{3 + 4, 7 + 4, 3 + 6, 7 + 6}));
}

TEST_F(Tying, RefusesWhatIsNotItsOwnOrNotOfOneType) {
  Two net;
  expect_error(Errc::invalid_argument,
               {"Module 'head'", "'body.bias' f32[2] isn't a direct parameter of"},
               [&] { net.head.tie(net.body.bias, net.body.weight); });
  expect_error(Errc::invalid_argument,
               {"'head.weight' f32[1,2] can't be tied to 'body.weight' f32[2,2]"},
               [&] { net.head.tie(net.head.weight, net.body.weight); });
}

using Containers = testing::TensorTest;

TEST_F(Containers, SequentialTakesFunctionsWithOptions) {
  Module root;
  Sequential layers(root, "layers");
  layers.add([](const Tensor& x) { return leaky_relu(x, 0.5); })
      .add<Identity>()
      .add<Linear>(Linear::Options{.in_features = 2, .out_features = 1});
  EXPECT_EQ(names(root), (std::vector<std::string>{"layers.2.weight", "layers.2.bias"}));
  EXPECT_EQ(layers(f32({-2, 4}, {1, 2})).shape(), (Shape{1, 1}));
}

}  // namespace
}  // namespace weft::module_test
