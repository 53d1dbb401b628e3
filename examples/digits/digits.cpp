/// A classifier of hand-written digits, trained on every chip of a mesh. The loop is written for
/// one device; five annotations make it data- and model-parallel.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numbers>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

#include <weft/examples/digits/digits_data.hpp>
#include <weft/examples/digits/progress.hpp>
#include <weft/examples/digits/report.hpp>

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

/// From `rate` down to 0 over `steps` along half a cosine.
double cosine(double rate, std::uint64_t step, std::uint64_t steps) {
  const double part = static_cast<double>(step) / static_cast<double>(steps);
  return rate * 0.5 * (1 + std::cos(std::numbers::pi * part));
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

  std::vector<double> step_us;
  for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
    const auto order = digits::shuffled(data.train.size(), ctx.seed(), epoch);
    const auto steps = data.train.size() / batch_size;
    for (std::int64_t step = 1; step <= steps; ++step) {
      const auto begin = std::chrono::steady_clock::now();
      const auto indices = std::span(order).subspan(
          static_cast<std::size_t>((step - 1) * batch_size), static_cast<std::size_t>(batch_size));
      const digits::Images batch =
          digits::augmented(data.train.pick(indices), ctx.seed(), ctx.step());
      const weft::Tensor x = pixels(batch);
      const weft::Tensor labels = weft::to_device(batch.labels, {batch_size});
      weft::mark_sharding(x, mesh, {{"data"}, {}});
      weft::mark_sharding(labels, mesh, {{"data"}});

      const weft::Tensor loss = weft::cross_entropy(net(x), labels);
      optimizer.set_lr(
          cosine(kLearningRate, ctx.step(), epochs * static_cast<std::uint64_t>(steps)));
      optimizer.step(weft::grad(loss, net.parameters()));
      weft::sync();

      weft::Metrics metrics{{"step", ctx.step()}, {"epoch", epoch}, {"loss", loss.item()}};
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      step_us.push_back(took.count());
      if (step == steps) {
        metrics["test_accuracy"] = digits::accuracy(net(test_pixels).to_vector(), data.test.labels);
        metrics["step_us"] = digits::summary(step_us);
      }
      ctx.report(metrics);
    }
  }
  ctx.report({{"params_digest", digits::digest(net)}, {"step_us", digits::summary(step_us)}});
}

struct Arguments {
  int workers = 4;
  int chips = 4;
  std::string topology;
  std::uint64_t epochs = 60;
  std::int64_t batch = 32;
  std::uint64_t seed = 0;
  std::string json;
  std::string data = DIGITS_CSV;
};

/// Several workers get ("data", "model") by themselves; one process would get a single axis, so it
/// is given the squarest grid.
weft::SpmdConfig grid(const Arguments& arguments) {
  if (!arguments.topology.empty() || arguments.workers > 1) return {};
  std::int64_t model = 1;
  for (std::int64_t m = 1; m * m <= arguments.chips; ++m) {
    if (arguments.chips % m == 0) model = m;
  }
  return {.mesh_shape = {arguments.chips / model, model}, .axis_names = {"data", "model"}};
}

int run(const Arguments& arguments) {
  weft::Trainer trainer(
      train, {.loop_config = {{"data", arguments.data},
                              {"epochs", arguments.epochs},
                              {"batch", arguments.batch}},
              .scaling = {.num_workers = arguments.workers,
                          .chips_per_worker = arguments.chips,
                          .topology = arguments.topology},
              .backend = {.spmd = grid(arguments)},
              .run = {.name = "digits",
                      .callbacks = {std::make_shared<digits::Progress>(arguments.epochs)},
                      .seed = arguments.seed}});
  const weft::Result result = trainer.fit();
  if (!arguments.json.empty())
    std::ofstream(arguments.json) << digits::to_json(result).dump(1) << '\n';
  return result.ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Trains a classifier of hand-written digits on a mesh of chips."};
  // `weft launch` decides over these; grid() has to know.
  app.add_option("--workers", arguments.workers, "worker processes; 0: all in this one")
      ->envname("WEFT_LAUNCH_WORKERS")
      ->capture_default_str();
  app.add_option("--chips", arguments.chips, "chips per worker")
      ->envname("WEFT_LAUNCH_CHIPS")
      ->capture_default_str();
  app.add_option("--topology", arguments.topology, "grid of all chips, data x model, as 4x4")
      ->envname("WEFT_LAUNCH_TOPOLOGY");
  app.add_option("--epochs", arguments.epochs)->capture_default_str();
  app.add_option("--batch", arguments.batch, "images per step, over all chips")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", arguments.seed)->capture_default_str();
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
