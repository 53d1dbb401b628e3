#include <weft/inspect/export_stablehlo.hpp>

#include <algorithm>

#include <gtest/gtest.h>

#include <weft/nn/layers.hpp>
#include <weft/nn/losses.hpp>
#include <weft/ops/elementwise.hpp>
#include <weft/optim/optimizer.hpp>
#include <weft/sharding/presets.hpp>

#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::export_stablehlo_test {
namespace {

using testing::expect_refusal;
using testing::f32;
using testing::i32;
using testing::SimulateRuntime;

class ExportStableHlo : public ::testing::Test {
 protected:
  SimulateRuntime runtime_{Mesh({2}, {"data"})};
  RuntimeScope scope_{runtime_};
};

const std::vector<float> kRows{1, 2, 3, 4, 5, 6, 7, 8};

TEST_F(ExportStableHlo, WritesATrainingStep) {
  manual_seed(3);
  struct Net : Module {
    Linear fc{*this, "fc", {.in_features = 2, .out_features = 3}};
  } net;
  SGD optimizer(net.parameters(), {.lr = 0.5});
  auto step = compile([&](const Tensor& x, const Tensor& labels) {
    const Tensor loss = cross_entropy(net.fc(x), labels);
    optimizer.step(grad(loss, net.parameters()));
    return loss;
  });
  const Tensor x = f32(kRows, {4, 2});
  mark_sharding(x, *runtime_.mesh(), {{"data"}, {}});
  step(x, i32({0, 1, 2, 1}, {4}));
  const ExportedStep made = export_stablehlo(step);
  EXPECT_EQ(made.mesh_shape, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(made.axis_names, (std::vector<std::string>{"data"}));
  const auto weight = std::ranges::find(made.arguments, "fc.weight", &ExportedArgument::name);
  ASSERT_NE(weight, made.arguments.end());
  EXPECT_EQ(weight->kind, "param");
  EXPECT_EQ(weight->type.to_string(), "f32[3,2]");
  const auto data = std::ranges::find(
      made.arguments, "f32[2,2]", [](const auto& argument) { return argument.type.to_string(); });
  ASSERT_NE(data, made.arguments.end());
  EXPECT_EQ(data->global.to_string(), "f32[4,2]");
  EXPECT_EQ(data->sharding, "[{\"data\"}, {}]");
  const auto number = static_cast<std::int32_t>(weight - made.arguments.begin());
  const auto next = std::ranges::find(made.results, number, &ExportedResult::updates);
  ASSERT_NE(next, made.results.end());
  EXPECT_EQ(next->type, weight->type);
  EXPECT_TRUE(made.results.back().is_fault);  // labels are checked
  EXPECT_EQ(std::ranges::count(made.results, true, &ExportedResult::is_fault), 1);
  for (const char* words :
       {"module @weft_step", "\"stablehlo.all_reduce\"", "replica_groups = dense<[[0, 1]]>",
        "loc(\"export_stablehlo_test.cpp:"}) {
    EXPECT_NE(made.text.find(words), std::string::npos) << words << " in\n" << made.text;
  }
}

TEST_F(ExportStableHlo, WritesTheProgramOfTheLastCall) {
  auto twice = compile([](const Tensor& x) { return x * 2; });
  twice(f32({1, 2}, {2}));
  EXPECT_EQ(export_stablehlo(twice).arguments.at(0).global.to_string(), "f32[2]");
  twice(f32({1, 2, 3}, {3}));
  EXPECT_EQ(export_stablehlo(twice).arguments.at(0).global.to_string(), "f32[3]");
  twice(f32({5, 6}, {2}));
  EXPECT_EQ(export_stablehlo(twice).arguments.at(0).global.to_string(), "f32[2]");
}

TEST_F(ExportStableHlo, RefusesAFunctionWithoutAProgram) {
  auto twice = compile([](const Tensor& x) { return x * 2; });
  expect_refusal({"compiled at", "hasn't been called"}, [&](int& line) {
    line = __LINE__ + 1;
    export_stablehlo(twice);
  });
  auto reads = compile([](const Tensor& x) { return x * (x * 2).item(); });
  reads(f32({2}, {}));
  expect_refusal({"more than one program", "two functions"}, [&](int& line) {
    line = __LINE__ + 1;
    export_stablehlo(reads);
  });
}

TEST_F(ExportStableHlo, RefusesAFunctionOfAnotherLoop) {
  auto twice = compile([](const Tensor& x) { return x * 2; });
  twice(f32({1, 2}, {2}));
  SimulateRuntime other{Mesh({1}, {"data"})};
  const RuntimeScope scope(other);
  expect_refusal({"hasn't been called in this loop"}, [&](int& line) {
    line = __LINE__ + 1;
    export_stablehlo(twice);
  });
}

}  // namespace
}  // namespace weft::export_stablehlo_test
