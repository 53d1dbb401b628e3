/// A loop that is steered by commands, for tests that kill its workers or all processes of the job.
/// Its result has the commands that its loops have read, and the bits of its weights. With --script
/// the loops read the commands of an earlier run from that run's result instead.

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <weft/weft.hpp>

namespace {

/// "rate" sets a variable of the loop, "halve" halves a number of its state, "save" saves, and
/// "end" ends the loop.
class Training {
 public:
  Training(weft::TrainContext& ctx, const weft::Config& config) : ctx_(ctx), config_(config) {
    for (const weft::Command& command : ctx.earlier_commands()) {
      note(command);
      if (command.name == "rate") rate_ = command.payload;
      if (command.name == "end") ends_ = true;
    }
  }

  weft::Metrics run() {
    for (;;) {
      for (const weft::Command& command : due()) obey(command);
      if (ends_) break;
      weights_.assign(weights_ * (1 - rate_ * scale_.value()) + weft::mean(weights_) * rate_ + 0.5);
      weft::sync();
      if (ctx_.step() % 16 == 0) ctx_.report({{"step", ctx_.step()}});
    }
    return {{"commands", commands_}, {"weights", weights_.to_vector()}, {"steps", ctx_.step()}};
  }

 private:
  void note(const weft::Command& command) {
    commands_.push_back({command.name, command.payload, command.step});
  }
  void obey(const weft::Command& command) {
    note(command);
    if (command.name == "rate") rate_ = command.payload;
    if (command.name == "halve") scale_.set(scale_.value() / 2);
    if (command.name == "save") checkpoints_.save(state_, {.force = true});
    if (command.name == "end") ends_ = true;
  }
  std::vector<weft::Command> due() {
    std::vector<weft::Command> commands = ctx_.commands();
    if (config_["script"].is_null()) return commands;
    for (const weft::Metrics& line : config_["script"]) {
      if (line[2] != ctx_.step()) continue;
      commands.push_back({.name = line[0], .payload = line[1], .step = line[2]});
    }
    return commands;
  }

  weft::TrainContext& ctx_;
  const weft::Config& config_;
  weft::Parameter weights_ =
      weft::make_parameter("weights", std::vector<float>{0.1F, 0.7F, -3, 4}, {4});
  weft::HostNumber scale_{"scale", 0.5};
  const std::vector<weft::Parameter> state_{weights_, scale_.state()[0]};
  weft::CheckpointManager checkpoints_;
  double rate_ = 0.01;
  bool ends_ = false;
  weft::Metrics commands_ = weft::Metrics::array();
};

const weft::Loop commanded{"test.commanded",
                           [](weft::TrainContext& ctx, const weft::Config& config) {
                             return Training(ctx, config).run();
                           }};

/// Prints the job's id, by which the test finds the job.
struct PrintsJob : weft::Callback {
  void on_start(const weft::JobInfo& job) override {
    fmt::print("job {}\n", job.id);
    std::fflush(stdout);
  }
};

weft::Metrics script_of(const std::string& file) {
  if (file.empty()) return nullptr;
  const auto result = weft::Metrics::parse(std::ifstream(file));
  return result.at("returned").at(0).at("commands");
}

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  std::string json;
  std::string script;
  std::string storage = "~/weft_runs";
  std::string checkpoints;
  int workers = 3;
  int max_failures = -1;
  double keep_for_rescue_s = 0;
  CLI::App app;
  app.add_option("--json", json);
  app.add_option("--script", script);
  app.add_option("--storage", storage);
  app.add_option("--checkpoints", checkpoints);
  app.add_option("--workers", workers);
  app.add_option("--max-failures", max_failures);
  app.add_option("--keep-for-rescue", keep_for_rescue_s);
  CLI11_PARSE(app, argc, argv);
  const weft::Result result =
      weft::Trainer(commanded, {.loop_config = {{"script", script_of(script)}},
                                .scaling = {.num_workers = workers, .chips_per_worker = 2},
                                .backend = {.timeout_s = 120},
                                .run = {.name = "commands",
                                        .storage_path = storage,
                                        .failure = {.max_failures = max_failures},
                                        .checkpoint = {.path = checkpoints},
                                        .resume = checkpoints.empty() ? "never" : "auto",
                                        .callbacks = {std::make_shared<PrintsJob>()},
                                        .keep_for_rescue_s = keep_for_rescue_s}})
          .fit();
  std::ofstream(json) << weft::Metrics{{"returned", result.returned},
                                       {"failures", result.failures.size()},
                                       {"path", result.path},
                                       {"error", result.error ? result.error->message : ""}};
  return result.ok() ? 0 : 1;
}
