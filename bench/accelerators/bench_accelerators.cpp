/// Measures training steps and first steps through a PJRT plug-in for CPUs. weft on the plug-in,
/// weft's own engine and JAX run in turn, with the same data and initial parameters.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/accelerators/asked_training.hpp"
#include "bench/bench_main.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"
#include "bench/python_child.hpp"
#include "bench/table.hpp"
#include "tests/support/real_plugins.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

struct Options {
  std::vector<std::string> models{"mlp", "gpt"};
  int rounds = 9;
  int steps = 10;
  int firsts = 5;
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  bool tiny = false;
  bool peers = false;
  std::string json_file{};
};

/// A way to train a model.
class Side {
 public:
  virtual ~Side() = default;
  virtual std::string name() const = 0;
  /// Returns the milliseconds of the first step of a new training, with its trace and compilation.
  virtual double first() = 0;
  virtual TrainedSteps train(int count) = 0;
};

class WeftSide final : public Side {
 public:
  WeftSide(std::string name, const ModelTrainingOptions& options, DeviceKind device, int chips)
      : name_(std::move(name)), options_(options), device_(device), chips_(chips) {}

  std::string name() const override { return name_; }
  double first() override {
    AskedTraining training(options_, device_, chips_);
    return training.train(1).ms.at(0);
  }
  TrainedSteps train(int count) override {
    if (!training_) training_.emplace(options_, device_, chips_);
    return training_->train(count);
  }

 private:
  const std::string name_;
  const ModelTrainingOptions options_;
  const DeviceKind device_;
  const int chips_;
  std::optional<AskedTraining> training_{};
};

class JaxSide final : public Side {
 public:
  explicit JaxSide(const ModelTrainingOptions& options)
      : child_("bench/accelerators/jax_models.py", {options.folder, options.model}),
        version_(child_.ask("version").at("version")) {}

  std::string name() const override { return "JAX " + version_; }
  double first() override { return child_.ask("first").at("ms").at(0); }
  TrainedSteps train(int count) override {
    const nlohmann::json answer = child_.ask(fmt::format("train {}", count));
    return {.ms = answer.at("ms"), .losses = answer.at("losses")};
  }

 private:
  PythonChild child_;
  const std::string version_;
};

/// Measures all sides in turn. The ratios are to the last side.
std::vector<TableRow> measure(const Options& options, const std::string& model,
                              std::span<const std::unique_ptr<Side>> sides) {
  std::vector<TableRow> firsts;
  std::vector<TableRow> steps;
  std::vector<std::vector<double>> losses(sides.size());
  for (const auto& side : sides) {
    firsts.push_back(
        {.name = fmt::format("{}, first step, {}", model, side->name()), .unit = "ms"});
    steps.push_back({.name = fmt::format("{}, step, {}", model, side->name()), .unit = "ms"});
  }
  for (int i = 0; i < options.firsts; ++i) {
    for (std::size_t s = 0; s < sides.size(); ++s) firsts[s].samples.push_back(sides[s]->first());
  }
  for (int round = 0; round <= options.rounds; ++round) {
    for (std::size_t s = 0; s < sides.size(); ++s) {
      const TrainedSteps trained = sides[s]->train(options.steps);
      losses[s].insert(losses[s].end(), trained.losses.begin(), trained.losses.end());
      if (round == 0) continue;  // the first round compiles
      steps[s].samples.insert(steps[s].samples.end(), trained.ms.begin(), trained.ms.end());
    }
  }
  constexpr double kLossLimit = 1e-4;
  for (std::size_t s = 0; s + 1 < sides.size(); ++s) {
    expect_equal_losses(steps[s].name, losses[s], sides.back()->name(), losses.back(), kLossLimit);
    firsts[s].ratio = paired_ratio(firsts[s], firsts.back());
    steps[s].ratio = paired_ratio(steps[s], steps.back());
  }
  firsts.insert(firsts.end(), steps.begin(), steps.end());
  return firsts;
}

