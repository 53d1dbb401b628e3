#include "examples/common/port.hpp"

#include <cstdio>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "examples/common/digits_data.hpp"
#include "examples/common/layout.hpp"
#include "examples/common/report.hpp"

namespace examples {
namespace {

/// Prints a line every few steps.
class Lines : public weft::Callback {
 public:
  explicit Lines(std::uint64_t steps) : steps_(steps) {}
  void on_start(const weft::JobInfo& job) override {
    fmt::print("job {}\nmesh {}\n", job.id, job.mesh ? job.mesh->to_string() : "none");
    std::fflush(stdout);
  }
  void on_report(const weft::Metrics& metrics) override {
    if (metrics.contains("sample")) {
      fmt::print("{:-<60}\n{}\n{:-<60}\n", "", metrics["sample"].get<std::string>(), "");
    }
    const auto step = metrics.value("step", std::uint64_t{0});
    if (step == 0) return;
    if (step != 1 && step % std::max<std::uint64_t>(steps_ / 20, 1) != 0) return;
    std::string line = fmt::format("step {:5}/{}", step, steps_);
    for (const auto& [name, value] : metrics.items()) {
      if (value.is_number_float()) line += fmt::format("  {} {:.4f}", name, value.get<double>());
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }

 private:
  std::uint64_t steps_;
};

template <typename T>
void add_option(CLI::App& app, const Setting& setting, weft::Config& config) {
  const auto set = [&config, name = setting.name](const T& value) { config[name] = value; };
  app.add_option_function<T>("--" + setting.name, set, setting.help)
      ->default_str(setting.value.dump());
}

void add_setting(CLI::App& app, const Setting& setting, weft::Config& config) {
  config[setting.name] = setting.value;
  switch (setting.value.type()) {
    case weft::Config::value_t::boolean:
      app.add_flag_callback(
          "--" + setting.name, [&config, name = setting.name] { config[name] = true; },
          setting.help);
      return;
    case weft::Config::value_t::string: return add_option<std::string>(app, setting, config);
    case weft::Config::value_t::number_float: return add_option<double>(app, setting, config);
    default: return add_option<std::int64_t>(app, setting, config);
  }
}

}  // namespace

int run(const Port& port, int argc, char** argv) {
  Layout layout{.workers = 2, .chips = 2, .topology = ""};
  weft::Config config;
  std::uint64_t seed = 0;
  int max_failures = 0;
  std::string json;
  CLI::App app{port.about};
  layout.add_to(app);
  add_setting(app, {"steps", 200, ""}, config);
  for (const Setting& setting : port.settings) add_setting(app, setting, config);
  app.add_option("--seed", seed)->capture_default_str();
  app.add_option("--max-failures", max_failures,
                 "how many losses of a worker the run survives; -1: any number");
  app.add_option("--json", json, "file for the result");
  CLI11_PARSE(app, argc, argv);
  try {
    const auto lines = std::make_shared<Lines>(config["steps"].get<std::uint64_t>());
    weft::Trainer trainer(port.loop, {.loop_config = config,
                                      .scaling = layout.scaling(),
                                      .backend = {.spmd = layout.spmd(port.axes)},
                                      .run = {.name = port.name,
                                              .failure = {.max_failures = max_failures},
                                              .callbacks = {lines},
                                              .seed = seed}});
    const weft::Result result = trainer.fit();
    if (!json.empty()) std::ofstream(json) << to_json(result) << '\n';
    return result.ok() ? 0 : 1;
  } catch (const weft::Error& error) {
    fmt::print(stderr, "{}: {}\n", port.name, error.what());
    return 2;
  }
}

void for_steps(weft::TrainContext& ctx, const weft::Config& config, weft::DeviceLoader& batches,
               const std::function<weft::Metrics(const weft::Batch&)>& step) {
  const auto steps = config.at("steps").get<std::uint64_t>();
  while (ctx.step() < steps) {
    for (const weft::Batch& batch : batches) {
      if (ctx.reached_preemption()) return;
      weft::Metrics metrics = step(batch);
      metrics["step"] = ctx.step();
      ctx.report(metrics);
      if (ctx.step() == steps) return;
    }
  }
}

weft::DeviceLoader digit_batches(const weft::Config& config) {
  const bool plain = config.at("plain");
  return {digits::load(DIGITS_CSV, !plain).train,
          {.batch_size = config.at("batch"),
           .shuffle = !plain,
           .input_sharding = weft::PartitionSpec{{"data", "model"}}}};
}

std::vector<Setting> digit_settings() {
  return {{"batch", 64, "images per step, over all chips"},
          {"plain", false, "use the images unchanged, in the order of the file"}};
}

}  // namespace examples
