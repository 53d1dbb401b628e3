/// Measures training steps of a few models. weft and PyTorch run in turn, with the same data,
/// initial parameters and cores.

#include <unistd.h>

#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <weft/weft.hpp>

#include "bench/bench_main.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"
#include "bench/python_child.hpp"
#include "bench/table.hpp"
#include "bench/training/model_training.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

/// The options of one training, and of its comparison with torch.
struct Job {
  std::string model = "mlp";
  std::string dtype = "f32";
  int workers = 1;
  int chips = 1;  ///< per worker; torch gets the same number of threads
  int rounds = 7;
  int steps = 5;  ///< the number of steps per round, for both weft and torch
  bool tiny = false;
  bool torch = true;
  bool keep = false;  ///< if true, keeps the run folder afterwards
  std::string state = "unmarked";
  std::string folder{};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Job, model, dtype, workers, chips, rounds, steps, tiny, torch,
                                   state, folder)

/// Runs the loop of a worker: reports the milliseconds of each step, and the losses.
void run_job(TrainContext& ctx, const Job& job) {
  ModelTraining training({.model = job.model,
                          .dtype = job.dtype,
                          .state = job.state,
                          .tiny = job.tiny,
                          .folder = job.folder},
                         *ctx.mesh());
  const bool asks = job.torch && ctx.world_rank() == 0;
  std::optional<PythonChild> torch;
  if (asks) {
    training.write_batches();
    torch.emplace(
        "bench/training/torch_models.py",
        std::vector<std::string>{job.folder, job.model, job.dtype, fmt::to_string(job.chips), "0",
                                 fmt::to_string(job.workers)});
  }
  std::vector<double> losses, torch_losses, times, torch_times;
  std::string blas;
  if (asks) blas = torch->ask("blas").at("blas");
  const auto append = [](std::vector<double>& all, const std::vector<double>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (int round = 0; round <= job.rounds; ++round) {
    const TrainedSteps trained = training.run(job.steps);
    if (round > 0) append(times, trained.ms);  // the first round compiles
    append(losses, trained.losses);
    if (!asks) continue;
    const nlohmann::json answer = torch->ask(fmt::format("train {}", job.steps));
    if (round > 0) append(torch_times, answer.at("ms"));
    append(torch_losses, answer.at("losses"));
  }
  ctx.report({{"ms", times},
              {"losses", losses},
              {"torch_ms", torch_times},
              {"torch_losses", torch_losses},
              {"torch_blas", blas}});
}

weft::Loop train_loop{"bench.models", run_job};

/// Measures a Job. Sets `blas` to the name of the library that multiplies torch's f32 matrices.
std::vector<TableRow> measure(Job job, std::string& blas) {
  job.folder = std::filesystem::temp_directory_path() / fmt::format("weft-bench-{}", ::getpid());
  std::filesystem::remove_all(job.folder);
  std::filesystem::create_directories(job.folder);
  const Result result =
      Trainer(
          train_loop,
          {.loop_config = job,
           .scaling = {.num_workers = job.workers == 1 ? 0 : job.workers,
                       .chips_per_worker = job.chips},
           .backend = {.spmd = {.mesh_shape = {job.workers * job.chips}, .axis_names = {"data"}}},
           .run = {.name = "bench", .storage_path = job.folder}})
          .fit();
  std::error_code ignored;
  if (job.keep) {
    fmt::print("run folder: {}\n", result.path);
  } else {
    std::filesystem::remove_all(job.folder, ignored);
  }
  if (!result.ok()) fail(result.error->code, "{}", result.error->message);
  const auto samples = [&](const char* key) {
    return result.metrics.at(key).get<std::vector<double>>();
  };
  expect_equal_losses(job.model + ", " + job.dtype, samples("losses"), "torch",
                      samples("torch_losses"), job.dtype == "bf16" ? 2e-2 : 2e-3);
  const auto name = [&](const char* whose) {
    return fmt::format("{} {} {}x{}, {}", job.model, job.dtype, job.workers, job.chips, whose);
  };
  std::vector<TableRow> rows{{.name = name("weft"), .samples = samples("ms"), .unit = "ms"}};
  if (!job.torch) return rows;
  blas = result.metrics.at("torch_blas");
  rows.push_back({.name = name("torch"), .samples = samples("torch_ms"), .unit = "ms"});
  rows[0].ratio = 1 / paired_ratio(rows[0], rows[1]);
  return rows;
}

struct Options {
  std::vector<std::string> models{"mlp", "cnn", "gpt"};
  std::vector<std::string> dtypes{"f32", "bf16"};
  std::vector<std::string> layouts{"1x1", "1x2", "2x1"};
  Job job{};
  std::string json_file{};
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains models on CPUs beside PyTorch."};
  const auto at_least_one = CLI::Range(1, 1'000'000);
  app.add_option("--models", options.models)
      ->delimiter(',')
      ->check(CLI::IsMember({"mlp", "cnn", "gpt"}))
      ->capture_default_str();
  app.add_option("--dtypes", options.dtypes, "dtypes of matrix products")
      ->delimiter(',')
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  app.add_option("--layouts", options.layouts,
                 "WORKERSxCHIPS; for torch: ranks and threads of each rank")
      ->delimiter(',')
      ->check(CLI::IsMember({"1x1", "1x2", "2x1"}))
      ->capture_default_str();
  app.add_option("--rounds", options.job.rounds)->check(at_least_one)->capture_default_str();
  app.add_option("--steps", options.job.steps, "steps of a round")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--state", options.job.state, "how parameters and optimizer state are marked")
      ->check(CLI::IsMember({"unmarked", "zero1", "fsdp"}))
      ->capture_default_str();
  app.add_flag("--tiny", options.job.tiny, "small models, to test that the bench works");
  app.add_flag("--keep", options.job.keep, "keep the run folders for weft plan --profile");
  app.add_flag("!--no-torch", options.job.torch, "weft alone");
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  return options;
}

int run(Options options, const std::string& command) {
  if (options.job.torch && !PythonChild::has("torch")) {
    fmt::print(stderr, "left out: torch: install Debian's python3-torch\n");
    options.job.torch = false;
  }
  nlohmann::json whole = describe_run(command);
  std::vector<TableRow> all;
  std::string blas;
  for (const std::string& model : options.models) {
    for (const std::string& dtype : options.dtypes) {
      for (const std::string& layout : options.layouts) {
        Job job = options.job;
        job.model = model;
        job.dtype = dtype;
        job.workers = layout[0] - '0';
        job.chips = layout[2] - '0';
        const std::vector<TableRow> rows = measure(job, blas);
        print_table("a training step", "speedup", rows);
        all.insert(all.end(), rows.begin(), rows.end());
      }
    }
  }
  if (!blas.empty()) fmt::print("torch's BLAS: {}\n", blas);
  whole["torch_blas"] = blas;
  fmt::print("{}\n", machine_line(whole));
  whole["training"] = to_json(all);
  write_report(options.json_file, whole.dump(1) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  return weft::bench::bench_main(argc, argv, parse, run);
}
