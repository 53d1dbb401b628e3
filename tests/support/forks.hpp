#pragma once
/// Forks that a test kills at random instants, and the memory that they share with it.

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <system_error>

#include <fmt/format.h>

namespace weft::testing {

/// Returns the only T of this type that the process and its forks share. Its atomics are 0 at
/// first.
template <typename T>
T& shared_zeros() {
  static T* const memory = [] {
    void* const found =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    return new (found) T;
  }();
  return *memory;
}

/// Runs `body` in a fork, which is killed when this process ends. The exit status is 0 if `body`
/// returns. If `body` throws, the fork prints the exception and increments the shared `failures`.
inline pid_t start_fork(const std::function<void()>& body, std::atomic<std::uint64_t>& failures) {
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    body();
  } catch (const std::exception& error) {
    fmt::print(stderr, "a process has failed: {}\n", error.what());
    failures.fetch_add(1);
    _exit(1);
  }
  _exit(0);
}

inline void kill_fork(pid_t pid) {
  ::kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

}  // namespace weft::testing
