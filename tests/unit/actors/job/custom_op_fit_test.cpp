// Tests CustomOps on the chips of a job.

#include <weft/weft.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

namespace weft::custom_op_fit_test {
namespace {

// This is the example in docs/training.md.
const CustomOp kSoftClip{.name = "soft_clip",
                         .sharding_rule = "b s, s -> b s",
                         .kernel =
                             [](const CustomCall& call) {
                               const auto x = call.operand<float>(0);
                               const auto limit = call.operand<float>(1);
                               const auto y = call.result<float>();
                               for (std::size_t i = 0; i < y.size(); ++i) {
                                 const float most = limit[i % limit.size()];
                                 y[i] = most * std::tanh(x[i] / most);
                               }
                             },
                         .vjp = [](const CustomVjp& v) -> std::vector<Tensor> {
                           const Tensor ratio = v.result / v.operands[1];
                           return {v.cotangent * (1.0 - ratio * ratio), {}};
                         }};

/// An op that returns its operand. Its kernel counts the elements that it gets on all chips.
std::atomic<std::int64_t> seen{0};
const CustomOp kLook{
    .name = "look",
    .sharding_rule = "b s -> b s",
    .kernel =
        [](const CustomCall& call) {
          seen += call.operand_type(0).num_elements();
          std::ranges::copy(call.operand<float>(0), call.result<float>().begin());
        },
    .vjp = [](const CustomVjp& v) -> std::vector<Tensor> { return {v.cotangent}; }};

class CustomOpFit : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(root_); }

  Result fit(TrainLoop loop) {
    return Trainer(std::move(loop),
                   {.scaling = {.num_workers = 0, .chips_per_worker = 4},
                    .backend = {.spmd = {.mesh_shape = {2, 2}, .axis_names = {"data", "model"}}},
                    .run = {.name = "custom", .storage_path = root_}})
        .fit();
  }

  const std::string root_ =
      std::filesystem::temp_directory_path() / fmt::format("weft-custom-{}", ::getpid());
};

struct Trained {
  std::vector<float> w;
  std::vector<double> losses;
};

/// Trains w[6,5] on x[8,6]. No axis of the mesh divides the 5 columns.
Trained train(TrainContext& ctx, bool custom, const PartitionSpec& spec, bool shards_data) {
  std::vector<float> elements(48);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<float>(i * 7 % 11) / 8 - 0.5F;
  }
  Parameter w =
      make_parameter("w", std::vector<float>(elements.begin(), elements.begin() + 30), {6, 5});
  const Mesh& mesh = *ctx.mesh();
  mark_sharding(w, mesh, spec);
  auto step = compile([&](const Tensor& x) {
    const Tensor limit = full({5}, 0.5);
    const Tensor hidden = matmul(x, w);
    const Tensor clipped = custom ? custom_call(kSoftClip, {custom_call(kLook, {hidden}), limit})
                                  : limit * tanh(hidden / limit);
    const Tensor loss = mean(clipped * clipped);
    w.assign(w - 0.1 * grad(loss, std::vector<Tensor>{w})[0]);
    return loss;
  });
  Trained trained;
  for (int i = 0; i < 3; ++i) {
    const Tensor x = to_device(elements, {8, 6});
    if (shards_data) mark_sharding(x, mesh, {{"data"}, {}});
    trained.losses.push_back(step(x).item());
  }
  trained.w = w.to_vector();
  return trained;
}

TEST_F(CustomOpFit, TrainsAsOrdinaryOpsDo) {
  for (const PartitionSpec& spec : std::vector<PartitionSpec>{
           {{}, {}}, {{"data"}, {}}, {{}, {"model"}}, {{"model"}, {"data"}}}) {
    for (const bool shards_data : {false, true}) {
      std::vector<Trained> both;
      for (const bool custom : {false, true}) {
        const Result result =
            fit([&](TrainContext& ctx) { both.push_back(train(ctx, custom, spec, shards_data)); });
        ASSERT_TRUE(result.ok()) << result.error->message;
      }
      for (std::size_t i = 0; i < both[0].w.size(); ++i) {
        EXPECT_NEAR(both[1].w[i], both[0].w[i], 1e-5) << i;
      }
      for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(both[1].losses[i], both[0].losses[i], 1e-5);
      EXPECT_LT(both[1].losses[2], both[1].losses[0]);
    }
  }
}

