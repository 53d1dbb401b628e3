/// Measures the time from the loss of a worker to the job's next step, for weft and torchrun.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/bench_main.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"
#include "bench/recovery/losses.hpp"
#include "bench/recovery/torch_job.hpp"
#include "bench/recovery/training.hpp"

namespace {

using namespace weft;
using namespace weft::bench;
using nlohmann::json;

struct Options {
  int workers = 4;
  int chips = 4;
  int kills = 30;
  int at_once = 1;
  int state_mib = 0;
  std::uint64_t seed = 1;
  bool torch = false;
  int torch_kills = 10;
  int save_every = 10;
  std::string json_file = {};
};

struct Setting {
  std::string name;
  FailureConfig failure;
};

/// Returns all settings with which weft is measured. A restart waits for backoff_s only if the same
/// worker was lost twice without a step in between.
std::vector<Setting> settings() {
  return {{"backoff_s = 0.1 (default)", {.max_failures = -1}},
          {"backoff_s = 0", {.max_failures = -1, .backoff_s = 0}},
          {"restart = group", {.max_failures = -1, .restart = Restart::group}}};
}

template <typename Sample, typename Field>
json summary_of(const std::vector<Sample>& samples, Field field) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(static_cast<double>(field(sample)));
  return summarize(std::move(values));
}

template <typename Sample>
json samples_of(const std::vector<Sample>& samples) {
  json values = json::array();
  for (const Sample& sample : samples) values.push_back(sample.stepped_ms);
  return values;
}

json row_of(const std::string& setting, const std::vector<Loss>& losses) {
  const auto part = [&](const char* name, auto field) {
    return json{{"part", name}, {"ms", summary_of(losses, field)}};
  };
  return {{"implementation", "weft"},
          {"setting", setting},
          {"kills", losses.size()},
          {"first_step_ms", summary_of(losses, [](auto& l) { return l.stepped_ms; })},
          {"steps_again", summary_of(losses, [](auto& l) { return l.steps_again; })},
          {"parts",
           {part("notice", [](auto& l) { return l.noticed_ms; }),
            part("start process", [](auto& l) { return l.started_ms - l.noticed_ms; }),
            part("gather", [](auto& l) { return l.resumed_ms - l.started_ms; }),
            part("first step", [](auto& l) { return l.stepped_ms - l.resumed_ms; })}},
          {"samples_ms", samples_of(losses)}};
}

json row_of(const std::string& setting, const std::vector<TorchLoss>& losses) {
  return {{"implementation", "torchrun"},
          {"setting", setting},
          {"kills", losses.size()},
          {"first_step_ms", summary_of(losses, [](auto& l) { return l.stepped_ms; })},
          {"steps_again", summary_of(losses, [](auto& l) { return l.steps_lost; })},
          {"samples_ms", samples_of(losses)}};
}

void print_row(const json& row) {
  const auto print = [](const std::string& name, const json& figures) {
    fmt::print("  {:<46}{:>9.1f}{:>9.1f}{:>9.1f}{:>9.1f}\n", name, figures["median"].get<double>(),
               figures["p90"].get<double>(), figures["min"].get<double>(),
               figures["max"].get<double>());
  };
  fmt::print("\n{:<48}{:>9}{:>9}{:>9}{:>9}\n",
             fmt::format("{}, {}, {} kills", row["implementation"].get<std::string>(),
                         row["setting"].get<std::string>(), row["kills"].get<int>()),
             "median", "p90", "min", "max");
  print("kill to first step, ms", row["first_step_ms"]);
  for (const json& part : row.value("parts", json::array())) {
    print("  " + part["part"].get<std::string>(), part["ms"]);
  }
  print("steps again", row["steps_again"]);
  std::fflush(stdout);
}

/// Measures weft. A worker is a copy of this process, which ends in its fit() call.
std::vector<json> measure_weft(const Options& options, const std::string& folder) {
  std::vector<json> rows;
  std::vector<std::shared_ptr<LossMaker>> makers;
  for (const Setting& setting : settings()) {
    makers.push_back(std::make_shared<LossMaker>(options.kills, options.seed, options.at_once));
    train({.workers = options.workers,
           .chips = options.chips,
           .steps = LossMaker::steps_of_job(options.kills),
           .state_mib = options.state_mib,
           .failure = setting.failure,
           .storage_path = folder},
          {makers.back()});
  }
  for (std::size_t i = 0; i < makers.size(); ++i) {
    const std::string name = settings()[i].name;
    if (std::ssize(makers[i]->losses()) != options.kills) {
      fail(Errc::loop_failed, "{}: after {} of {} kills: {}", name, makers[i]->losses().size(),
           options.kills, makers[i]->why());
    }
    rows.push_back(row_of(name, makers[i]->losses()));
    print_row(rows.back());
  }
  return rows;
}

std::vector<json> measure_torch(const Options& options, const std::string& folder) {
  if (!has_torch()) {
    fmt::print(stderr, "left out: torchrun: python3 has no torch (python3-torch)\n");
    return {};
  }
  std::vector<json> rows;
  for (const std::string interval : {"", "0.1"}) {
    const std::string place = fmt::format("{}/torch{}", folder, interval);
    std::filesystem::create_directories(place);
    const auto losses = lose_torch_ranks({.ranks = options.workers,
                                          .kills = options.torch_kills,
                                          .save_every = options.save_every,
                                          .interval = interval,
                                          .folder = place,
                                          .seed = options.seed});
    rows.push_back(
        row_of(fmt::format("monitor_interval = {}, saves every {} steps",
                           interval.empty() ? "5 (default)" : interval, options.save_every),
               losses));
    print_row(rows.back());
  }
  return rows;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures how soon a job makes its next step after a worker is killed."};
  app.add_option("--workers", options.workers)->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--chips", options.chips, "per worker")->capture_default_str();
  app.add_option("--kills", options.kills, "number of kills for each setting")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--at-once", options.at_once,
                 "workers that are killed together; at most all workers")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--state-mib", options.state_mib,
                 "MiB of further parameters and their AdamW state, on each chip")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_flag("--peers", options.torch, "measure torchrun too, with as many ranks as workers");
  app.add_option("--peer-kills", options.torch_kills)->capture_default_str();
  app.add_option("--save-every", options.save_every, "steps between torchrun's checkpoints")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder =
      std::filesystem::temp_directory_path() / fmt::format("weft-bench-recovery-{}", ::getpid());
  ::setenv("WEFT_LOG", "error", 0);  // each loss logs a warning, which isn't shown
  const int code =
      bench_main(argc, argv, parse, [&](const Options& options, const std::string& command) {
        std::vector<json> rows = measure_weft(options, folder);
        if (options.torch) {
          for (json& row : measure_torch(options, folder)) rows.push_back(std::move(row));
        }
        json whole = describe_run(command);
        whole["results"] = rows;
        write_report(options.json_file, whole.dump(2) + "\n");
        return 0;
      });
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return code;
}
