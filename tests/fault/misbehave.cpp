#include "tests/fault/misbehave.hpp"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

#include <fmt/format.h>

#include <weft/weft.hpp>

#include "transport/board/board.hpp"

namespace {

[[noreturn]] void flood() {
  fmt::print("mark flood {}\n", ::getpid());
  for (;;) fmt::print("{}\n", std::string(1000, 'x'));
}

[[noreturn]] void spin() {
  for (volatile bool forever = true;;) forever = !forever;  // so that stacks name this line
}

/// Keeps the core busy for 10 ms.
void dawdle() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
  while (std::chrono::steady_clock::now() < end) {
  }
}

[[noreturn]] void deadlock() {
  std::mutex mutex;
  const std::lock_guard first(mutex);
  std::jthread([&] { const std::lock_guard second(mutex); }).join();
  std::abort();
}

void lock_twice() {
  std::mutex mutex;
  mutex.lock();
  mutex.lock();
}

/// Sleeps until the job has failed. A loop in the trainer's process continues to run then.
void nap() {
  const weft::Board board = weft::Board::open(weft::get_context().job_id(), true);
  while (board.status() <= weft::JobStatus::running) ::sched_yield();
}

/// Forks a child that survives its parent. The child tells the test that it runs.
void fork_child() {
  const pid_t child = ::fork();
  if (child > 0) return stop_at_mark("parent");
  fmt::print("mark child {}\n", ::getpid());
  std::fflush(stdout);
  for (;;) ::pause();
}

/// Waits until the test lets it continue, and then allocates memory until there is no more.
[[noreturn]] void eat_memory() {
  fmt::print("mark oom {}\n", ::getpid());
  std::fflush(stdout);
  std::raise(SIGSTOP);
  for (std::vector<std::string> eaten;;) eaten.emplace_back(std::size_t{1} << 20, 'x');
}

}  // namespace

void stop_at_mark(const char* mark) {
  fmt::print("mark {} {}\n", mark, ::getpid());
  std::fflush(stdout);
  for (;;) ::pause();
}

void say_stdin() {
  std::string line;
  std::getline(std::cin, line);
  fmt::print("stdin: {}\n", line);
}

void kill_trainer() {
  const weft::Board board = weft::Board::open(weft::get_context().job_id(), true);
  ::kill(board.header().trainer_pid, SIGKILL);
  for (;;) ::pause();
}

void misbehave(const std::string& mode) {
  if (mode == "oom") eat_memory();
  if (mode == "bad_alloc") std::string(std::string().max_size() / 2, 'x');
  if (mode == "spin") spin();
  if (mode == "slow") dawdle();
  if (mode == "naps") nap();
  if (mode == "deadlock") deadlock();
  if (mode == "lock_twice") lock_twice();
  if (mode == "flood") flood();
  if (mode == "fit_in_loop") weft::Trainer([](weft::TrainContext&) {}).fit();
  if (mode == "kill") std::raise(SIGKILL);
  if (mode == "fork") fork_child();
  if (mode == "throw") throw std::runtime_error("boom");
  if (mode == "throw_bytes") throw std::runtime_error("boom \xff");
  if (mode == "weft_error") weft::fail(weft::Errc::invalid_argument, "no such thing");
  if (mode == "exit_0") std::_Exit(0);
  if (mode == "exit_3") std::_Exit(3);
  if (mode == "segv" || mode == "segv_flip") std::raise(SIGSEGV);
  if (mode == "check") WEFT_CHECK(1 + 1 == 3, mode);
  if (mode == "default_sigterm") {
    std::signal(SIGTERM, SIG_DFL);
    stop_at_mark("loop");
  }
  if (mode == "stop") std::raise(SIGSTOP);
  if (mode == "mark") stop_at_mark("loop");
}