/// A kernel gets the chip's part of a dim that an axis divides, and the complete dim if the parts
/// would have padding.
TEST_F(CustomOpFit, GivesEachChipItsShard) {
  const auto look = [&](const Shape& shape, const PartitionSpec& spec) {
    seen = 0;
    const Result result = fit([&](TrainContext& ctx) {
      const std::vector<float> ones(static_cast<std::size_t>(shape.num_elements()), 1.0F);
      const Parameter w = make_parameter("w", ones, shape);
      mark_sharding(w, *ctx.mesh(), spec);
      const Tensor y = custom_call(kLook, {w});
      sync();
      EXPECT_EQ(y.to_vector(), ones);
    });
    EXPECT_TRUE(result.ok()) << result.error->message;
    return seen.load();
  };
  EXPECT_EQ(look({4, 8}, {{"data"}, {"model"}}), 4 * 8);
  EXPECT_EQ(look({4, 8}, {{"data"}, {}}), 2 * 4 * 8);
  EXPECT_EQ(look({5, 8}, {{"data"}, {"model"}}), 2 * 5 * 8);
  EXPECT_EQ(look({5, 7}, {{"data"}, {"model"}}), 4 * 5 * 7);
}

TEST_F(CustomOpFit, FailsWithWhatAKernelThrows) {
  const CustomOp op{
      .name = "second_chip", .sharding_rule = "b -> b", .kernel = [](const CustomCall& call) {
        if (call.operand<float>(0)[0] > 2) throw std::runtime_error("boom");
      }};
  int line = 0;
  const Result result = fit([&](TrainContext& ctx) {
    const Tensor x = to_device(std::vector<float>{1, 2, 3, 4}, {4});
    mark_sharding(x, *ctx.mesh(), {{"data"}});
    line = __LINE__ + 1;
    const Tensor y = custom_call(op, {x});
    sum(y).item();
  });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error->code, Errc::loop_failed);
  EXPECT_NE(
      result.error->message.find(fmt::format(
          "custom_call 'second_chip' at custom_op_fit_test.cpp:{}: the kernel threw: boom", line)),
      std::string::npos)
      << result.error->message;
}

TEST_F(CustomOpFit, FindsItsPlanAgain) {
  const std::string folder = root_ + "/plans";
  ::setenv("WEFT_COMPILE_CACHE", folder.c_str(), 1);
  std::vector<std::uint64_t> hits;
  const auto run = [&](const CustomOp& op) {
    const Result result = fit([&](TrainContext& ctx) {
      const Tensor x = to_device(std::vector<float>{1, 2, 3, 4}, {2, 2});
      mark_sharding(x, *ctx.mesh(), {{"data"}, {}});
      const Tensor y = custom_call(op, {x}) + 1;
      sync();
      EXPECT_EQ(y.to_vector(), (std::vector<float>{2, 3, 4, 5}));
      hits.push_back(counter_value("PersistentCacheHit"));
    });
    EXPECT_TRUE(result.ok()) << result.error->message;
  };
  CustomOp other = kLook;
  other.name = "look_otherwise";
  run(kLook);
  run(kLook);
  run(other);
  ::unsetenv("WEFT_COMPILE_CACHE");
  ASSERT_EQ(hits.size(), 3U);
  EXPECT_EQ(hits[0], 0U);
  EXPECT_GE(hits[1], 1U);
  EXPECT_LT(hits[2], hits[1]);
}

}  // namespace
}  // namespace weft::custom_op_fit_test
