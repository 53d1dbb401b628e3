/// A convolutional net on MNIST, trained on every chip of a mesh: the batch is cut over "data", the
/// two large layers over "model".

#include <chrono>
#include <fstream>
#include <numeric>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

#include "examples/common/batches.hpp"
#include "examples/common/checkpoint.hpp"
#include "examples/common/layout.hpp"
#include "examples/common/progress.hpp"
#include "examples/common/report.hpp"
#include "examples/mnist_cnn/idx.hpp"

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

  weft::Tensor operator()(const weft::Tensor& images) const {
    weft::Tensor x = weft::max_pool2d(weft::relu(conv1(images)), {.kernel_size = 2});
    x = weft::max_pool2d(weft::relu(conv2(x)), {.kernel_size = 2});
    x = weft::reshape(x, {images.dim(0), -1});
    return fc2(dropout(weft::relu(fc1(x))));
  }
};

std::vector<std::int64_t> range(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

void train(weft::TrainContext& ctx, const weft::Config& config) {
  const std::string folder = config.at("data");
  const mnist::Images images = mnist::load(folder, "train");
  const mnist::Images test = mnist::load(folder, "t10k");
  const auto batch_size = config.at("batch").get<std::int64_t>();
  const auto epochs = config.at("epochs").get<std::uint64_t>();
  const auto steps = static_cast<std::uint64_t>(images.size() / batch_size);
  if (steps == 0) {
    weft::fail(weft::Errc::invalid_argument, "--batch = {}: expected at most the {} images of {}",
               batch_size, images.size(), folder);
  }

  const weft::Mesh& mesh = *ctx.mesh();
  Net net(images.height, images.width);
  weft::tensor_parallel(
      net, mesh,
      {{"fc1", weft::TensorParallelStyle::columns}, {"fc2", weft::TensorParallelStyle::rows}});
  weft::AdamW optimizer(net.parameters(), {.lr = config.at("lr"), .weight_decay = 1e-2});

  const auto place = [&](const mnist::Images& from, std::span<const std::int64_t> indices) {
    const auto count = static_cast<std::int64_t>(indices.size());
    const weft::Tensor x =
        weft::to_device(from.normalized(indices), {count, 1, from.height, from.width});
    weft::mark_sharding(x, mesh, {{"data"}, {}, {}, {}});
    return x;
  };
  auto step = weft::compile([&](const weft::Tensor& x, const weft::Tensor& labels) {
    const weft::Tensor loss = weft::cross_entropy(net(x), labels);
    optimizer.step(weft::grad(loss, net.parameters()));
    return loss;
  });
  auto logits = weft::compile([&](const weft::Tensor& x) { return net(x); }, {.ends_step = false});

  // A last batch that is smaller would be another program; it is left out.
  const auto test_accuracy = [&] {
    net.eval();
    std::vector<float> scores;
    const std::int64_t whole = test.size() / batch_size * batch_size;
    for (std::int64_t begin = 0; begin < whole; begin += batch_size) {
      const auto rows = logits(place(test, range(begin, begin + batch_size))).to_vector();
      scores.insert(scores.end(), rows.begin(), rows.end());
    }
    net.train();
    return examples::accuracy(scores, test.labels_of(range(0, whole)));
  };

  weft::CheckpointManager checkpoints;
  std::vector<double> step_us;
  while (ctx.step() < epochs * steps) {
    const std::uint64_t epoch = ctx.step() / steps + 1;
    const auto order = examples::shuffled(images.size(), ctx.seed(), epoch);
    for (std::uint64_t i = ctx.step() % steps; i < steps; ++i) {
      if (ctx.reached_preemption()) return;
      const auto begin = std::chrono::steady_clock::now();
      const auto indices = std::span(order).subspan(i * static_cast<std::size_t>(batch_size),
                                                    static_cast<std::size_t>(batch_size));
      optimizer.set_lr(
          weft::cosine_schedule(ctx.step(), {.lr = config.at("lr"), .steps = epochs * steps}));
      const weft::Tensor labels = weft::to_device(images.labels_of(indices), {batch_size});
      const weft::Tensor loss = step(place(images, indices), labels);
      weft::Metrics metrics{{"step", ctx.step()}, {"epoch", epoch}, {"loss", loss.item()}};
      step_us.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
              .count());
      if (i + 1 == steps) {
        metrics["test_accuracy"] = test_accuracy();
        metrics["step_us"] = examples::summary(step_us);
      }
      ctx.report(metrics);
      if (checkpoints.should_save()) checkpoints.save_async(weft::state_dict(net, optimizer));
    }
  }
  ctx.report({{"params_digest", examples::digest(net)}, {"step_us", examples::summary(step_us)}});
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
  std::string data = MNIST_DIR;
  CLI::App app{"Trains a convolutional net on MNIST, or on any images in IDX files."};
  layout.add_to(app);
  checkpointing.add_to(app);
  app.add_option("--epochs", epochs)->capture_default_str();
  app.add_option("--batch", batch, "images per step, over all chips")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--lr", lr, "the highest learning rate")->capture_default_str();
  app.add_option("--seed", seed)->capture_default_str();
  app.add_option("--json", json, "file for the result");
  app.add_option("--data", data, "folder of the IDX files; `tools/dev data mnist` fetches it")
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
