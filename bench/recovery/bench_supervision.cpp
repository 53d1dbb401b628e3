/// Measures how much supervision slows down a job that loses no worker. Trainings that differ in
/// one setting run in turn. Each is compared to the plain training of the same round.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "bench/bench_main.hpp"
#include "bench/collectives/process.hpp"
#include "bench/machine.hpp"

namespace {

using namespace weft;
using namespace weft::bench;
using nlohmann::json;

/// The time after which a training that hasn't ended is aborted.
constexpr std::chrono::minutes kPatience{10};

struct Options {
  std::vector<std::string> layouts = {"4x4", "0x4", "0x1"};
  int rounds = 40;
  int steps = 200;
  int warmup = 40;  ///< steps at the beginning that aren't counted
  std::string json_file = {};
};

struct Variant {
  std::string name;
  std::string program;
  std::vector<std::string> words = {};
  Process::Environment environment = {};
  std::vector<double> step_us = {};  ///< the median of each round
};

std::vector<Variant> variants(int workers) {
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").replace_filename("bench_training");
  std::vector<Variant> all{{"plain", program}};
  // The difference between this variant and "plain" shows how large the noise is.
  all.push_back({"plain, again", program});
  if (workers > 0) {
    all.push_back({"max_failures = 3", program, {"--max-failures", "3"}});
    all.push_back({"max_failures = 3, hang_timeout_s = 5",
                   program,
                   {"--max-failures", "3", "--hang-timeout", "5"}});
    all.push_back({"max_failures = 3, state_versions = 1",
                   program,
                   {"--max-failures", "3", "--state-versions", "1"}});
  }
  all.push_back({"WEFT_TRACE=off", program, {}, {{"WEFT_TRACE", "off"}}});
  all.push_back({"check_replicas_every = 10", program, {"--check-replicas-every", "10"}});
  return all;
}

double run(const Variant& variant, const Options& options, int workers, int chips,
           const std::string& file) {
  std::vector<std::string> words{variant.program,
                                 "--workers",
                                 fmt::to_string(workers),
                                 "--chips",
                                 fmt::to_string(chips),
                                 "--steps",
                                 fmt::to_string(options.steps),
                                 "--json",
                                 file};
  words.insert(words.end(), variant.words.begin(), variant.words.end());
  std::filesystem::remove(file);
  Process process(words, variant.environment);
  process.stop(kPatience);
  std::ifstream stream(file);
  if (!stream) fail(Errc::io, "{} has failed", fmt::join(words, " "));
  const auto step_us = json::parse(stream).get<std::vector<double>>();
  return median({step_us.begin() + options.warmup, step_us.end()});
}

/// Returns two of the samples. With a probability of 95 %, the true median is between them.
json median_within(std::vector<double> samples) {
  std::ranges::sort(samples);
  const auto count = static_cast<double>(samples.size());
  const double off = (count - 1.96 * std::sqrt(count)) / 2;
  const auto low = static_cast<std::size_t>(std::max(std::floor(off), 0.0));
  return {samples[low], samples[samples.size() - 1 - low]};
}

json row_of(const Variant& variant, const Variant& plain, const std::string& layout) {
  std::vector<double> percent;
  for (std::size_t round = 0; round < plain.step_us.size(); ++round) {
    percent.push_back(100 * (variant.step_us[round] / plain.step_us[round] - 1));
  }
  return {{"layout", layout},
          {"variant", variant.name},
          {"rounds", plain.step_us.size()},
          {"step_us", summarize(variant.step_us)},
          {"percent_over_plain", summarize(percent)},
          {"percent_within", median_within(percent)},
          {"samples_us", variant.step_us}};
}

/// Measures all variants. Each round begins with a different variant, so that none is always first.
std::vector<json> measure(const std::string& layout, const Options& options,
                          const std::string& file) {
  int workers = 0;
  int chips = 0;
  if (std::sscanf(layout.c_str(), "%dx%d", &workers, &chips) != 2) {
    fail(Errc::invalid_argument,
         "--layouts {}: expected workers x chips, such as 4x4; 0x4: one process", layout);
  }
  std::vector<Variant> all = variants(workers);
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      Variant& variant = all[(i + static_cast<std::size_t>(round)) % all.size()];
      variant.step_us.push_back(run(variant, options, workers, chips, file));
    }
  }
  fmt::print("\n{:<42}{:>11}{:>11}{:>20}\n",
             fmt::format("{} (workers x chips), {} rounds", layout, options.rounds), "us/step",
             "% over", "with 95 % within");
  std::vector<json> rows;
  for (const Variant& variant : all) {
    rows.push_back(row_of(variant, all.front(), layout));
    const json& within = rows.back()["percent_within"];
    fmt::print("  {:<40}{:>11.1f}{:>11.2f}{:>20}\n", variant.name,
               rows.back()["step_us"]["median"].get<double>(),
               rows.back()["percent_over_plain"]["median"].get<double>(),
               fmt::format("{:.2f} to {:.2f}", within[0].get<double>(), within[1].get<double>()));
  }
  std::fflush(stdout);
  return rows;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures what supervision costs a job in which nothing fails."};
  app.add_option("--layouts", options.layouts,
                 "workers x chips of each layout; 0x4: in one process")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--steps", options.steps, "steps of each run")->capture_default_str();
  app.add_option("--warmup", options.warmup,
                 "steps at the beginning of each run that aren't measured")
      ->capture_default_str();
  app.add_option("--json", options.json_file, "file for the results");
  try {
    app.parse(argc, argv);
    if (options.warmup < 0 || options.warmup >= options.steps) {
      throw CLI::ValidationError("--warmup", "expected less than --steps");
    }
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string file = std::filesystem::temp_directory_path() /
                           fmt::format("weft-bench-supervision-{}.json", ::getpid());
  const int code =
      bench_main(argc, argv, parse, [&](const Options& options, const std::string& command) {
        json whole = describe_run(command);
        whole["results"] = json::array();
        for (const std::string& layout : options.layouts) {
          for (json& row : measure(layout, options, file)) {
            whole["results"].push_back(std::move(row));
          }
        }
        write_report(options.json_file, whole.dump(2) + "\n");
        return 0;
      });
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  return code;
}
