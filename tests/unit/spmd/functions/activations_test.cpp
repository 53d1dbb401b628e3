// Tests what activations refuse, and the layer that has a parameter; samples_test.cpp compares
// activations with torch.

#include <gtest/gtest.h>

#include <cmath>

#include <weft/nn/layers.hpp>
#include <weft/optim/optimizer.hpp>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::activations_test {
namespace {

using testing::expect_error;
using testing::f32;
using Floats = std::vector<float>;

class Activations : public testing::TensorTest {};

TEST_F(Activations, RefuseArgumentsThatHaveNoValue) {
  const Tensor x = f32({1, 2, 3}, {1, 3});
  expect_error(Errc::invalid_argument, {"celu: alpha = 0", "activations_test.cpp:"},
               [&] { celu(x, 0); });
  expect_error(Errc::invalid_argument, {"hardtanh: min_val = 1, max_val = -1"},
               [&] { hardtanh(x, 1, -1); });
  expect_error(Errc::invalid_argument, {"softshrink: lambd = -1", "0 or more"},
               [&] { softshrink(x, -1); });
  expect_error(Errc::invalid_argument, {"glu", "dim -1 has 3 elements", "even number"},
               [&] { glu(x); });
  expect_error(Errc::invalid_argument, {"prelu", "f32[2]", "f32[1,3]", "3 numbers for dim 1"}, [&] {
    prelu(x, f32({1, 2}, {2}));
  });
}

TEST_F(Activations, LetNaNPass) {
  const Tensor x = f32({std::nanf(""), -std::nanf("")}, {2});
  const std::vector<Tensor> results{celu(x),
                                    selu(x),
                                    hardtanh(x),
                                    relu6(x),
                                    threshold(x, 1, 2),
                                    hardshrink(x),
                                    softshrink(x),
                                    tanhshrink(x),
                                    softsign(x),
                                    logsigmoid(x),
                                    glu(x),
                                    softmin(x),
                                    prelu(x, f32({0.5}, {1}))};
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const float y : results[i].to_vector()) EXPECT_TRUE(std::isnan(y)) << i;
  }
}

TEST_F(Activations, HaveASlopeThatIsTrained) {
  struct Net : Module {
    PReLU one{*this, "one", {}};
    PReLU each{*this, "each", {.num_parameters = 2, .init = 0.5}};
  } net;
  const Tensor x = f32({-1, 2, -3, -4}, {2, 2});
  const Tensor y = net.each(net.one(x));
  EXPECT_EQ(net.parameters()[0].name(), "one.weight");
  SGD sgd(net.parameters(), {.lr = 0.5});
  sgd.step(grad(sum(y), net.parameters()));
  sync();
  EXPECT_EQ(y.to_vector(), (Floats{-0.125, 2, -0.375, -0.5}));
  // The gradient of one.weight is 0.5 * (-1 - 3 - 4). Those of each.weight's elements are 0.25 *
  // (-1 - 3) and 0.25 * -4.
  EXPECT_EQ(net.one.weight.to_vector(), (Floats{0.25F + 2}));
  EXPECT_EQ(net.each.weight.to_vector(), (Floats{0.5F + 0.5F, 0.5F + 0.5F}));
}

}  // namespace
}  // namespace weft::activations_test
