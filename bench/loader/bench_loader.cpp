/// Measures DeviceLoader: how long chips wait for it, how well slow data and computation overlap,
/// how many pictures a core decodes per second, and how fast files of each format are read.

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/bench_main.hpp"
#include "bench/loader/formats.hpp"
#include "bench/loader/pictures.hpp"
#include "bench/loader/steps.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"

namespace {

using namespace weft::bench;

struct Options {
  StepsOptions steps;
  PicturesOptions pictures;
  FormatsOptions formats;
  std::string only;
  std::string json_file;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures batches of data at memory speed, of slow data, of pictures and of files."};
  app.add_option("--only", options.only,
                 "measure only waits, overlap, pictures or formats; default: all")
      ->check(CLI::IsMember({"waits", "overlap", "pictures", "formats"}));
  app.add_option("--rounds", options.steps.rounds)
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--steps", options.steps.steps, "steps of a round, for each row")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--batch", options.steps.batch, "batch size of waits and overlap")
      ->capture_default_str();
  app.add_option("--step-ms", options.steps.step_ms, "waits: approximate time of the computation")
      ->capture_default_str();
  app.add_option("--data-ms", options.steps.data_ms, "overlap: time to load a batch")
      ->capture_default_str();
  app.add_option("--compute-ms", options.steps.compute_ms,
                 "overlap: approximate times of the computations")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--pictures", options.pictures.pictures)
      ->check(CLI::Range(10, 100'000))
      ->capture_default_str();
  app.add_option("--items", options.formats.items,
                 "formats: number of items of each format except Fashion-MNIST")
      ->check(CLI::Range(50, 1'000'000))
      ->capture_default_str();
  app.add_option("--torch", options.formats.torch, "formats: the folder that contains PyTorch")
      ->capture_default_str();
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  options.pictures.rounds = options.formats.rounds = options.steps.rounds;
  options.pictures.batch = std::min(options.pictures.batch, options.pictures.pictures);
  return options;
}

int run(const Options& options, const std::string& command) {
  nlohmann::json whole = describe_run(command);
  const auto measure = [&](const std::string& part, const std::string& title,
                           const std::string& ratio, const auto& rows_of) {
    if (!options.only.empty() && options.only != part) return;
    const std::vector<TableRow> rows = rows_of();
    if (rows.empty()) return;
    print_table(title, ratio, rows);
    whole[part] = to_json(rows);
  };
  measure("waits", "data at memory speed", "", [&] { return measure_waits(options.steps); });
  measure("overlap", fmt::format("data of {:g} ms a batch", options.steps.data_ms), "of the longer",
          [&] { return measure_overlap(options.steps); });
  measure("pictures", fmt::format("{} JPEGs of 500x375 to 224x224", options.pictures.pictures),
          "weft's to it", [&] { return measure_pictures(options.pictures); });
  measure("formats", fmt::format("files of each format, {} items", options.formats.items),
          "weft's to torch's", [&] { return measure_formats(options.formats); });
  fmt::print("{}\n", machine_line(whole));
  write_report(options.json_file, whole.dump(1) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return weft::bench::bench_main(argc, argv, parse, run); }
