/// Tests that layers, optimizers and other state give the interpreter's results on real chips, and
/// that training continues from a file with the same results.

#include <weft/weft.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/checkpoint_world.hpp"
#include "tests/support/interpret_runtime.hpp"
#include "tests/support/torch_training.hpp"

namespace weft::nn_fit_test {
namespace {

using testing::TemporaryFolder;

constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kLength = 6;
constexpr std::int64_t kSize = 8;
constexpr std::int64_t kClasses = 3;

struct Net : Module {
  BatchNorm1d bn{*this, "bn", {.num_features = kLength}};
  TransformerEncoderLayer encoder{
      *this, "encoder", {.d_model = kSize, .nhead = 2, .dim_feedforward = 16, .dropout = 0}};
  GroupNorm gn{*this, "gn", {.num_groups = 2, .num_channels = kLength}};
  GRU gru{*this, "gru", {.input_size = kSize, .hidden_size = 4, .batch_first = true}};
  Linear head{*this, "head", {.in_features = 4, .out_features = kClasses}};

  Tensor operator()(const Tensor& x, const Tensor& padding) const {
    const Tensor y = encoder(bn(x), {.key_padding_mask = padding});
    return head(mean(gru(gn(y)).output, {1}));
  }
};

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const std::vector<Parameter>&)>;

template <typename Kind>
MakeOptimizer of(const typename Kind::Options& options) {
  return
      [options](const std::vector<Parameter>& all) { return std::make_unique<Kind>(all, options); };
}

std::map<std::string, MakeOptimizer> optimizers() {
  return {{"adafactor", of<Adafactor>({.lr = 0.1, .weight_decay = 0.1})},
          {"amsgrad", of<AdamW>({.lr = 1e-2, .eps = 1e-3, .amsgrad = true})},
          {"dampening", of<SGD>({.lr = 0.1, .momentum = 0.9, .dampening = 0.5})},
          {"lamb", of<LAMB>({.lr = 1e-2, .eps = 1e-3})},
          {"rmsprop", of<RMSprop>({.alpha = 0.9, .eps = 1e-2, .momentum = 0.5, .centered = true})}};
}

struct Trained {
  std::vector<float> losses;
  std::map<std::string, std::vector<float>> state;
};

struct Files {
  std::string load, save;  // an empty path means no file
};

/// Runs the steps from `begin` up to `end`, each with another batch. Accumulates gradients over two
/// steps.
Trained train(const MakeOptimizer& make, const Mesh* mesh, int begin, int end,
              const Files& files = {}) {
  Net net;
  const std::vector<Parameter> parameters = net.parameters();
  const std::unique_ptr<Optimizer> optimizer = make(parameters);
  ParameterAverage average(parameters, {.decay = 0.5});
  GradientAccumulation accumulation(parameters);
  const std::vector<Parameter> state = state_dict(net, *optimizer, average, accumulation);
  if (!files.load.empty()) load(state, files.load);
  Trained trained;
  for (int step = begin; step < end; ++step) {
    const Tensor x = sin(iota({kBatch, kLength, kSize}, 0, DType::f32) * 7.0 +
                         iota({kBatch, kLength, kSize}, 1, DType::f32) * 3.0 +
                         iota({kBatch, kLength, kSize}, 2, DType::f32) * (1.0 + step));
    const Tensor padding = greater(iota({kBatch, kLength}, 1), iota({kBatch, kLength}, 0) + 1.0);
    const Tensor labels = remainder(iota({kBatch}, 0) + double(step), double(kClasses));
    if (mesh != nullptr) mark_sharding(x, *mesh, {{"data"}, {}, {}});
    const Tensor loss =
        cross_entropy(net(x, padding), labels,
                      {.weight = full({kClasses}, 0.5) + iota({kClasses}, 0, DType::f32),
                       .label_smoothing = 0.1});
    accumulation.add(grad(loss, parameters));
    if (step % 2 == 1) {
      optimizer->step(accumulation.take());
      average.update();
    }
    sync();
    trained.losses.push_back(static_cast<float>(loss.item()));
  }
  if (!files.save.empty()) save(state, files.save);
  for (const Parameter& own : state) {
    trained.state[own.name()] = cast(own, DType::f32).to_vector();
  }
  return trained;
}

class NnFit : public ::testing::TestWithParam<std::string> {
 protected:
  void run(const std::function<void(const Mesh*)>& loop) const {
    const Result result =
        Trainer([&](TrainContext& ctx) { loop(ctx.mesh()); },
                {.scaling = {.num_workers = 0},
                 .backend = {.spmd = {.mesh_shape = {2, 2}, .axis_names = {"data", "model"}}},
                 .run = {.name = "nn", .storage_path = folder_.path(), .seed = 3}})
            .fit();
    ASSERT_TRUE(result.ok()) << result.error->message;
  }
  MakeOptimizer make() const { return optimizers().at(GetParam()); }

