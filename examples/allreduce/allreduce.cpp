/// Fits a linear function by least squares, in code that weft doesn't trace: data parallelism by
/// hand. Every chip has its own samples and sums its gradient with those of the other chips.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

namespace {

/// Returns the weight of a feature in the function y = 1 x0 + 2 x1 + 3 x2 + ..., from which the
/// samples are made.
float true_weight(std::size_t feature) { return static_cast<float>(feature + 1); }

struct Sample {
  std::vector<float> x;
  float y = 0;
};

std::vector<Sample> draw_samples(std::size_t count, std::size_t features, int seed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::normal_distribution<float> normal;
  std::vector<Sample> samples(count);
  for (Sample& sample : samples) {
    for (std::size_t j = 0; j < features; ++j) {
      sample.x.push_back(normal(random));
      sample.y += true_weight(j) * sample.x.back();
    }
  }
  return samples;
}

/// Computes the gradient of half the squared error, summed over the samples.
void find_gradient(const std::vector<Sample>& samples, const std::vector<float>& weights,
                   std::span<float> gradient) {
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  for (const Sample& sample : samples) {
    float error = -sample.y;
    for (std::size_t j = 0; j < weights.size(); ++j) error += weights[j] * sample.x[j];
    for (std::size_t j = 0; j < weights.size(); ++j) gradient[j] += error * sample.x[j];
  }
}

void train(weft::TrainContext& ctx, const weft::Config& config) {
  const auto features = config.at("features").get<std::size_t>();
  const auto steps = config.at("steps").get<int>();
  const auto gradients = ctx.allocate<float>(features);  // in shared memory on each chip
  std::vector<float> learnt;
  ctx.on_each_chip([&](weft::Chip& chip) {
    const auto samples = draw_samples(1000 + chip.position(), features, chip.position());
    auto count = static_cast<float>(samples.size());
    chip.all_reduce(count);  // `count` may be in any memory: it is copied to shared memory and back

    std::vector<float> weights(features);
    const std::span<float> gradient = gradients.on(chip);
    for (int step = 0; step < steps; ++step) {
      find_gradient(samples, weights, gradient);
      chip.all_reduce(gradient);  // `gradient` is in shared memory, so it is summed in place
      for (std::size_t j = 0; j < features; ++j) {
        weights[j] -= 0.5F * gradient[j] / count;
      }
    }
    if (chip.local_index() == 0) learnt = weights;  // equal on all chips, bit for bit
  });

  double error = 0;
  for (std::size_t j = 0; j < features; ++j) {
    error = std::max(error, std::abs(static_cast<double>(learnt[j] - true_weight(j))));
  }
  ctx.report({{"error", error}, {"chips", ctx.num_devices()}});
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Fits a linear model by explicit collectives.");
  int workers = 2;
  int chips = 2;
  int features = 64;
  int steps = 50;
  app.add_option("--workers", workers, "worker processes; 0: everything in this process")
      ->capture_default_str();
  app.add_option("--chips", chips, "chips per worker")->capture_default_str();
  app.add_option("--features", features, "weights to learn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--steps", steps, "gradient steps")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const weft::Result result =
      weft::Trainer(train, {.loop_config = {{"features", features}, {"steps", steps}},
                            .scaling = {.num_workers = workers, .chips_per_worker = chips},
                            .run = {.name = "allreduce"}})
          .fit();
  if (!result.ok()) {
    fmt::print(stderr, "{}\n", result.error->message);
    return 1;
  }
  fmt::print("{} chips, each with its own samples: largest error of {} weights {:.1e}\n",
             result.metrics["chips"].get<int>(), features, result.metrics["error"].get<double>());
}
