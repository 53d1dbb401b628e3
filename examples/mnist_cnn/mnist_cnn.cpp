/// Trains a convolutional net on images in MNIST's format (by default Fashion-MNIST), on every chip
/// of a mesh. The batch is sharded over "data", the two large layers over "model".

#include <fstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

#include "examples/common/accuracy.hpp"
#include "examples/common/checkpoint.hpp"
#include "examples/common/layout.hpp"
#include "examples/common/progress.hpp"
#include "examples/common/report.hpp"

namespace {

constexpr std::int64_t kClasses = 10;

struct Net : weft::Module {
  weft::Conv2d conv1;
  weft::Conv2d conv2;
  weft::Linear fc1;
  weft::Dropout dropout{*this, "dropout", 0.25};
  weft::Linear fc2{*this, "fc2", {.in_features = 128, .out_features = kClasses}};

  Net(std::int64_t height, std::int64_t width)
      : conv1(*this, "conv1",
              {.in_channels = 1, .out_channels = 16, .kernel_size = 3, .window = {.padding = 1}}),
        conv2(*this, "conv2",
              {.in_channels = 16, .out_channels = 32, .kernel_size = 3, .window = {.padding = 1}}),
        fc1(*this, "fc1", {.in_features = 32 * (height / 4) * (width / 4), .out_features = 128}) {}

  /// Maps images [N,height,width] to logits.
  weft::Tensor operator()(const weft::Tensor& images) const {
    weft::Tensor x = weft::reshape(images, {images.dim(0), 1, images.dim(1), images.dim(2)});
    x = weft::max_pool2d(weft::relu(conv1(x)), {.kernel_size = 2});
    x = weft::max_pool2d(weft::relu(conv2(x)), {.kernel_size = 2});
    x = weft::reshape(x, {images.dim(0), -1});
    return fc2(dropout(weft::relu(fc1(x))));
  }
};

/// Returns a dataset with the fields "x", f32[height,width] with a mean of about 0 and a variance
/// of about 1, and "y", the class.
weft::DatasetPtr images(const std::string& folder, const std::string& prefix) {
  constexpr double kMean = 0.2860;  // the mean of Fashion-MNIST's training images, divided by 255
  constexpr double kDeviation = 0.3530;
  try {
    return weft::zip({weft::idx_file(folder + "/" + prefix + "-images-idx3-ubyte",
                                     {.name = "x",
                                      .dtype = weft::DType::f32,
                                      .scale = 1 / (255 * kDeviation),
                                      .offset = -kMean / kDeviation}),
                      weft::idx_file(folder + "/" + prefix + "-labels-idx1-ubyte", {.name = "y"})});
  } catch (const weft::Error& error) {
    if (error.code() != weft::Errc::not_found) throw;
    weft::fail(
        error.code(),
        "{}; `tools/dev data fashion-mnist` puts Fashion-MNIST into build/data/fashion-mnist",
        error.what());
  }
}

void train(weft::TrainContext& ctx, const weft::Config& config) {
  const weft::DatasetPtr data = images(config.at("data"), "train");
  const auto batch_size = config.at("batch").get<std::int64_t>();
  const auto epochs = config.at("epochs").get<std::uint64_t>();
  weft::DeviceLoader batches(data, {.batch_size = batch_size, .shuffle = true});
  weft::DeviceLoader tests(images(config.at("data"), "t10k"),
                           {.batch_size = batch_size, .pad_last = true});

  const weft::Shape image = data->fields().front().type.shape;
  Net net(image[0], image[1]);
  weft::tensor_parallel(
      net, *ctx.mesh(),
      {{"fc1", weft::TensorParallelStyle::columns}, {"fc2", weft::TensorParallelStyle::rows}});
  weft::AdamW optimizer(net.parameters(), {.lr = config.at("lr"), .weight_decay = 1e-2});

  auto step = weft::compile([&](const weft::Tensor& x, const weft::Tensor& labels) {
    const weft::Tensor loss = weft::cross_entropy(net(x), labels);
    optimizer.step(weft::grad(loss, net.parameters()));
    return loss;
  });
  auto logits = weft::compile([&](const weft::Tensor& x) { return net(x); }, {.ends_step = false});

  const std::uint64_t steps = epochs * batches.steps_per_epoch();
  weft::CheckpointManager checkpoints;
  examples::StepTimes times;
  while (batches.epoch() < epochs) {
    const std::uint64_t epoch = batches.epoch();
    for (const weft::Batch& batch : batches) {
      if (ctx.reached_preemption()) return;
      optimizer.set_lr(weft::cosine_schedule(ctx.step(), {.lr = config.at("lr"), .steps = steps}));
      const double loss = step(batch["x"], batch["y"]).item();
      times.step_ended();
      weft::Metrics metrics{{"step", ctx.step()}, {"epoch", epoch + 1}, {"loss", loss}};
      if (batches.epoch() != epoch) {
        net.eval();
        metrics["test_accuracy"] = examples::accuracy(tests, std::ref(logits));
        net.train();
        metrics["step_us"] = times.summary();
      }
      ctx.report(metrics);
      if (checkpoints.should_save()) checkpoints.save_async(weft::state_dict(net, optimizer));
      times.begin();
    }
  }
  ctx.report({{"params_digest", examples::digest(net)}, {"step_us", times.summary()}});
}

}  // namespace

int main(int argc, char** argv) {
  examples::Layout layout{.workers = 2, .chips = 2, .topology = ""};
  examples::Checkpointing checkpointing;
  std::uint64_t epochs = 3;
  std::int64_t batch = 128;
  double lr = 2e-3;
  std::uint64_t seed = 0;
  std::string json;
  std::string data = FASHION_MNIST_DIR;
  CLI::App app{"Trains a convolutional net on Fashion-MNIST, or on any images in IDX files."};
  layout.add_to(app);
  checkpointing.add_to(app);
  app.add_option("--epochs", epochs)->capture_default_str();
  app.add_option("--batch", batch, "images per step, over all chips")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--lr", lr, "the highest learning rate")->capture_default_str();
  app.add_option("--seed", seed)->capture_default_str();
  app.add_option("--json", json, "file for the result");
  app.add_option("--data", data, "folder of the IDX files; `tools/dev data fashion-mnist` fills it")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    weft::Trainer trainer(
        train, {.loop_config = {{"data", data}, {"epochs", epochs}, {"batch", batch}, {"lr", lr}},
                .scaling = layout.scaling(),
                .backend = {.spmd = layout.spmd()},
                .run = {.name = "mnist_cnn",
                        .checkpoint = checkpointing.config(),
                        .resume = checkpointing.resume,
                        .callbacks = {std::make_shared<examples::Progress>(epochs)},
                        .seed = seed}});
    const weft::Result result = trainer.fit();
    if (!json.empty()) std::ofstream(json) << examples::to_json(result) << '\n';
    return result.ok() ? 0 : 1;
  } catch (const weft::Error& e) {
    fmt::print(stderr, "mnist_cnn: {}\n", e.what());
    return 2;
  }
}
