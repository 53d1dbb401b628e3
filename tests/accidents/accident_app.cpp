/// Runs a job in which the accident named by --mode happens, or a healthy job that behaves oddly.
/// The workers begin the accident at step 3; the line "staged" on stdout says that this step has
/// been reached.

#include <csignal>
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <weft/weft.hpp>

#include "tests/accidents/stages.hpp"

namespace {

struct Options {
  std::string mode;
  std::string storage = "~/weft_runs";
  std::string checkpoints;
  std::string file;
  int workers = 3;
  double hang_warning_s = 0.5;
  double grace_s = 0;
  int max_failures = 0;
  int ops = 60000;
};

void loop(weft::TrainContext& ctx, const weft::Config& config) { run_stage(ctx, config); }

/// Prints the job's id, and stages the accidents that happen in callbacks.
class Announce : public weft::Callback {
 public:
  explicit Announce(std::string mode) : mode_(std::move(mode)) {}

  void on_start(const weft::JobInfo& job) override {
    fmt::print("run {}\njob {}\n", job.path, job.id);
    std::fflush(stdout);
    if (mode_ == "on_start") stay_here();
  }
  void on_report(const weft::Metrics&) override {
    if (mode_ == "on_report") stay_here();
    if (mode_ == "slow_callback") work_for(0.02);
  }
  void on_end(const weft::Result&) override {
    if (mode_ == "slow_end") stay_here();
  }

 private:
  std::string mode_;
};

int run(const Options& options) {
  const int chips = std::max(options.workers, 1);
  weft::Trainer trainer(
      loop, {.loop_config = {{"mode", options.mode}, {"file", options.file}, {"ops", options.ops}},
             .scaling = {.num_workers = options.workers, .chips_per_worker = 1},
             .backend = {.spmd = {.mesh_shape = {chips}, .axis_names = {"data"}}},
             .run = {.name = "accident",
                     .storage_path = options.storage,
                     .failure = {.max_failures =
                                     options.mode == "mutex_of_the_dead" ? 1 : options.max_failures,
                                 .hang_warning_s = options.hang_warning_s},
                     .checkpoint = {.path = options.checkpoints},
                     .callbacks = {std::make_shared<Announce>(options.mode)},
                     .grace_s = options.grace_s}});
  return trainer.fit().ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Has an accident on purpose."};
  app.add_option("--mode", options.mode)->required();
  app.add_option("--storage", options.storage);
  app.add_option("--checkpoints", options.checkpoints);
  app.add_option("--file", options.file, "that workers share, for locks");
  app.add_option("--workers", options.workers);
  app.add_option("--hang-warning", options.hang_warning_s);
  app.add_option("--grace", options.grace_s);
  app.add_option("--max-failures", options.max_failures);
  app.add_option("--ops", options.ops, "length of the chain that the mode long_compile compiles");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
