#include "actors/launch/worker_command.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include <weft/tensor/error.hpp>

#include "actors/launch/core_shares.hpp"
#include "actors/launch/foreign_launch.hpp"
#include "actors/link/environment.hpp"
#include "data/files/plain_file.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWrapperVariable = "WEFT_WORKER_WRAPPER";

/// Returns the arguments with which this process was started, the program's name first.
std::vector<std::string> own_arguments() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

std::string own_executable() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? "/proc/self/exe" : path.string();
}

/// Finds the program in PATH, in the same way as a shell.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* folders = std::getenv("PATH");
  std::istringstream all(folders != nullptr ? folders : "/usr/bin:/bin");
  for (std::string folder; std::getline(all, folder, ':');) {
    const std::string path = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  fail(Errc::not_found, "{} = \"{} ...\": there is no such program in PATH", kWrapperVariable,
       name);
}

std::vector<std::string> wrapper_words() {
  const char* text = std::getenv(kWrapperVariable);
  std::istringstream in(text != nullptr ? text : "");
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  if (!words.empty()) words.front() = find_program(words.front());
  return words;
}

std::string with_worker(std::string word, int worker) {
  constexpr std::string_view kPlace = "{worker}";
  for (std::size_t at; (at = word.find(kPlace)) != std::string::npos;) {
    word.replace(at, kPlace.size(), std::to_string(worker));
  }
  return word;
}

int open_executable(const std::string& path) {
  const auto refuse = [&](Errc code, const std::string& why) {
    fail(code,
         "scaling.worker_executable = \"{}\": {}; expected the absolute path of a program that "
         "begins with weft::worker_main(), as weft_add_worker() makes it, or weft::plugin_worker()",
         path, why);
  };
  if (!path.starts_with('/')) refuse(Errc::invalid_argument, "it isn't absolute");
  std::error_code error;
  if (!fs::is_regular_file(path, error)) refuse(Errc::not_found, "there is no such file");
  if (::access(path.c_str(), X_OK) != 0) refuse(Errc::invalid_argument, std::strerror(errno));
  std::string magic(4, '\0');
  std::ifstream(path, std::ios::binary).read(magic.data(), 4);
  if (magic != "\177ELF") refuse(Errc::invalid_argument, "it is a script, or it isn't a program");
  const int low = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  // The descriptor must be higher than all those with which a worker's process starts.
  const int file = ::fcntl(low, F_DUPFD_CLOEXEC, kWorkerStdin + 1);
  const int why = errno;
  ::close(low);
  if (file < 0) refuse(Errc::io, std::strerror(why));
  return file;
}

/// Throws invalid_argument if the kernel would refuse one of these CPUs.
void check_cpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t usable;
  ::sched_getaffinity(::getpid(), sizeof usable, &usable);
  for (const int cpu : cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(static_cast<std::size_t>(cpu), &usable))
      continue;
    fail(Errc::invalid_argument,
         "scaling.affinity has CPU {}, which this process may not use: expected CPUs that "
         "`taskset -cp {}` shows",
         cpu, ::getpid());
  }
}

bool binds_cores() {
  const char* what = std::getenv("WEFT_LAUNCH_BIND");
  if (what == nullptr || std::string_view(what) == "none") return false;
  if (std::string_view(what) == "cores") return true;
  fail(Errc::invalid_argument, "WEFT_LAUNCH_BIND = \"{}\": expected cores or none", what);
}

/// Returns whether worker 0 gets this process's stdin. A terminal isn't passed on: a worker isn't
/// in the terminal's foreground process group, so it would be stopped when it reads.
bool has_stdin_for_workers() {
  return std::getenv("WEFT_LAUNCH_STDIN") != nullptr && ::isatty(STDIN_FILENO) == 0;
}

}  // namespace

WorkerCommand::WorkerCommand(const ScalingConfig& scaling, bool is_named)
    : is_named_(is_named),
      wrapper_(wrapper_words()),
      arguments_(is_named ? std::vector<std::string>{"", "--weft-worker={worker}"}
                          : own_arguments()),
      executable_(scaling.worker_executable.empty() ? own_executable() : scaling.worker_executable),
      cpus_(scaling.affinity),
      gives_stdin_(has_stdin_for_workers()) {
  check_cpus(cpus_);
  if (binds_cores()) {
    shares_ = deal_cores(places_of(cpus_.empty() ? own_cpus() : cpus_), scaling.num_workers);
    environment_.emplace_back("WEFT_OWN_CORES=1");
  }
  if (std::getenv("WEFT_LAUNCH_REPORT_BINDINGS") != nullptr) {
    for (int worker = 0; worker < scaling.num_workers; ++worker) {
      const std::vector<int>& bound = cpus(worker);
      fmt::print(stderr, "worker {}: CPUs {}{}\n", worker,
                 text_of_cpus(bound.empty() ? own_cpus() : bound),
                 shares_.empty() ? ", the same for all workers" : "");
    }
  }
  std::error_code error;
  folder_ = fs::current_path(error).string();
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    // Workers don't get the variables by which a launcher controls this program, so that programs
    // which they start don't get them either.
    const std::string_view name = std::string_view(*entry).substr(0, std::strcspn(*entry, "="));
    if (name.starts_with("WEFT_LAUNCH_") || is_of_foreign_launch(name)) continue;
    if (name == "WEFT_OWN_CORES") continue;
    environment_.emplace_back(*entry);
  }
  if (is_named || arguments_.empty()) {
    arguments_.resize(std::max<std::size_t>(arguments_.size(), 1));
    arguments_.front() = executable_;
  }
  require_local_path(scaling.worker_executable, "scaling.worker_executable");
  if (!scaling.worker_executable.empty()) file_ = open_executable(scaling.worker_executable);
}

WorkerCommand::~WorkerCommand() {
  if (file_ >= 0) ::close(file_);
}

std::string WorkerCommand::path() const {
  if (is_wrapped()) return wrapper_.front();
  return file_ >= 0 ? fmt::format("/proc/self/fd/{}", file_) : "/proc/self/exe";
}

std::vector<std::string> WorkerCommand::words(int worker) const {
  std::vector<std::string> words;
  for (const std::string& word : wrapper_) words.push_back(with_worker(word, worker));
  if (is_wrapped()) words.push_back(executable_);
  for (std::size_t i = is_wrapped() ? 1 : 0; i < arguments_.size(); ++i) {
    words.push_back(is_named_ ? with_worker(arguments_[i], worker) : arguments_[i]);
  }
  return words;
}

std::vector<std::string> WorkerCommand::environment(
    const std::vector<std::string>& variables) const {
  std::vector<std::string> merged = variables;
  for (const std::string& entry : environment_) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('=') + 1);
    const bool replaced = std::ranges::any_of(
        variables, [&](const std::string& variable) { return variable.starts_with(name); });
    if (!replaced) merged.push_back(entry);
  }
  return merged;
}

}  // namespace weft
