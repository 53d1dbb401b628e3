#include "tests/support/app_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace weft::testing {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

AppProcess::AppProcess(std::vector<std::string> words, const std::vector<std::string>& variables) {
  static int count = 0;
  json_ = fs::temp_directory_path() / fmt::format("weft-test-{}-{}.json", ::getpid(), count++);
  std::vector<char*> argv;
  for (std::string& word : words) {
    if (word == "{json}") word = json_;
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  int ends[2];
  int failure[2];  // closed by exec
  if (::pipe2(ends, O_CLOEXEC) != 0 || ::pipe2(failure, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    for (const std::string& variable : variables) ::putenv(const_cast<char*>(variable.c_str()));
    ::execv(argv[0], argv.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t written = ::write(failure[1], &error, sizeof error);
    ::_exit(127);
  }
  ::close(ends[1]);
  ::close(failure[1]);
  out_ = ends[0];
  int error = 0;
  const ssize_t count_read = ::read(failure[0], &error, sizeof error);
  ::close(failure[0]);
  if (count_read <= 0) return;
  wait();
  throw std::system_error(error, std::generic_category(), words[0]);
}

AppProcess::~AppProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait();
  }
  ::unlink(json_.c_str());
}

bool AppProcess::read_more() {
  char block[4096];
  const ssize_t count = ::read(out_, block, sizeof block);
  if (count <= 0) return false;
  output_.append(block, static_cast<std::size_t>(count));
  return true;
}

std::string AppProcess::wait_for_line(const std::string& text) {
  for (;;) {
    const auto end = output_.find('\n', consumed_);
    if (end == std::string::npos) {
      if (!read_more()) return {};
      continue;
    }
    const std::string line = output_.substr(consumed_, end - consumed_);
    consumed_ = end + 1;
    if (line.find(text) != std::string::npos) return line;
  }
}

const std::string& AppProcess::job() {
  if (job_.empty()) {
    const std::string line = wait_for_line("job ");
    if (line.size() > 4) job_ = line.substr(4);
  }
  return job_;
}

bool AppProcess::output_blocked() const {
  const int fd = ::open(fmt::format("/proc/{}/fd/1", pid_).c_str(), O_WRONLY | O_CLOEXEC);
  pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
  const bool blocked = ::poll(&room, 1, 0) == 0;
  ::close(fd);
  return blocked;
}

void AppProcess::close_output() { ::close(std::exchange(out_, -1)); }

int AppProcess::wait() {
  while (read_more()) {
  }
  close_output();
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

nlohmann::json AppProcess::result() const {
  const std::string text = read_file(json_);
  return text.empty() ? nlohmann::json() : nlohmann::json::parse(text);
}

void wait_until(const std::function<bool()>& condition) {
  while (!condition()) ::sched_yield();
}

std::vector<pid_t> processes_of(const std::string& job) {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string variables = read_file(entry.path() / "environ");
    if (variables.find("WEFT_JOB_ID=" + job) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

void expect_nothing_left(const std::string& job) {
  ASSERT_FALSE(job.empty());
  EXPECT_TRUE(processes_of(job).empty()) << "job " << job;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    EXPECT_EQ(entry.path().string().find(job), std::string::npos) << entry.path();
  }
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string root = runtime != nullptr ? std::string(runtime) + "/weft"
                                              : fmt::format("/tmp/weft-{}", ::geteuid());
  EXPECT_FALSE(fs::exists(root + "/" + job));
}

nlohmann::json finished(AppProcess& app) {
  const std::string job = app.job();
  EXPECT_EQ(app.wait(), 0) << app.output();
  expect_nothing_left(job);
  return app.result();
}

}  // namespace weft::testing
