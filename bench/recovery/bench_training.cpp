/// Runs one training and writes its step times to a file, for bench_supervision.

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/recovery/training.hpp"

int main(int argc, char** argv) {
  weft::bench::Training training;
  std::string json_file;
  CLI::App app{"Trains the network of examples/digits on made-up images."};
  app.add_option("--workers", training.workers)->capture_default_str();
  app.add_option("--chips", training.chips, "per worker")->capture_default_str();
  app.add_option("--steps", training.steps)->capture_default_str();
  app.add_option("--state-mib", training.state_mib,
                 "MiB of further parameters and their AdamW state, on each chip")
      ->capture_default_str();
  app.add_option("--max-failures", training.failure.max_failures)->capture_default_str();
  app.add_option("--hang-timeout", training.failure.hang_timeout_s)->capture_default_str();
  app.add_option("--state-versions", training.failure.state_versions);
  app.add_option("--check-replicas-every", training.check_replicas_every,
                 "steps between comparisons of replicas; 0: never")
      ->capture_default_str();
  app.add_option("--json", json_file, "file for the step times, in microseconds");
  CLI11_PARSE(app, argc, argv);
  training.storage_path =
      std::filesystem::temp_directory_path() / fmt::format("weft-bench-training-{}", ::getpid());
  const weft::Result result = weft::bench::train(training);
  std::error_code ignored;
  std::filesystem::remove_all(training.storage_path, ignored);
  if (!result.ok()) {
    fmt::print(stderr, "bench_training: {}\n", result.error->message);
    return 1;
  }
  if (!json_file.empty()) std::ofstream(json_file) << result.metrics.at("step_us").dump() << '\n';
  return 0;
}
