/// Measures how much a step is slowed down by comparing the data that workers upload. The same
/// training runs in turn without comparison, with the default comparison, and with comparison in
/// every run of the program.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <weft/weft.hpp>

#include "bench/bench_main.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"
#include "bench/table.hpp"

namespace {

using namespace weft;
using namespace weft::bench;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kClasses = 10;
constexpr int kWarmup = 20;

struct Variant {
  const char* name;
  const char* value;  ///< the value of the environment variable WEFT_CHECK_DATA
};
constexpr std::array kVariants{Variant{"never", "0"}, Variant{"by default", ""},
                               Variant{"every run", "all"}};

struct Options {
  int workers = 4;
  int chips = 4;  ///< per worker
  int rounds = 10;
  int steps = 400;
  std::int64_t rows = 32;
  std::int64_t columns = 64;
  std::string json_file;
};

struct Net : Module {
  explicit Net(std::int64_t columns)
      : fc1(*this, "fc1", {.in_features = columns, .out_features = 128}),
        fc2(*this, "fc2", {.in_features = 128, .out_features = 64}),
        fc3(*this, "fc3", {.in_features = 64, .out_features = kClasses}) {}
  Tensor operator()(const Tensor& x) const { return fc3(tanh(fc2(tanh(fc1(x))))); }
  Linear fc1, fc2, fc3;
};

/// Runs the training, and reports the mean microseconds of the steps after the warm-up.
void train(TrainContext& context, const Config& config) {
  const auto rows = config.at("rows").get<std::int64_t>();
  const auto columns = config.at("columns").get<std::int64_t>();
  const int steps = config.at("steps").get<int>();
  Net net(columns);
  AdamW adam(net.parameters(), {.lr = 1e-3});
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    const Tensor loss = cross_entropy(net(x), y);
    adam.step(grad(loss, net.parameters()));
    return loss;
  });
  std::vector<float> pixels(static_cast<std::size_t>(rows * columns), 0.5F);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(rows), 1);
  Clock::time_point begin;
  for (int i = 0; i < kWarmup + steps; ++i) {
    if (i == kWarmup) begin = Clock::now();
    pixels[static_cast<std::size_t>(i) % pixels.size()] += 0.25F;
    const Tensor x = to_device(pixels, {rows, columns});
    const Tensor y = to_device(labels, {rows});
    data_parallel({x, y}, *context.mesh());
    step(x, y).item();
  }
  const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
  context.report({{"us", took.count() / steps}});
}

Loop trains{"bench.data_check", train};

double measure_one(const Options& options, const Variant& variant, const std::string& folder) {
  ::setenv("WEFT_CHECK_DATA", variant.value, 1);
  const Result result =
      Trainer(trains,
              {.loop_config = {{"rows", options.rows},
                               {"columns", options.columns},
                               {"steps", options.steps}},
               .scaling = {.num_workers = options.workers, .chips_per_worker = options.chips},
               .backend = {.spmd = {.mesh_shape = {options.workers * options.chips},
                                    .axis_names = {"data"}}},
               .run = {.name = "bench", .storage_path = folder}})
          .fit();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!result.ok()) fail(result.error->code, "{}", result.error->message);
  return result.metrics.at("us").get<double>();
}

/// Runs a job of each variant in each round. Each round begins with a different variant.
std::vector<TableRow> measure(const Options& options) {
  const std::string folder =
      std::filesystem::temp_directory_path() / fmt::format("weft-bench-data-check-{}", ::getpid());
  std::vector<TableRow> rows;
  for (const Variant& variant : kVariants)
    rows.push_back({.name = variant.name, .unit = "us/step"});
  for (int round = 0; round < options.rounds; ++round) {
    std::array<double, kVariants.size()> times{};
    for (std::size_t i = 0; i < kVariants.size(); ++i) {
      const std::size_t which = (i + static_cast<std::size_t>(round)) % kVariants.size();
      times[which] = measure_one(options, kVariants[which], folder);
    }
    for (std::size_t i = 0; i < times.size(); ++i) rows[i].samples.push_back(times[i]);
  }
  for (TableRow& row : rows) {
    if (&row != rows.data()) row.ratio = paired_ratio(row, rows.front());
  }
  return rows;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains with the comparison of workers' data and without, alternating."};
  const auto at_least_one = CLI::Range(1, 1'000'000);
  app.add_option("--workers", options.workers)->check(at_least_one)->capture_default_str();
  app.add_option("--chips", options.chips, "chips of a worker")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--rounds", options.rounds)->check(at_least_one)->capture_default_str();
  app.add_option("--steps", options.steps, "steps of a job")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--rows", options.rows, "rows of a batch")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--columns", options.columns)->check(at_least_one)->capture_default_str();
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  return options;
}

int run(const Options& options, const std::string& command) {
  nlohmann::json whole = describe_run(command);
  const std::vector<TableRow> rows = measure(options);
  print_table(fmt::format("a step of a batch of {} x {} on {} x {} chips", options.rows,
                          options.columns, options.workers, options.chips),
              "of never", rows);
  fmt::print("{}\n", machine_line(whole));
  whole["data_check"] = to_json(rows);
  write_report(options.json_file, whole.dump(1) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  worker_main(argc, argv);
  return weft::bench::bench_main(argc, argv, parse, run);
}
