#include <weft/actors/trainer/trainer.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <weft/actors/log.hpp>
#include <weft/actors/trainer/job_run.hpp>
#include <weft/actors/trainer/launch_variables.hpp>
#include <weft/actors/trainer/run_folder.hpp>
#include <weft/actors/trainer/validate.hpp>
#include <weft/actors/worker/environment.hpp>
#include <weft/actors/worker/worker.hpp>

namespace weft {
namespace {

/// How the fit() calls of this process have ended so far: by a result, in this run folder; or by an
/// error, as "!code message".
std::vector<std::string> earlier_fits;

void note_thrown(Errc code, std::string message) {
  std::ranges::replace(message, '\n', ' ');
  earlier_fits.push_back(fmt::format("!{} {}", to_string(code), message));
}

/// What a fit() call returned, or throws what it threw.
Result outcome(const std::string& fit) {
  if (!fit.starts_with('!')) return read_result(fit);
  const auto space = fit.find(' ');
  throw Error(parse_errc(fit.substr(1, space - 1)), fit.substr(space + 1));
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail(Errc::io, "WEFT_EARLIER_FITS = {}: can't read the file", path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// Signals and the worker's variables are the process's, so its jobs run one after the other.
class OnlyFit {
 public:
  OnlyFit() {
    if (running_.test_and_set()) {
      fail(Errc::invalid_argument,
           "fit() was called while another fit() of this process runs: call it when that one has "
           "returned, or in a process of its own");
    }
  }
  ~OnlyFit() { running_.clear(); }
  OnlyFit(const OnlyFit&) = delete;
  OnlyFit& operator=(const OnlyFit&) = delete;

 private:
  static inline std::atomic_flag running_;
};

/// A closed stdout would make the next file of the job the one that is printed to.
void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
  }
}

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
  const OnlyFit only;
  const BoundLoop loop = [this](TrainContext& ctx) { loop_(ctx, options_.loop_config); };
  if (const auto environment = worker_environment()) {
    const auto before = lines_of(environment->earlier_fits_path);
    const std::size_t index = earlier_fits.size();
    if (index == before.size()) become_worker(*environment, loop);
    earlier_fits.push_back(before[index]);
    return outcome(earlier_fits.back());
  }
  try {
    if (!loop_) fail(Errc::invalid_argument, "the loop is empty: give Trainer a function");
    open_standard_streams();
    apply_launch_variables(options_.scaling, options_.run.failure);
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename().string();
    Result result =
        run_job(validate(options_, program), options_.run.callbacks, loop, earlier_fits);
    earlier_fits.push_back(result.path);
    note_exit_code(result);
    return result;
  } catch (const Error& e) {
    note_thrown(e.code(), e.what());
    throw;
  } catch (const std::exception& e) {
    note_thrown(Errc::loop_failed, e.what());
    throw;
  } catch (...) {
    note_thrown(Errc::loop_failed, "an exception that is no std::exception");
    throw;
  }
}

}  // namespace weft
