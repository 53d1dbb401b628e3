/// Trains a classifier of hand-written digits on every chip of a mesh. The loop is written for one
/// device; four annotations make it data- and model-parallel.

#include <cstdio>
#include <fstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

#include "examples/common/accuracy.hpp"
#include "examples/common/checkpoint.hpp"
#include "examples/common/digits_data.hpp"
#include "examples/common/layout.hpp"
#include "examples/common/progress.hpp"
#include "examples/common/report.hpp"

namespace {

constexpr double kLearningRate = 8e-3;
constexpr double kWeightDecay = 0.1;

/// The epsilon of AdamW, larger than the usual 1e-8. Layouts sum in different orders, so a gradient
/// near 0 may consist of rounding errors. AdamW divides by the gradient's size. With 1e-8, rounding
/// errors would move a parameter as far as a true gradient does, and the curves of two layouts
/// would diverge.
constexpr double kEps = 1e-5;

struct Mlp : weft::Module {
  weft::Linear fc1{*this, "fc1", {.in_features = digits::kPixels, .out_features = 128}};
  weft::Linear fc2{*this, "fc2", {.in_features = 128, .out_features = 64}};
  weft::Linear fc3{*this, "fc3", {.in_features = 64, .out_features = digits::kClasses}};

  /// Uses tanh instead of relu. With relu, a rounding error that moves a value across 0 would also
  /// make the curves of two layouts diverge.
  weft::Tensor operator()(const weft::Tensor& x) const {
    return fc3(weft::tanh(fc2(weft::tanh(fc1(x)))));
  }
};

void train(weft::TrainContext& ctx, const weft::Config& config) {
  const digits::Data data = digits::load(config.at("data"));
  const auto batch_size = config.at("batch").get<std::int64_t>();
  const auto epochs = config.at("epochs").get<std::uint64_t>();
  Mlp net;
  weft::AdamW optimizer(net.parameters(),
                        {.lr = kLearningRate, .eps = kEps, .weight_decay = kWeightDecay});

  const weft::Mesh& mesh = *ctx.mesh();
  weft::mark_sharding(net.fc1.weight, mesh, {{"model"}, {}});  // by columns (torch keeps [out, in])
  weft::mark_sharding(net.fc1.bias, mesh, {{"model"}});
  weft::mark_sharding(net.fc2.weight, mesh, {{}, {"model"}});  // by rows
  weft::DeviceLoader batches(
      data.train,
      {.batch_size = batch_size, .shuffle = true, .input_sharding = weft::PartitionSpec{{"data"}}});
  weft::DeviceLoader tests(data.test, {.batch_size = batch_size, .pad_last = true});

  const std::uint64_t steps = epochs * batches.steps_per_epoch();
  weft::CheckpointManager checkpoints;
  examples::StepTimes times;
  // A step depends only on its number, so the loop can continue at any step after the loss of a
  // worker.
  while (batches.epoch() < epochs) {
    const std::uint64_t epoch = batches.epoch();
    for (const weft::Batch& batch : batches) {
      if (ctx.reached_preemption()) return;
      const weft::Tensor loss = weft::cross_entropy(net(batch["x"]), batch["y"]);
      optimizer.set_lr(weft::cosine_schedule(ctx.step(), {.lr = kLearningRate, .steps = steps}));
      optimizer.step(weft::grad(loss, net.parameters()));
      weft::sync();

      weft::Metrics metrics{{"step", ctx.step()}, {"epoch", epoch + 1}, {"loss", loss.item()}};
      times.step_ended();
      if (batches.epoch() != epoch) {
        metrics["test_accuracy"] = examples::accuracy(tests, std::ref(net));
        metrics["step_us"] = times.summary();
      }
      ctx.report(metrics);
      if (checkpoints.should_save()) checkpoints.save_async(weft::state_dict(net, optimizer));
      times.begin();
    }
  }
  ctx.report({{"params_digest", examples::digest(net)}, {"step_us", times.summary()}});
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
                 "how many losses of a worker the run survives; -1: any number");
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