/// A model with a folder for its data, and with JAX's side if peers are measured.
struct Prepared {
  ModelTrainingOptions training{};
  std::unique_ptr<Side> jax{};
};

/// Writes the data and the initial parameters of a model, which all sides read.
Prepared prepare(const Options& options, const std::string& model, const std::string& folder) {
  Prepared prepared{{.model = model, .tiny = options.tiny, .folder = folder + "/" + model}};
  std::filesystem::create_directories(prepared.training.folder);
  AskedTraining(prepared.training, DeviceKind::cpu, 1).write_batches();
  if (options.peers) prepared.jax = std::make_unique<JaxSide>(prepared.training);
  return prepared;
}

std::vector<TableRow> measure(const Options& options, Prepared prepared) {
  const ModelTrainingOptions& training = prepared.training;
  std::vector<std::unique_ptr<Side>> sides;
  sides.push_back(
      std::make_unique<WeftSide>(fmt::format("weft's own engine, {} chips", options.cores),
                                 training, DeviceKind::cpu, options.cores));
  sides.push_back(
      std::make_unique<WeftSide>("weft on the plug-in", training, DeviceKind::pjrt_cpu, 1));
  if (prepared.jax) sides.push_back(std::move(prepared.jax));
  return measure(options, training.model, sides);
}

/// Chooses the newest plug-in of tools/dev plugins, unless WEFT_PJRT_PLUGIN names another one.
/// Returns false if there is none.
bool choose_plugin() {
  if (std::getenv("WEFT_PJRT_PLUGIN") != nullptr) return true;
  const auto plugins = testing::real_plugins();
  if (plugins.empty()) return false;
  ::setenv("WEFT_PJRT_PLUGIN", plugins.front().path.c_str(), 1);
  return true;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains models through a PJRT plug-in for CPUs, beside weft's own engine and JAX."};
  const auto at_least_one = CLI::Range(1, 1'000'000);
  app.add_option("--models", options.models)
      ->delimiter(',')
      ->check(CLI::IsMember({"mlp", "gpt"}))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds)->check(at_least_one)->capture_default_str();
  app.add_option("--steps", options.steps, "steps of a round")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--firsts", options.firsts, "how many first steps are measured")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--cores", options.cores, "chips of weft's own engine, each with one thread")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_flag("--tiny", options.tiny, "small models, to test that the bench works");
  app.add_flag("--peers", options.peers, "beside JAX, which tools/dev bench installs");
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  return options;
}

int run(Options options, const std::string& command) {
  if (!choose_plugin()) {
    fmt::print(stderr, "nothing is measured: {}\n", testing::kNoRealPlugins);
    return 0;
  }
  ::setenv("PYTHONPATH", WEFT_JAX, 1);
  if (options.peers && !PythonChild::has("jax")) {
    fmt::print(stderr, "left out: JAX: tools/dev bench accelerators --peers installs it\n");
    options.peers = false;
  }
  nlohmann::json whole = describe_run(command);
  std::vector<TableRow> all;
  const std::string folder =
      std::filesystem::temp_directory_path() / fmt::format("weft-bench-{}", ::getpid());
  // All processes of JAX are started first, because a process with a client mustn't fork.
  std::vector<Prepared> prepared;
  for (const std::string& model : options.models) {
    prepared.push_back(prepare(options, model, folder));
  }
  for (Prepared& model : prepared) {
    const std::vector<TableRow> rows = measure(options, std::move(model));
    print_table("training on the CPU", options.peers ? "ratio to JAX" : "ratio to last", rows);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  std::filesystem::remove_all(folder);
  whole["plugin"] = std::filesystem::path(std::getenv("WEFT_PJRT_PLUGIN")).filename().string();
  fmt::print("{}, {}\n", machine_line(whole), whole["plugin"].get<std::string>());
  whole["accelerators"] = to_json(all);
  write_report(options.json_file, whole.dump(1) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return weft::bench::bench_main(argc, argv, parse, run); }
