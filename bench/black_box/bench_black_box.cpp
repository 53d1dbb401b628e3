/// Measures how much the black box slows steps down. One job trains the digits example's network.
/// Blocks of steps alternate between no events, the usual events and all events.

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <weft/weft.hpp>

#include "bench/bench_main.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"
#include "bench/table.hpp"
#include "transport/blackbox/black_box_writer.hpp"

namespace {

using namespace weft;
using namespace weft::bench;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kItems = 1792;
constexpr std::int64_t kPixels = 64;
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kBatch = 32;
/// The number of steps at the beginning of a block that aren't counted, because the chips of other
/// workers see the new level one step later.
constexpr int kWarmup = 4;
constexpr std::array kLevels{TraceLevel::off, TraceLevel::sampled, TraceLevel::full};
constexpr std::array kNames{"no events", "the usual events", "all events"};

struct Options {
  int workers = 4;
  int chips = 4;  ///< per worker
  int rounds = 40;
  int steps = 100;  ///< per block
  std::string json_file;
};

struct Net : Module {
  Linear fc1{*this, "fc1", {.in_features = kPixels, .out_features = 128}};
  Linear fc2{*this, "fc2", {.in_features = 128, .out_features = 64}};
  Linear fc3{*this, "fc3", {.in_features = 64, .out_features = kClasses}};
  Tensor operator()(const Tensor& x) const { return fc3(tanh(fc2(tanh(fc1(x))))); }
};

DatasetPtr images() {
  std::vector<float> pixels(kItems * kPixels);
  std::vector<std::int32_t> labels(kItems);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 17) / 16;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
  return tensors({{"x", std::move(pixels), {kPixels}}, {"y", std::move(labels), {}}});
}

/// Runs the training. Worker 0 changes the level, which all writers of the job read. The last
/// report has the median time of the steps of each block, in microseconds, by round and level.
void train(TrainContext& context, const Config& config) {
  const int rounds = config.at("rounds").get<int>();
  const int steps = kWarmup + config.at("steps").get<int>();
  Net net;
  const Mesh& mesh = *context.mesh();
  mark_sharding(net.fc1.weight, mesh, {{"model"}, {}});
  mark_sharding(net.fc1.bias, mesh, {{"model"}});
  mark_sharding(net.fc2.weight, mesh, {{}, {"model"}});
  AdamW adam(net.parameters(), {.lr = 1e-3});
  DeviceLoader batches(
      images(), {.batch_size = kBatch, .shuffle = true, .input_sharding = PartitionSpec{{"data"}}});
  std::optional<BlackBoxWriter> box;
  if (context.world_rank() == 0) box.emplace(BlackBoxWriter::open(context.job_id()));

  const auto blocks = static_cast<std::size_t>(rounds) * kLevels.size();
  std::array<std::vector<double>, kLevels.size()> medians;
  std::vector<double> block;
  std::size_t number = 0;
  // Returns the level of block n. Each round begins with a different level.
  const auto level_of = [](std::size_t n) { return (n + n / kLevels.size()) % kLevels.size(); };
  if (box) box->set_level(kLevels[level_of(0)]);
  for (int step = 0; number < blocks;) {
    for (const Batch& batch : batches) {
      const auto begin = Clock::now();
      const Tensor loss = cross_entropy(net(batch["x"]), batch["y"]);
      adam.step(grad(loss, net.parameters()));
      weft::sync();
      context.report({{"loss", loss.item()}});
      const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
      if (step >= kWarmup) block.push_back(took.count());
      if (++step < steps) continue;
      medians[level_of(number)].push_back(median(std::exchange(block, {})));
      step = 0;
      if (++number == blocks) break;
      if (box) box->set_level(kLevels[level_of(number)]);
    }
  }
  Metrics times = Metrics::object();
  for (std::size_t i = 0; i < kLevels.size(); ++i) times[kNames[i]] = medians[i];
  context.report(times);
}

std::vector<TableRow> measure(const Options& options) {
  const std::string folder =
      std::filesystem::temp_directory_path() / fmt::format("weft-bench-black-box-{}", ::getpid());
  const Result result =
      Trainer(train,
              {.loop_config = {{"rounds", options.rounds}, {"steps", options.steps}},
               .scaling = {.num_workers = options.workers, .chips_per_worker = options.chips},
               .backend = {.spmd = {.mesh_shape = {options.workers, options.chips},
                                    .axis_names = {"data", "model"}}},
               .run = {.name = "bench", .storage_path = folder}})
          .fit();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!result.ok()) fail(result.error->code, "{}", result.error->message);
  std::vector<TableRow> rows;
  for (const char* name : kNames) {
    rows.push_back({.name = name,
                    .samples = result.metrics.at(name).get<std::vector<double>>(),
                    .unit = "us/step"});
    if (rows.size() > 1) rows.back().ratio = paired_ratio(rows.back(), rows.front());
  }
  return rows;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains with the events of the black box and without, alternating in one job."};
  const auto at_least_one = CLI::Range(1, 1'000'000);
  app.add_option("--workers", options.workers)->check(at_least_one)->capture_default_str();
  app.add_option("--chips", options.chips, "chips of a worker")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--rounds", options.rounds)->check(at_least_one)->capture_default_str();
  app.add_option("--steps", options.steps, "steps of a block")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  return options;
}

int run(const Options& options, const std::string& command) {
  nlohmann::json whole = describe_run(command);
  const std::vector<TableRow> rows = measure(options);
  print_table(fmt::format("a digits step on {} x {} chips", options.workers, options.chips),
              "of no events", rows);
  fmt::print("{}\n", machine_line(whole));
  whole["black_box"] = to_json(rows);
  write_report(options.json_file, whole.dump(1) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return weft::bench::bench_main(argc, argv, parse, run); }
