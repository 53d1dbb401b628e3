/// A classifier of hand-written digits, trained on every chip of a mesh. The loop is written for
/// one device; five annotations make it data- and model-parallel.

#include <chrono>
#include <cstdio>
#include <fstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

#include "examples/common/batches.hpp"
#include "examples/common/checkpoint.hpp"
#include "examples/common/layout.hpp"
#include "examples/common/progress.hpp"
#include "examples/common/report.hpp"
#include "examples/digits/digits_data.hpp"

namespace {

constexpr double kLearningRate = 8e-3;
constexpr double kWeightDecay = 0.1;

/// Layouts sum in different orders, and AdamW divides by the gradient: with its usual 1e-8, what
/// rounding leaves of a gradient near 0 moves a parameter as far as a true one, and the curves of
/// two layouts part.
constexpr double kEps = 1e-5;

struct Mlp : weft::Module {
  weft::Linear fc1{*this, "fc1", {.in_features = digits::kPixels, .out_features = 128}};
  weft::Linear fc2{*this, "fc2", {.in_features = 128, .out_features = 64}};
  weft::Linear fc3{*this, "fc3", {.in_features = 64, .out_features = digits::kClasses}};

  /// tanh, not relu: rounding that carries a relu over its kink sets the layouts apart as well.
  weft::Tensor operator()(const weft::Tensor& x) const {
    return fc3(weft::tanh(fc2(weft::tanh(fc1(x)))));
  }
};

weft::Tensor pixels(const digits::Images& images) {
  return weft::to_device(images.pixels, {images.size(), digits::kPixels});
}

void train(weft::TrainContext& ctx, const weft::Config& config) {
  const digits::Dataset data = digits::load(config.at("data"));
  const auto batch_size = config.at("batch").get<std::int64_t>();
  const auto epochs = config.at("epochs").get<std::uint64_t>();
  if (batch_size > data.train.size()) {
    weft::fail(weft::Errc::invalid_argument,
               "--batch = {}: expected at most the {} training images", batch_size,
               data.train.size());
  }
  Mlp net;
  weft::AdamW optimizer(net.parameters(),
                        {.lr = kLearningRate, .eps = kEps, .weight_decay = kWeightDecay});

  const weft::Mesh& mesh = *ctx.mesh();
  weft::mark_sharding(net.fc1.weight, mesh, {{"model"}, {}});  // by columns (torch keeps [out, in])
  weft::mark_sharding(net.fc1.bias, mesh, {{"model"}});
  weft::mark_sharding(net.fc2.weight, mesh, {{}, {"model"}});  // by rows
  const weft::Tensor test_pixels = pixels(data.test);

  const auto steps = static_cast<std::uint64_t>(data.train.size() / batch_size);
  weft::CheckpointManager checkpoints;
  std::vector<double> step_us;
  // All that a step needs follows from its number: after a loss the loop goes on at any.
  while (ctx.step() < epochs * steps) {
    const std::uint64_t epoch = ctx.step() / steps + 1;
    const auto order = examples::shuffled(data.train.size(), ctx.seed(), epoch);
    for (std::uint64_t step = ctx.step() % steps; step < steps; ++step) {
      if (ctx.reached_preemption()) return;
      const auto begin = std::chrono::steady_clock::now();
      const auto indices = std::span(order).subspan(step * static_cast<std::size_t>(batch_size),
                                                    static_cast<std::size_t>(batch_size));
      const digits::Images batch =
          digits::augmented(data.train.pick(indices), ctx.seed(), ctx.step());
      const weft::Tensor x = pixels(batch);
      const weft::Tensor labels = weft::to_device(batch.labels, {batch_size});
      weft::mark_sharding(x, mesh, {{"data"}, {}});
      weft::mark_sharding(labels, mesh, {{"data"}});

      const weft::Tensor loss = weft::cross_entropy(net(x), labels);
      optimizer.set_lr(
          weft::cosine_schedule(ctx.step(), {.lr = kLearningRate, .steps = epochs * steps}));
      optimizer.step(weft::grad(loss, net.parameters()));
      weft::sync();

      weft::Metrics metrics{{"step", ctx.step()}, {"epoch", epoch}, {"loss", loss.item()}};
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      step_us.push_back(took.count());
      if (step + 1 == steps) {
        metrics["test_accuracy"] =
            examples::accuracy(net(test_pixels).to_vector(), data.test.labels);
        metrics["step_us"] = examples::summary(step_us);
      }
      ctx.report(metrics);
      if (checkpoints.should_save()) checkpoints.save_async(weft::state_dict(net, optimizer));
    }
  }
  ctx.report({{"params_digest", examples::digest(net)}, {"step_us", examples::summary(step_us)}});
}

struct Arguments {
  examples::Layout layout;
  examples::Checkpointing checkpointing;
  std::uint64_t epochs = 60;
  std::int64_t batch = 32;
  std::uint64_t seed = 0;
  int max_failures = 0;
  std::string json;
  std::string data = DIGITS_CSV;
};

int run(const Arguments& arguments) {
  weft::Trainer trainer(
      train, {.loop_config = {{"data", arguments.data},
                              {"epochs", arguments.epochs},
                              {"batch", arguments.batch}},
              .scaling = arguments.layout.scaling(),
              .backend = {.spmd = arguments.layout.spmd()},
              .run = {.name = "digits",
                      .failure = {.max_failures = arguments.max_failures},
                      .checkpoint = arguments.checkpointing.config(),
                      .resume = arguments.checkpointing.resume,
                      .callbacks = {std::make_shared<examples::Progress>(arguments.epochs)},
                      .seed = arguments.seed}});
  const weft::Result result = trainer.fit();
  if (!arguments.json.empty()) std::ofstream(arguments.json) << examples::to_json(result) << '\n';
  return result.ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Trains a classifier of hand-written digits on a mesh of chips."};
  arguments.layout.add_to(app);
  arguments.checkpointing.add_to(app);
  app.add_option("--epochs", arguments.epochs)->capture_default_str();
  app.add_option("--batch", arguments.batch, "images per step, over all chips")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", arguments.seed)->capture_default_str();
  app.add_option("--max-failures", arguments.max_failures,
                 "losses of a worker that the run survives; -1: any number");
  app.add_option("--json", arguments.json, "file for the result");
  app.add_option("--data", arguments.data, "file of the images")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return run(arguments);
  } catch (const weft::Error& e) {
    fmt::print(stderr, "digits: {}\n", e.what());
    return 2;
  }
}
