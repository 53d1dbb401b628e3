#include "inspect/hosts/host_pipe.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "transport/blackbox/box_clock.hpp"

namespace weft {
namespace {

constexpr std::size_t kSaidBytesMax = 4096;
/// The most bytes that are read at once, because a command may write without end.
constexpr std::size_t kReadBytesMax = std::size_t{16} << 20;

/// Appends what can be read without waiting. Returns false at the end of the stream.
bool read_into(int fd, std::string& text) {
  std::array<char, 1 << 16> block;
  for (const std::size_t end = text.size() + kReadBytesMax; text.size() < end;) {
    const ssize_t count = ::read(fd, block.data(), block.size());
    if (count > 0) {
      text.append(block.data(), static_cast<std::size_t>(count));
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

/// The ends of three pipes. Closes those that aren't taken.
struct Ends {
  std::array<int, 6> fds{-1, -1, -1, -1, -1, -1};
  ~Ends() {
    for (const int fd : fds) {
      if (fd >= 0) ::close(fd);
    }
  }
  int take(std::size_t index) { return std::exchange(fds[index], -1); }
};

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  const auto begin = text.rfind('\n');
  return begin == std::string::npos ? text : text.substr(begin + 1);
}

}  // namespace

HostPipe::HostPipe(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  Ends ends;
  const bool is_made = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, &ends.fds[0]) == 0 &&
                       ::pipe2(&ends.fds[2], O_CLOEXEC) == 0 &&
                       ::pipe2(&ends.fds[4], O_CLOEXEC) == 0;
  if (is_made) pid_ = ::fork();
  if (!is_made || pid_ < 0) {
    fail(Errc::io, "can't start {}: {}", fmt::join(words, " "), std::strerror(errno));
  }
  if (pid_ == 0) {
    ::setpgid(0, 0);  // so a signal from the terminal ends only weft, which then kills the command
    ::dup2(ends.fds[1], STDIN_FILENO);
    ::dup2(ends.fds[3], STDOUT_FILENO);
    ::dup2(ends.fds[5], STDERR_FILENO);
    ::execvp(argv[0], argv.data());
    ::dprintf(STDERR_FILENO, "%s: %s\n", argv[0], std::strerror(errno));
    ::_exit(127);
  }
  input_ = ends.take(0);
  output_ = ends.take(2);
  errors_ = ends.take(4);
  for (const int fd : {output_, errors_}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
}

HostPipe::~HostPipe() {
  for (const int fd : {input_, output_, errors_}) ::close(fd);
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // in case the command isn't in its own process group yet
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void HostPipe::ask(const RawRequest& request) {
  if (asked_) return;
  const std::string line = to_line(request);
  // A request always fits in the socket's buffer. If the command has ended, take() throws the
  // reason.
  (void)::send(input_, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  asked_ = Asked{.parts = request.parts,
                 .boottime_ns = clock_ns(CLOCK_BOOTTIME),
                 .monotonic_ns = clock_ns(CLOCK_MONOTONIC)};
}

std::optional<Snapshot> HostPipe::take() {
  const bool is_open = read_into(output_, bytes_);
  read_into(errors_, said_);
  if (said_.size() > kSaidBytesMax) said_.erase(0, said_.size() - kSaidBytesMax);
  if (!asked_) return {};
  std::optional<RawAnswer> answer = take_raw_answer(bytes_, asked_->parts);
  if (!answer) {
    if (!is_open) fail_ended();
    return {};
  }
  compare_clocks(*answer);
  asked_.reset();
  answer->job.live = true;
  answer->job.at_ns = answer->boottime_ns;
  if (!answer->job.rings.empty()) answer->job.events_at_ns = answer->monotonic_ns;
  shift_times(answer->job, *shift_);
  return std::move(answer->job);
}

void HostPipe::fail_ended() {
  const std::string why = last_line(said_);
  fail(Errc::unavailable, "{}", why.empty() ? "its command has ended without an answer" : why);
}

/// The host has read its clocks at some time between the request and now. So the fastest answer
/// gives the most accurate difference.
void HostPipe::compare_clocks(const RawAnswer& answer) {
  const std::int64_t boottime = clock_ns(CLOCK_BOOTTIME);
  const std::int64_t monotonic = clock_ns(CLOCK_MONOTONIC);
  const double error_s = static_cast<double>(boottime - asked_->boottime_ns) / 2e9;
  if (shift_ && error_s >= error_s_) return;
  error_s_ = error_s;
  shift_ = ClockShift{.boottime_ns = (boottime + asked_->boottime_ns) / 2 - answer.boottime_ns,
                      .monotonic_ns = (monotonic + asked_->monotonic_ns) / 2 - answer.monotonic_ns};
}

}  // namespace weft
