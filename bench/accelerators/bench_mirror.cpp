/// Trains the same model on the CPU and on an accelerator: compares losses, measures what the
/// mirror of the state costs, and kills a worker to see whether the bits stay. `tools/dev gpu` runs
/// it. The exit status is 1 if losses or bits differ.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <weft/weft.hpp>

#include "bench/bench_main.hpp"
#include "bench/machine.hpp"

namespace {

using namespace weft;
using namespace weft::bench;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kWarmup = 5;
/// The losses of f32 on two kinds of chips may differ by this part of themselves.
constexpr double kLossTolerance = 1e-4;

struct Options {
  DeviceKind device = DeviceKind::automatic;
  int chips = 1;
  int rounds = 3;
  int steps = 50;
  std::int64_t rows = 256;
  std::int64_t columns = 784;
  std::int64_t hidden = 1024;
  std::string json_file;
};

struct Net : Module {
  Net(std::int64_t columns, std::int64_t hidden)
      : fc1(*this, "fc1", {.in_features = columns, .out_features = hidden}),
        fc2(*this, "fc2", {.in_features = hidden, .out_features = hidden}),
        fc3(*this, "fc3", {.in_features = hidden, .out_features = 10}) {}
  Tensor operator()(const Tensor& x) const { return fc3(relu(fc2(relu(fc1(x))))); }
  Linear fc1, fc2, fc3;
};

/// Reports the loss and the microseconds of each step. Kills its process in step `kill_step`, the
/// first time.
void train(TrainContext& context, const Config& config) {
  const auto rows = config.at("rows").get<std::int64_t>();
  const auto columns = config.at("columns").get<std::int64_t>();
  const auto killed = config.at("killed").get<std::string>();
  Net net(columns, config.at("hidden").get<std::int64_t>());
  AdamW adam(net.parameters(), {.lr = 1e-4});
  std::vector<float> pixels(static_cast<std::size_t>(rows * columns));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
  while (context.step() < config.at("steps").get<std::uint64_t>()) {
    const std::uint64_t step = context.step();
    if (step == config.at("kill_step") && !std::filesystem::exists(killed)) {
      std::ofstream{killed} << step;
      std::raise(SIGKILL);
    }
    const Clock::time_point begin = Clock::now();
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<float>((i * 31 + step * 17) % 101) / 101;
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = static_cast<std::int32_t>((i + step) % 10);
    }
    const Tensor x = to_device(pixels, {rows, columns});
    const Tensor y = to_device(labels, {rows});
    data_parallel({x, y}, *context.mesh());
    const Tensor loss = cross_entropy(net(x), y);
    adam.step(grad(loss, net.parameters()));
    weft::sync();
    const float value = loss.item<float>();
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    context.report({{"loss", value}, {"us", took.count()}, {"device", device().to_string()}});
  }
}

Loop trains{"bench.accelerator", train};

struct Job {
  DeviceKind device = DeviceKind::cpu;
  bool is_mirrored = false;  ///< the job survives losses
  bool is_killed = false;
};

struct Run {
  std::string device{};
  std::vector<float> losses{};
  std::vector<double> us{};  ///< durations of the steps after the warm-up
};

Run run_job(const Options& options, const Job& job) {
  const std::string folder =
      std::filesystem::temp_directory_path() / fmt::format("weft-bench-accelerator-{}", ::getpid());
  std::filesystem::create_directories(folder);
  const int never = options.steps;
  const Result result =
      Trainer(trains, {.loop_config = {{"rows", options.rows},
                                       {"columns", options.columns},
                                       {"hidden", options.hidden},
                                       {"steps", options.steps},
                                       {"kill_step", job.is_killed ? options.steps / 2 : never},
                                       {"killed", folder + "/killed"}},
                       .scaling = {.chips_per_worker = options.chips, .device = job.device},
                       .run = {.name = "bench",
                               .storage_path = folder,
                               .failure = {.max_failures = job.is_mirrored ? 1 : 0}}})
          .fit();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!result.ok()) fail(result.error->code, "{}", result.error->message);
  Run run;
  for (const Metrics& metrics : result.metrics_history) {
    run.device = metrics.at("device").get<std::string>();
    run.losses.push_back(metrics.at("loss").get<float>());
    if (run.losses.size() > kWarmup) run.us.push_back(metrics.at("us").get<double>());
  }
  return run;
}