  TemporaryFolder folder_;
};

TEST_P(NnFit, GivesWhatTheInterpreterComputes) {
  Trained expected;
  {
    testing::InterpretRuntime runtime;
    const RuntimeScope scope(runtime);
    manual_seed(3);
    expected = train(make(), nullptr, 0, 6);
    manual_seed(0);
  }
  run([&](const Mesh* mesh) {
    const Trained trained = train(make(), mesh, 0, 6);
    testing::expect_as_torch("loss", trained.losses, expected.losses);
    for (const auto& [name, elements] : expected.state) {
      ASSERT_EQ(trained.state.at(name).size(), elements.size());
      for (std::size_t i = 0; i < elements.size(); ++i) {
        EXPECT_NEAR(trained.state.at(name)[i], elements[i], 1e-4) << name << ", element " << i;
      }
    }
  });
}

TEST_P(NnFit, GoesOnFromAFileAsIfItHadNotEnded) {
  const std::string path = folder_.path() + "/state.safetensors";
  run([&](const Mesh* mesh) {
    const Trained straight = train(make(), mesh, 0, 6);
    // Step 3 is between two updates, so the file also has accumulated gradients.
    train(make(), mesh, 0, 3, {.load = "", .save = path});
    const Trained resumed = train(make(), mesh, 3, 6, {.load = path, .save = ""});
    EXPECT_EQ(resumed.state, straight.state);
    EXPECT_EQ(resumed.losses,
              std::vector<float>(straight.losses.begin() + 3, straight.losses.end()));
  });
}

INSTANTIATE_TEST_SUITE_P(All, NnFit, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, make] : optimizers()) names.push_back(name);
                           return names;
                         }()),
                         [](const auto& which) { return which.param; });

TEST(NnFitCache, GeneratesOnChipsWhatAllTokensGiveTogether) {
  const TemporaryFolder folder;
  const auto loop = [](TrainContext& ctx) {
    Module root;
    TransformerEncoderLayer layer(
        root, "layer", {.d_model = 8, .nhead = 2, .dim_feedforward = 12, .norm_first = true});
    layer.eval();
    const Tensor x = sin(iota({2, 6, 8}, 1, DType::f32) * 5.0 + iota({2, 6, 8}, 2, DType::f32) +
                         iota({2, 6, 8}, 0, DType::f32) * 2.0);
    mark_sharding(x, *ctx.mesh(), {{"data"}, {}, {}});
    const std::vector<float> together = layer(x, {.is_causal = true}).to_vector();
    KeyValueCache cache({.batch = 2, .num_heads = 2, .length = 8, .head_dim = 4});
    std::vector<Tensor> parts;
    for (std::int64_t at = 0; at < 6; ++at) {
      parts.push_back(layer(slice(x, 1, at, at + 1), {.cache = &cache}));
      sync();
    }
    const std::vector<float> apart = cat(parts, 1).to_vector();
    for (std::size_t i = 0; i < together.size(); ++i) {
      EXPECT_NEAR(apart[i], together[i], 1e-5) << "element " << i;
    }
  };
  const Result result =
      Trainer(loop, {.scaling = {.num_workers = 0},
                     .backend = {.spmd = {.mesh_shape = {2, 2}, .axis_names = {"data", "model"}}},
                     .run = {.name = "cache", .storage_path = folder.path()}})
          .fit();
  ASSERT_TRUE(result.ok()) << result.error->message;
}

}  // namespace
}  // namespace weft::nn_fit_test
