#include "bench/python_child.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

namespace weft::bench {
namespace {

constexpr const char* kPython = "/usr/bin/python3";

}  // namespace

bool PythonChild::has(const std::string& modules) {
  return std::system(fmt::format("{} -c 'import {}' >/dev/null 2>&1", kPython, modules).c_str()) ==
         0;
}

PythonChild::PythonChild(const std::string& script, const std::vector<std::string>& arguments)
    : script_(WEFT_SOURCE_DIR "/" + script) {
  std::vector<std::string> words{kPython, script_};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    fail(Errc::io, "no socket for {}", script_);
  }
  socket_ = ends[0];
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  if (pid_ < 0) {
    ::close(socket_);
    fail(Errc::io, "no process for {}", script_);
  }
}

PythonChild::~PythonChild() {
  ::close(socket_);
  ::waitpid(pid_, nullptr, 0);
}

nlohmann::json PythonChild::ask(const std::string& line) {
  const std::string text = line + "\n";
  std::string answer;
  bool is_there =
      ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  while (is_there && !answer.ends_with('\n')) {
    char buffer[4096];
    const ssize_t count = ::recv(socket_, buffer, sizeof(buffer), 0);
    is_there = count > 0;
    if (is_there) answer.append(buffer, static_cast<std::size_t>(count));
  }
  nlohmann::json parsed = nlohmann::json::parse(answer, nullptr, false);
  if (!is_there || parsed.is_discarded()) {
    fail(Errc::io, "{} has not answered '{}'", script_, line);
  }
  return parsed;
}

}  // namespace weft::bench
