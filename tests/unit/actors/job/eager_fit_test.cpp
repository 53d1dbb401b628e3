/// Tests that loops that read values before their gradients, and eager jobs, train to the same bits
/// on the CPU's chips as loops that read nothing.

#include <weft/weft.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include <dnnl_version.h>
#include <fmt/format.h>

#include "chips/cpu/loops/vectorize.hpp"
#include "tests/support/compiler_leaks.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::eager_fit_test {
namespace {

using Floats = std::vector<float>;

class EagerFit : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(root_); }

  Result fit(TrainLoop loop, int chips, DebugMode debug = DebugMode::none) const {
    TrainerOptions options{.scaling = {.num_workers = 0, .chips_per_worker = chips},
                           .run = {.name = "eager", .storage_path = root_, .debug = debug}};
    if (chips == 4) options.scaling.topology = "2x2";
    return Trainer(std::move(loop), options).fit();
  }

  const std::string root_ =
      std::filesystem::temp_directory_path() / fmt::format("weft-eager-{}", ::getpid());
};

struct Net : Module {
  Conv2d conv{*this, "conv", {.in_channels = 1, .out_channels = 4, .kernel_size = 3}};
  BatchNorm2d bn{*this, "bn", {.num_features = 4}};
  Dropout drop{*this, "drop", 0.2};
  Linear fc{*this, "fc", {.in_features = 144, .out_features = 3}};

  Tensor operator()(const Tensor& x) const { return fc(drop(flatten(relu(bn(conv(x))), 1))); }
};

/// Returns 8 images of 8 x 8 pixels and their labels. One label is ignored.
std::pair<Tensor, Tensor> batch_of(int step) {
  Floats x;
  for (int i = 0; i < 8 * 64; ++i) x.push_back(static_cast<float>((i * 13 + step * 5) % 17) / 17);
  return {to_device(x, {8, 1, 8, 8}),
          to_device(std::vector<std::int64_t>{0, 1, 2, -100, 1, 1, 0, 2}, {8})};
}

enum class Reads { none, before, around };

Floats train(TrainContext& ctx, Reads reads) {
  Net net;
  AdamW optimizer(net.parameters(), {.lr = 0.01});
  Floats values;
  while (ctx.step() < 5) {
    auto [x, y] = batch_of(static_cast<int>(ctx.step()));
    data_parallel({x, y}, *ctx.mesh());
    const Tensor logits = net(x);
    if (reads == Reads::around) logits.to_vector();
    const Tensor loss = cross_entropy(logits, y);
    if (reads != Reads::none) loss.item();
    const std::vector<Tensor> grads = grad(loss, net.parameters());
    if (reads == Reads::around) grads[0].to_vector();
    optimizer.step(grads);
    if (reads == Reads::around) loss.item();
    sync();
    values.push_back(loss.item<float>());
  }
  for (const Parameter& state : state_dict(net, optimizer)) {
    if (state.type().dtype != DType::f32) continue;
    const Floats elements = state.to_vector();
    values.insert(values.end(), elements.begin(), elements.end());
  }
  return values;
}

/// Compares the results of programs that lay out an operand differently. With oneDNN 2 on AVX-512
/// they are equal to the bit. With oneDNN 3, or on other processors, the layout changes the order
/// in which products are summed.
void expect_same(const Floats& found, const Floats& expected) {
  if (DNNL_VERSION_MAJOR < 3 && kernels::kernel_path().vectors == kernels::Vectors::avx512) {
    EXPECT_EQ(found, expected);
    return;
  }
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5 + 1e-5 * std::abs(expected[i])) << i;
  }
}

TEST_F(EagerFit, ReadsBeforeTheGradientChangeNothing) {
  for (const int chips : {1, 4}) {
    std::vector<Floats> values;
    for (const Reads reads : {Reads::none, Reads::before, Reads::around}) {
      const Result result =
          fit([&](TrainContext& ctx) { values.push_back(train(ctx, reads)); }, chips);
      ASSERT_TRUE(result.ok()) << result.error->message;
    }
    SCOPED_TRACE(chips);
    expect_same(values[1], values[0]);
    expect_same(values[2], values[0]);
  }
}

TEST_F(EagerFit, AnEagerJobGivesTheNumbersOfARecordedOne) {
  Floats recorded;
  Floats eager;
  ASSERT_TRUE(fit([&](TrainContext& ctx) { recorded = train(ctx, Reads::none); }, 1).ok());
  const Result result = fit(
      [&](TrainContext& ctx) {
        EXPECT_EQ(ctx.mesh()->size(), 1);
        EXPECT_EQ(ctx.mesh()->axis_names(), (std::vector<std::string>{"data", "model"}));
        eager = train(ctx, Reads::around);
      },
      4, DebugMode::eager);
  ASSERT_TRUE(result.ok()) << result.error->message;
  expect_same(eager, recorded);
}

TEST_F(EagerFit, AWrongLabelIsThrownByTheLineThatUsesIt) {
  if (testing::compiler_leaks_count()) GTEST_SKIP() << "the compiler leaks here";
  std::string caught;
  int line = 0;
  const Result result = fit(
      [&](TrainContext&) {
        const Tensor x = to_device(Floats{1, 2, 3, 4}, {2, 2});
        const Tensor labels = to_device(std::vector<std::int64_t>{0, 7}, {2});
        line = __LINE__ + 2;
        try {
          cross_entropy(x, labels);
        } catch (const Error& error) {
          caught = error.what();
          throw;
        }
        sync();
      },
      1, DebugMode::eager);
  EXPECT_FALSE(result.ok());
  EXPECT_NE(caught.find("7"), std::string::npos) << caught;
  EXPECT_NE(caught.find(fmt::format("eager_fit_test.cpp:{}", line)), std::string::npos) << caught;
}

TEST_F(EagerFit, DetectAnomalyThrowsAtTheFirstNaN) {
  if (testing::compiler_leaks_count()) GTEST_SKIP() << "the compiler leaks here";
  std::string caught;
  int line = 0;
  const Result result = fit(
      [&](TrainContext&) {
        const auto scope = detect_anomaly();
        const Tensor x = to_device(Floats{-1, 4}, {2});
        line = __LINE__ + 2;
        try {
          sqrt(x);
        } catch (const Error& error) {
          caught = error.what();
          throw;
        }
      },
      1, DebugMode::eager);
  EXPECT_FALSE(result.ok());
  EXPECT_NE(caught.find(fmt::format("eager_fit_test.cpp:{}", line)), std::string::npos) << caught;
}

}  // namespace
}  // namespace weft::eager_fit_test
