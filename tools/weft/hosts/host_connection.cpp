#include "tools/weft/hosts/host_connection.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "tools/weft/hosts/host_part.hpp"
#include "tools/weft/launch/launched_program.hpp"

namespace weft {
namespace {

/// The exit code of the host's half if it can't start the program; a shell has the same code.
constexpr int kCannotStart = 127;

void close_fd(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

}  // namespace

HostConnection::HostConnection(std::string tag, std::vector<std::string> command, std::string mark)
    : tag_(std::move(tag)), mark_(std::move(mark)) {
  std::array<std::array<int, 2>, 3> pipes{};
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  for (std::size_t i = 0; i < pipes.size(); ++i) {
    if (::pipe2(pipes[i].data(), O_CLOEXEC) != 0) {
      fail(Errc::io, "pipe: {}", std::strerror(errno));
    }
    const int end = static_cast<int>(i);
    ::posix_spawn_file_actions_adddup2(&files, pipes[i][i == 0 ? 0 : 1], end);
  }
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  // A Ctrl-C at the terminal must not end the connection, because the connection passes it on.
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes, &signals);
  ::sigaddset(&signals, SIGPIPE);  // this process ignores it
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  const int error = ::posix_spawnp(&pid_, words[0], &files, &attributes, words.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  for (std::size_t i = 0; i < pipes.size(); ++i) ::close(pipes[i][i == 0 ? 0 : 1]);
  in_ = pipes[0][1];
  out_ = {pipes[1][0], pipes[2][0]};
  if (error != 0) {
    fail(Errc::not_found, "--via: can't start {}: {}; name a command such as ssh", command[0],
         std::strerror(error));
  }
  for (const int fd : out_) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  send(mark_);
}

HostConnection::~HostConnection() {
  close_fd(in_);
  for (int& fd : out_) close_fd(fd);
  if (!code_) ::waitpid(pid_, nullptr, 0);
}

void HostConnection::send(const std::string& line) {
  const std::string text = line + '\n';
  if (in_ >= 0 && ::write(in_, text.data(), text.size()) < 0) close_fd(in_);
}

void HostConnection::hang_up() { close_fd(in_); }

void HostConnection::kill() {
  if (!code_) ::kill(-pid_, SIGKILL);
}

void HostConnection::add_to(std::vector<pollfd>& waits) const {
  for (const int fd : out_) waits.push_back({.fd = fd, .events = POLLIN, .revents = 0});
}

std::optional<std::string> HostConnection::serve() {
  std::optional<std::string> file;
  for (std::size_t i = 0; i < out_.size(); ++i) {
    read(i);
    std::string& text = text_[i];
    for (std::size_t end; (end = text.find('\n')) != text.npos;) {
      std::string line = text.substr(0, end);
      text.erase(0, end + 1);
      if (i == 0 && take_words(line, file)) {
        text.insert(0, line);  // what precedes the mark is the beginning of a line of the program
        continue;
      }
      show(i, line);
    }
    if (out_[i] < 0 && !text.empty()) show(i, std::exchange(text, {}));
  }
  if (out_[0] < 0 && out_[1] < 0 && !code_) reap();
  return file;
}

bool HostConnection::has_begun() const { return ready_ && code_ != kCannotStart; }

void HostConnection::read(std::size_t i) {
  std::array<char, 65536> block;
  while (out_[i] >= 0) {
    const ssize_t count = ::read(out_[i], block.data(), block.size());
    if (count > 0) text_[i].append(block.data(), static_cast<std::size_t>(count));
    if (count < 0 && errno == EAGAIN) return;
    if (count == 0 || (count < 0 && errno != EINTR)) close_fd(out_[i]);
  }
}

/// If the line contains the mark, takes over what the host's half says after it, and removes that
/// from the line. Returns false if there is no mark.
bool HostConnection::take_words(std::string& line, std::optional<std::string>& file) {
  const std::size_t at = line.find(mark_);
  if (at == line.npos) return false;
  const std::string words = line.substr(at + mark_.size());
  if (words == kReadyWord) ready_ = true;
  if (words.starts_with(kFileWord)) file = words.substr(kFileWord.size());
  line.erase(at);
  return true;
}

void HostConnection::show(std::size_t stream, const std::string& line) const {
  std::FILE* const to = stream == 0 ? stdout : stderr;
  fmt::print(to, "[{}] {}\n", tag_, line);
  std::fflush(to);
}

void HostConnection::reap() {
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED) < 0 && errno == EINTR) {
  }
  code_ = exit_code(ended);
}

}  // namespace weft
