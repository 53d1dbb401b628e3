#include "actors/launch/worker_processes.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace weft {
namespace {

/// The time that a hanging process has to write its stack before it is killed.
constexpr std::chrono::milliseconds kStackPatience{200};

}  // namespace

pid_t WorkerProcesses::start(int worker, const WorkerCommand& command,
                             const std::vector<std::string>& variables) {
  const auto index = static_cast<std::size_t>(worker);
  auto started = std::make_unique<WorkerProcess>(
      worker, command, variables,
      WorkerOutput{.out = &stdout_, .err = &stderr_, .lines = lines_, .who = who_});
  if (processes_.size() <= index) processes_.resize(index + 1);
  processes_[index] = std::move(started);
  return processes_[index]->pid();
}

void WorkerProcesses::kill(int worker, bool dump_stack) {
  const WorkerProcess& process = *processes_.at(static_cast<std::size_t>(worker));
  if (!dump_stack) return process.kill();
  process.ask_for_stack();
  stuck_.push_back({process.pid(), Clock::now() + kStackPatience});
}

void WorkerProcesses::kill_all() const {
  for (const auto& process : processes_) {
    if (process != nullptr) process->kill();
  }
}

void WorkerProcesses::add_to(std::vector<pollfd>& waits) const {
  for (const Outlet* outlet : {&stdout_, &stderr_}) {
    waits.push_back({.fd = outlet->empty() ? -1 : outlet->fd(), .events = POLLOUT, .revents = 0});
  }
  for (const auto& process : processes_) {
    const auto fds = process == nullptr
                         ? std::array{-1, -1, -1}
                         : std::array{process->pidfd(), process->out(), process->err()};
    for (const int fd : fds) waits.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  }
}

std::optional<WorkerProcesses::Clock::time_point> WorkerProcesses::deadline() const {
  if (stuck_.empty()) return {};
  return stuck_.front().kill_at;
}

void WorkerProcesses::serve(const pollfd* waits,
                            const std::function<void(const ProcessEnded&)>& on_end) {
  stdout_.flush();
  stderr_.flush();
  const pollfd* of_processes = waits + 2;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i] == nullptr) continue;
    processes_[i]->pump();
    if (of_processes[3 * i].revents != 0) on_end(processes_[i]->reap());
  }
  kill_stuck();
}

/// Kills the processes whose time to write their stacks has passed.
void WorkerProcesses::kill_stuck() {
  while (!stuck_.empty() && Clock::now() >= stuck_.front().kill_at) {
    for (std::size_t worker = 0; worker < processes_.size(); ++worker) {
      if (processes_[worker] == nullptr || processes_[worker]->pid() != stuck_.front().pid)
        continue;
      on_stack_(static_cast<int>(worker));
      processes_[worker]->kill();
    }
    stuck_.pop_front();
  }
}

bool WorkerProcesses::over() const {
  return stdout_.empty() && stderr_.empty() &&
         std::ranges::none_of(processes_, [](const auto& process) {
           return process != nullptr && process->running();
         });
}

void WorkerProcesses::drop_output() {
  stdout_.drop();
  stderr_.drop();
}

}  // namespace weft
