#include "tools/weft/launch/launch.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "data/files/utf8.hpp"
#include "inspect/views/table.hpp"
#include "tools/weft/launch/job_watch.hpp"
#include "tools/weft/launch/launched_program.hpp"
#include "tools/weft/launch/options.hpp"
#include "tools/weft/launch/output.hpp"
#include "tools/weft/launch/restart.hpp"
#include "tools/weft/launch/result_file.hpp"
#include "tools/weft/launch/shell_word.hpp"
#include "tools/weft/launch/timeout.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// The exit code after a timeout, as of timeout(1).
constexpr int kTimedOut = 124;
constexpr std::chrono::milliseconds kStatusEvery{200};

std::atomic<bool> size_has_changed{false};

/// One run of the program, from its start to its end.
class Run {
 public:
  Run(const LaunchOptions& options, Output& output, Timeout& timeout)
      : output_(output),
        timeout_(timeout),
        program_(options.command, options.folder, output.open()),
        watch_(program_.pid()),
        progress_(options.steps) {
    output_.started();
  }

  siginfo_t wait() {
    while (!has_ended()) turn();
    const siginfo_t ended = program_.wait();
    output_.finish();
    return ended;
  }
  pid_t pid() const { return program_.pid(); }

 private:
  bool has_ended() const {
    pollfd end{.fd = program_.pidfd(), .events = POLLIN, .revents = 0};
    return ::poll(&end, 1, 0) > 0;
  }

  void turn() {
    std::vector<pollfd> waits{{.fd = program_.pidfd(), .events = POLLIN, .revents = 0}};
    output_.add_to(waits);
    ::poll(waits.data(), waits.size(), milliseconds_left());
    output_.serve();
    const auto now = Clock::now();
    if (const auto signal = timeout_.due(now)) stop(*signal);
    if (size_has_changed.exchange(false)) output_.resized();
    if (now < next_status_) return;
    next_status_ = now + kStatusEvery;
    if (!output_.has_status()) return;
    if (const auto glance = watch_.look()) progress_.add(*glance, now);
    output_.status(progress_.line(output_.width() - 1));
  }

  void stop(int signal) const {
    output_.status("");
    output_.end_line();
    fmt::print(stderr,
               "weft launch: the time limit is over (--timeout): sending SIG{} to process {}\n",
               ::sigabbrev_np(signal), program_.pid());
    program_.send(signal);
  }

  int milliseconds_left() const {
    std::optional<Clock::time_point> next = timeout_.deadline();
    if (output_.has_status()) next = std::min(next.value_or(next_status_), next_status_);
    if (!next) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
  }

  Output& output_;
  Timeout& timeout_;
  const LaunchedProgram program_;
  JobWatch watch_;
  Progress progress_;
  Clock::time_point next_status_ = Clock::now() + kStatusEvery;
};

/// Prints the last line about a failed job: why it failed, and where to look.
void say_first_cause(const ReportedEnd& end) {
  if (end.message.empty()) return;
  const std::string place = end.folder.empty() ? "" : shell_word(visible(end.folder));
  fmt::print(stderr, "weft launch: exit code {}: {}\n", end.code, visible(end.message));
  if (!place.empty())
    fmt::print(stderr, "weft launch: for details, run: weft inspect why {}\n", place);
}

int launch(const LaunchOptions& options) {
  if (options.dry_run) {
    fmt::print("{}", shell_text(options));
    return 0;
  }
  const ResultFile result;
  for (const auto& [name, value] : variables_of(options)) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  ::setenv("WEFT_LAUNCH_RESULT", result.path().c_str(), 1);
  Output output(options);
  ::signal(SIGWINCH, [](int) { size_has_changed = true; });
  Timeout timeout(options.timeout_s, Clock::now());
  Restarts restarts(options.max_failures.value_or(0));
  for (;;) {
    Run run(options, output, timeout);
    const siginfo_t ended = run.wait();
    output.end_line();
    const auto go_on = timeout.is_over() ? std::nullopt : restarts.after(run.pid(), ended);
    if (!go_on) {
      const ReportedEnd end = result.read();
      say_first_cause(end);
      if (timeout.is_over()) return kTimedOut;
      return end.code != 0 ? end.code : exit_code(ended);
    }
    fmt::print(stderr, "weft launch: {} (pid {}) was killed by SIG{}; it is started again and {}\n",
               options.command.front(), run.pid(), ::sigabbrev_np(ended.si_status),
               go_on->checkpoints.empty() ? std::string("begins again, because none of its "
                                                        "steps was kept")
                                          : fmt::format("continues at step {}", go_on->step));
    if (go_on->checkpoints.empty()) continue;
    const std::string from = fmt::format("{}:{}", go_on->fit_number, go_on->checkpoints);
    ::setenv("WEFT_LAUNCH_GO_ON", from.c_str(), 1);
    ::setenv("WEFT_LAUNCH_RESCUED", go_on->note.c_str(), 1);
  }
}

}  // namespace

void add_launch(CLI::App& app, int& code, LaunchOnHosts on_hosts) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* command = app.add_subcommand("launch", "run a program's job on workers and chips");
  add_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  weft launch -n 4 --chips 4 -- ./digits --epochs 3\n"
      "  weft launch -n 4 --mesh data=2,model=2 --max-failures 3 -- ./train\n"
      "  weft launch -n 4 --hosts node1,node2 -- ./train\n"
      "  weft launch -n 8 --only 0,3 --timestamps --log-dir logs -- ./train\n"
      "  weft launch -n 2 --bind cores --report-bindings --timeout 3600 -- ./train < list\n"
      "\n"
      "The exit code shows the first cause: 128 + the signal that killed a worker or that asked\n"
      "the job to end (Ctrl-C: 130), the code with which a worker exited, 124 after --timeout, or\n"
      "127 if the program can't be started; otherwise it is the program's own exit code.");
  command->callback([options, &code, on_hosts] {
    check(*options);
    code = options->hosts.empty() ? launch(*options) : on_hosts(*options);
  });
}

}  // namespace weft
