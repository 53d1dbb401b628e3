#include "bench/collectives/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include <weft/tensor/error.hpp>

namespace weft::bench {
namespace {

/// The time after which a rank that doesn't reply is considered dead.
constexpr timeval kReplyTimeout{.tv_sec = 120, .tv_usec = 0};

/// Replaces this process by the command; never returns.
[[noreturn]] void exec(const std::vector<std::string>& command,
                       const Process::Environment& environment) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setpgid(0, 0);  // Ctrl-C reaches only the bench, which then ends its children in order
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words.front(), words.data());
  fmt::print(stderr, "can't run {}: {}\n", command.front(), std::strerror(errno));
  _exit(127);
}

}  // namespace

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // no SA_RESTART, so that system calls return EINTR
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

OnlyRun::OnlyRun() {
  const std::string path = std::filesystem::temp_directory_path() / "weft-bench.lock";
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(Errc::io, "can't open {}: {}", path, std::strerror(errno));
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  fmt::print(stderr, "waiting until another run of this bench ends\n");
  if (flock(descriptor_, LOCK_EX) == 0) return;
  const Errc code = errno == EINTR ? Errc::cancelled : Errc::io;
  close(descriptor_);
  fail(code, "can't lock {}: {}", path, std::strerror(errno));
}

OnlyRun::~OnlyRun() { close(descriptor_); }

Process::Process(const std::vector<std::string>& command, const Environment& environment)
    : pid_(fork()) {
  if (pid_ < 0) fail(Errc::io, "can't fork: {}", std::strerror(errno));
  if (pid_ == 0) exec(command, environment);
}

bool Process::ended() {
  if (pid_ >= 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ < 0;
}

bool Process::ends_within(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (!ended()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

void Process::stop(std::chrono::milliseconds grace) {
  if (pid_ < 0 || ends_within(grace)) return;
  kill(-pid_, SIGTERM);
  if (ends_within(std::chrono::seconds(2))) return;
  kill(-pid_, SIGKILL);
  waitpid(std::exchange(pid_, -1), nullptr, 0);
}

Meeting::Meeting() {
  std::string folder = std::filesystem::temp_directory_path() / "weft-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    fail(Errc::io, "can't make {}: {}", folder, std::strerror(errno));
  }
  folder_ = folder;
  descriptor_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  socket_path().copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(descriptor_, SOMAXCONN) != 0) {
    fail(Errc::io, "can't listen at {}: {}", socket_path(), std::strerror(errno));
  }
}

Meeting::~Meeting() {
  close(descriptor_);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Meeting::make_folder() {
  const std::string folder = fmt::format("{}/{}", folder_, num_folders_++);
  std::filesystem::create_directory(folder);
  return folder;
}

std::optional<Connection> Meeting::accept(std::chrono::milliseconds timeout) {
  pollfd ready{.fd = descriptor_, .events = POLLIN, .revents = 0};
  const int count = poll(&ready, 1, static_cast<int>(timeout.count()));
  if (count == 0) return std::nullopt;
  const int descriptor = count > 0 ? accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC) : -1;
  if (descriptor < 0) fail(Errc::cancelled, "no rank accepted: {}", std::strerror(errno));
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &kReplyTimeout, sizeof(kReplyTimeout));
  return Connection(descriptor);
}

}  // namespace weft::bench
