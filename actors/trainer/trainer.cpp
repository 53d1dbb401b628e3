#include <weft/actors/trainer/trainer.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <weft/actors/log.hpp>
#include <weft/actors/trainer/job_run.hpp>
#include <weft/actors/trainer/launch_variables.hpp>
#include <weft/actors/trainer/run_folder.hpp>
#include <weft/actors/trainer/validate.hpp>
#include <weft/actors/worker/environment.hpp>
#include <weft/actors/worker/worker.hpp>

namespace weft {
namespace {

/// Run folders of the fit() calls of this process so far.
std::vector<std::string> run_folders;

/// Runs the worker that this process is and ends the process.
[[noreturn]] void become_worker(const WorkerEnvironment& environment, const BoundLoop& loop) {
  std::fflush(stdout);
  ::dup2(kWorkerStdout, STDOUT_FILENO);
  ::close(kWorkerStdout);
  const int code = run_worker_process(environment, loop);
  // No destructor of main()'s or of a static object may wait for what the job has left.
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace

Trainer::Trainer(TrainLoop loop, TrainerOptions options)
    : loop_(std::move(loop)), options_(std::move(options)) {}

Result Trainer::fit() {
  const BoundLoop loop = [this](TrainContext& ctx) { loop_(ctx, options_.loop_config); };
  if (const auto environment = worker_environment()) {
    const std::size_t index = run_folders.size();
    if (index == environment->earlier_fits.size()) become_worker(*environment, loop);
    run_folders.push_back(environment->earlier_fits[index]);
    return read_result(run_folders.back());
  }
  apply_launch_variables(options_.scaling);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename().string();
  const JobSpec spec = validate(options_, program);
  Result result = run_job(spec, options_.run.callbacks, loop, run_folders);
  run_folders.push_back(result.path);
  note_exit_code(result);
  return result;
}

}  // namespace weft
