/// Measures checkpoints: the times to write and to read one, and how much asynchronous saves slow
/// steps down.

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/bench_main.hpp"
#include "bench/checkpoint/files.hpp"
#include "bench/checkpoint/steps.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"

namespace {

using namespace weft::bench;

struct Options {
  FilesOptions files;
  StepsOptions steps;
  std::string only;
  std::string json_file;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Writes and reads a checkpoint beside others; trains with async saves and without."};
  app.add_option("--only", options.only, "measure only files or steps; default: both")
      ->check(CLI::IsMember({"files", "steps"}));
  app.add_option("--folder", options.files.folder, "folder on the disk to be measured")
      ->capture_default_str();
  app.add_option("--mib", options.files.mib, "files: size of the checkpoint, a multiple of 16")
      ->capture_default_str();
  app.add_option("--rounds", options.files.rounds, "files")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--threads", options.files.threads, "files")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--state-mib", options.steps.state_mib,
                 "steps: size of the saved state, a multiple of 16")
      ->capture_default_str();
  app.add_option("--width", options.steps.width, "steps: width of a layer")->capture_default_str();
  app.add_option("--blocks", options.steps.blocks, "steps: number of blocks of each kind")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--steps", options.steps.steps, "steps: number of steps of a block")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  options.steps.folder = options.files.folder;
  return options;
}

int run(const Options& options, const std::string& command) {
  nlohmann::json whole = describe_run(command);
  if (options.only != "steps") {
    const auto rows = measure_files(options.files);
    print_table(fmt::format("{} MiB on {} chips", options.files.mib, 4), "of the limit", rows);
    whole["files"] = to_json(rows);
  }
  if (options.only != "files") {
    const int cores = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
    std::vector<TableRow> rows;
    for (const int chips : {std::max(cores - 1, 1), cores}) {
      std::ranges::move(measure_steps(options.steps, chips), std::back_inserter(rows));
    }
    print_table(fmt::format("async saves of {} MiB, {} cores", options.steps.state_mib, cores),
                "of no saves", rows);
    whole["steps"] = to_json(rows);
  }
  fmt::print("{}\n", machine_line(whole));
  write_report(options.json_file, whole.dump(1) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return weft::bench::bench_main(argc, argv, parse, run); }
