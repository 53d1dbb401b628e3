#include <weft/nn/lora.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weft/optim/optimizer.hpp>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::lora_test {
namespace {

using testing::expect_error;
using testing::expect_near;
using testing::f32;
using Floats = std::vector<float>;

struct Net : Module {
  struct Block : Module {
    using Module::Module;
    Linear q_proj{*this, "q_proj", {.in_features = 2, .out_features = 3}};
    Linear v_proj{*this, "v_proj", {.in_features = 3, .out_features = 2, .bias = false}};
  };
  Block block{*this, "block"};

  Tensor operator()(const Tensor& x) const { return block.v_proj(block.q_proj(x)); }
};

void set(Parameter parameter, const Floats& elements) {
  parameter.assign(to_device(elements, parameter.shape()));
}

/// A fixture with W = [[1, 0], [0, 1], [1, 1]], b = [0.5, 0, 0], A = [[1, 2]] and B = [[1], [0],
/// [-1]].
class LoRATest : public testing::TensorTest {
 protected:
  void set_all(const LoRA& lora) {
    set(net.block.q_proj.weight, {1, 0, 0, 1, 1, 1});
    set(net.block.q_proj.bias, {0.5, 0, 0});
    set(lora.parameters()[0], {1, 2});
    set(lora.parameters()[1], {1, 0, -1});
    sync();
  }

  Net net;
  const LoRA::Options options{.rank = 1, .alpha = 2, .target_modules = {"q_proj"}};
};

TEST_F(LoRATest, AddsTheScaledProductOfItsMatrices) {
  const LoRA lora(net, options);
  set_all(lora);
  const Tensor x = f32({3, -1}, {1, 2});
  // W x + b = [3.5, -1, 2]; A x = 1; alpha / rank = 2.
  expect_near(net.block.q_proj(x), {5.5, -1, 0});
}

TEST_F(LoRATest, ChangesNothingAtFirstAndAfterItsEnd) {
  const Tensor x = f32({3, -1}, {1, 2});
  const Floats before = net(x).to_vector();
  {
    const LoRA lora(net, {.rank = 2});
    EXPECT_EQ(net(x).to_vector(), before);
    set(lora.parameters()[1], Floats(6, 1.0F));
    sync();
    EXPECT_NE(net(x).to_vector(), before);
  }
  EXPECT_EQ(net(x).to_vector(), before);
}

TEST_F(LoRATest, HasTheNamesAndShapesOfPeftsFiles) {
  const LoRA lora(net, {.rank = 4});
  std::vector<std::string> names;
  for (const Parameter& p : lora.parameters()) names.push_back(p.node()->label());
  EXPECT_EQ(names,
            (std::vector<std::string>{"'base_model.model.block.q_proj.lora_A.weight' f32[4,2]",
                                      "'base_model.model.block.q_proj.lora_B.weight' f32[3,4]",
                                      "'base_model.model.block.v_proj.lora_A.weight' f32[4,3]",
                                      "'base_model.model.block.v_proj.lora_B.weight' f32[2,4]"}));
}

TEST_F(LoRATest, TrainsItsParametersAlone) {
  const LoRA lora(net, options);
  set_all(lora);
  const auto is_frozen = [](const Parameter& p) { return !p.requires_grad(); };
  EXPECT_TRUE(std::ranges::all_of(net.parameters(), is_frozen));
  SGD optimizer(lora.parameters(), {.lr = 1});
  // With y = W x + b + 2 B (A x) and the loss sum(y): dB = 2 A x, dA = 2 (sum of B) x.
  const Tensor x = f32({3, -1}, {1, 2});
  optimizer.step(grad(sum(net.block.q_proj(x)), lora.parameters()));
  sync();
  expect_near(lora.parameters()[0], {1, 2});
  expect_near(lora.parameters()[1], {-1, -2, -3});
  expect_near(net.block.q_proj.weight, {1, 0, 0, 1, 1, 1});
}

TEST_F(LoRATest, MergesIntoTheWeightsAndBack) {
  LoRA lora(net, options);
  set_all(lora);
  const Tensor x = f32({3, -1}, {1, 2});
  lora.merge();
  sync();
  expect_near(net.block.q_proj.weight, {3, 4, 0, 1, -1, -3});
  expect_near(net.block.q_proj(x), {5.5, -1, 0});
  expect_error(Errc::invalid_argument, {"LoRA::merge: the adapters are already merged"},
               [&] { lora.merge(); });
  lora.unmerge();
  sync();
  expect_near(net.block.q_proj.weight, {1, 0, 0, 1, 1, 1});
  expect_near(net.block.q_proj(x), {5.5, -1, 0});
  expect_error(Errc::invalid_argument, {"LoRA::unmerge: the adapters aren't merged"},
               [&] { lora.unmerge(); });
}

TEST_F(LoRATest, RefusesWhatItCannotAdapt) {
  expect_error(Errc::invalid_argument,
               {"the target 'k_proj' isn't a Linear of the module; its Linear layers are "
                "'block.q_proj', 'block.v_proj'"},
               [&] { LoRA(net, {.target_modules = {"k_proj"}}); });
  expect_error(Errc::invalid_argument, {"rank = 0"}, [&] { LoRA(net, {.rank = 0}); });
  const LoRA lora(net, options);
  expect_error(Errc::invalid_argument, {"'block.q_proj' already has an adapter"},
               [&] { LoRA(net, options); });
}

}  // namespace
}  // namespace weft::lora_test
