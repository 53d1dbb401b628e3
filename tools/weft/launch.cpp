#include <weft/tools/weft/launch.hpp>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/spmd/error.hpp>

namespace weft {
namespace {

constexpr int kCannotStart = 127;

struct Options {
  int workers = 1;
  int chips = 0;
  std::string topology;
  std::vector<std::string> command;
};

std::atomic<pid_t> program_pid{0};

void pass_on(int signal) {
  const pid_t pid = program_pid.load();
  if (pid > 0) ::kill(pid, signal);
}

/// A file of this process for the job's exit code, removed when it goes out of scope.
class ResultFile {
 public:
  ResultFile() {
    const int fd = ::mkstemp(path_.data());
    if (fd < 0) fail(Errc::io, "can't make {}: {}", path_, std::strerror(errno));
    ::close(fd);
  }
  ~ResultFile() { ::unlink(path_.c_str()); }
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  const std::string& path() const { return path_; }
  /// 0 where no job of the program failed.
  int code() const {
    int code = 0;
    std::ifstream(path_) >> code;
    return code;
  }

 private:
  std::string path_ = "/tmp/weft-launch-XXXXXX";
};

void set_variables(const Options& options, const ResultFile& result) {
  ::setenv("WEFT_LAUNCH_WORKERS", std::to_string(options.workers).c_str(), 1);
  if (options.chips != 0) ::setenv("WEFT_LAUNCH_CHIPS", std::to_string(options.chips).c_str(), 1);
  if (!options.topology.empty()) ::setenv("WEFT_LAUNCH_TOPOLOGY", options.topology.c_str(), 1);
  ::setenv("WEFT_LAUNCH_RESULT", result.path().c_str(), 1);
}

int run(const Options& options) {
  const ResultFile result;
  set_variables(options, result);
  std::vector<char*> words;
  for (const std::string& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, pass_on);
  const pid_t pid = ::fork();
  if (pid < 0) fail(Errc::io, "fork: {}", std::strerror(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::setpgid(0, 0);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
    ::execvp(words[0], words.data());
    fmt::print(stderr, "weft launch: can't start {}: {}\n", words[0], std::strerror(errno));
    ::_exit(kCannotStart);
  }
  program_pid.store(pid);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (const int code = result.code()) return code;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

void add_launch(CLI::App& app, int& code) {
  auto options = std::make_shared<Options>();
  CLI::App* launch = app.add_subcommand("launch", "run a program's job on workers and chips");
  launch->add_option("-n,--workers", options->workers, "worker processes; 0: all in one process")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  launch->add_option("--chips", options->chips, "chips per worker")->check(CLI::Range(1, 256));
  launch->add_option("--topology", options->topology, "grid of all chips, as 4x4");
  launch->add_option("command", options->command, "the program and its arguments, after --")
      ->required();
  launch->callback([options, &code] { code = run(*options); });
}

}  // namespace weft