/// Returns the largest difference of two runs' losses as a part of the loss.
double loss_difference(const Run& a, const Run& b) {
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.losses.size(), b.losses.size()); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a.losses[i]) - b.losses[i]) /
                                    std::abs(static_cast<double>(a.losses[i])));
  }
  return largest;
}

DeviceKind device_named(const std::string& name) {
  for (const DeviceKind kind : {DeviceKind::automatic, DeviceKind::cpu, DeviceKind::gpu,
                                DeviceKind::tpu, DeviceKind::pjrt_cpu, DeviceKind::pjrt_mirrored}) {
    if (to_string(kind) == name) return kind;
  }
  throw CLI::ValidationError("--device",
                             fmt::format("\"{}\": expected automatic, cpu, gpu, tpu, pjrt:cpu or "
                                         "pjrt:mirrored",
                                         name));
}

Options parse(int argc, char** argv) {
  Options options;
  std::string device = "automatic";
  CLI::App app{"Trains on the CPU and on an accelerator, with a mirror and without, and kills."};
  const auto at_least_one = CLI::Range(1, 1'000'000);
  app.add_option("--device", device, "the kind of accelerator")->capture_default_str();
  for (const auto& [name, option] : {std::pair("--chips", &options.chips),
                                     {"--rounds", &options.rounds},
                                     {"--steps", &options.steps}}) {
    app.add_option(name, *option)->check(at_least_one)->capture_default_str();
  }
  for (const auto& [name, option] : {std::pair("--rows", &options.rows),
                                     {"--columns", &options.columns},
                                     {"--hidden", &options.hidden}}) {
    app.add_option(name, *option)->check(at_least_one)->capture_default_str();
  }
  app.add_option("--json", options.json_file, "file for the results");
  try {
    app.parse(argc, argv);
    options.device = device_named(device);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

int run(const Options& options, const std::string& command) {
  const DeviceKind device = options.device;
  const Run cpu = run_job(options, {.device = DeviceKind::cpu});
  std::vector<double> plain, mirrored;  // the medians of the rounds
  Run first, last;
  for (int round = 0; round < options.rounds; ++round) {
    const Run without = run_job(options, {.device = device});
    last = run_job(options, {.device = device, .is_mirrored = true});
    if (round == 0) first = without;
    plain.push_back(median(without.us));
    mirrored.push_back(median(last.us));
  }
  const Run killed = run_job(options, {.device = device, .is_mirrored = true, .is_killed = true});
  const double difference = loss_difference(cpu, first);
  const bool is_same = first.losses == last.losses;
  const bool is_same_after_kill = killed.losses == last.losses;
  nlohmann::json whole = describe_run(command);
  whole["accelerator"] = {{"device", first.device},
                          {"losses", {{"cpu", cpu.losses}, {"accelerator", first.losses}}},
                          {"loss_difference", difference},
                          {"same_bits", is_same},
                          {"same_bits_after_a_kill", is_same_after_kill},
                          {"us_of_a_step",
                           {{"cpu", summarize(cpu.us)},
                            {"without_mirror", summarize(plain)},
                            {"with_mirror", summarize(mirrored)}}}};
  fmt::print(
      "{}: loss differs from the CPU's by {:.1e}; same bits {}, after a kill {}\n"
      "a step takes {:.0f} us without a mirror, {:.0f} us with it, {:.0f} us on the CPU\n",
      first.device, difference, is_same, is_same_after_kill, median(plain), median(mirrored),
      median(cpu.us));
  fmt::print("{}\n", machine_line(whole));
  write_report(options.json_file, whole.dump(1) + "\n");
  return is_same && is_same_after_kill && difference <= kLossTolerance ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  worker_main(argc, argv);
  return weft::bench::bench_main(argc, argv, parse, run);
}
