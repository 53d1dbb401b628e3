#pragma once
/// Implementations of "a chip": a thread on anonymous memory, or a process on named memory.

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/child_process.hpp"
#include "transport/board/board.hpp"
#include "transport/job/control_format.hpp"
#include "transport/job/job_memory.hpp"

namespace weft::testing {

/// What one chip does. What it throws is its failure, and ends the waits of the others.
using ChipBody = std::function<void(JobMemory& memory, const Board& board, int chip)>;

inline void run_chip(JobMemory& memory, const Board& board, int chip, const ChipBody& body) {
  try {
    memory.reserve(chip, 0, memory.arena_capacity());
    body(memory, board, chip);
  } catch (const std::exception& error) {
    memory.abort(fmt::format("chip {} failed: {}", chip, error.what()));
    throw;
  }
}

/// Tells the job, before anybody uses it, whether it has more chips than cores.
inline void set_crowded(JobMemory& memory, bool crowded) {
  auto* lines = reinterpret_cast<std::byte*>(&memory.group_line(0, 0));
  reinterpret_cast<ControlHeader*>(lines - sizeof(ControlHeader))->crowded = crowded ? 1 : 0;
}

/// Both teams: a failure per chip, empty where it succeeded. `crowded`: see set_crowded().
struct ThreadTeam {
  static std::vector<std::string> run(int num_chips, std::size_t arena_capacity,
                                      const ChipBody& body, std::optional<bool> crowded = {}) {
    const std::string job = unique_job();
    JobMemory memory = JobMemory::anonymous(
        {.job = job, .num_chips = num_chips, .arena_capacity = arena_capacity});
    if (crowded) set_crowded(memory, *crowded);
    const Board board = Board::anonymous({.job = job, .num_chips = num_chips});
    std::vector<std::string> failures(static_cast<std::size_t>(num_chips));
    std::vector<std::thread> threads;
    for (int chip = 0; chip < num_chips; ++chip) {
      threads.emplace_back([&, chip] {
        try {
          run_chip(memory, board, chip, body);
        } catch (const std::exception& error) {
          failures[static_cast<std::size_t>(chip)] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return failures;
  }
};

/// A job whose processes are chips; its names are removed at the end.
class ProcessTeam {
 public:
  ProcessTeam(int num_chips, std::size_t arena_capacity, const ChipBody& body,
              std::optional<bool> crowded = {})
      : memory_(JobMemory::create(
            {.job = job_, .num_chips = num_chips, .arena_capacity = arena_capacity})),
        board_(Board::create({.job = job_, .num_chips = num_chips})) {
    if (crowded) set_crowded(memory_, *crowded);
    for (int chip = 0; chip < num_chips; ++chip) {
      chips_.emplace_back([this, chip, &body] {
        JobMemory memory = JobMemory::open(job_);
        run_chip(memory, Board::open(job_, false), chip, body);
      });
    }
  }
  ~ProcessTeam() { JobMemory::remove(job_); }
  ProcessTeam(const ProcessTeam&) = delete;
  ProcessTeam& operator=(const ProcessTeam&) = delete;

  JobMemory& memory() { return memory_; }
  const Board& board() const { return board_; }
  ChildProcess& chip(int chip) { return chips_[static_cast<std::size_t>(chip)]; }

  static std::vector<std::string> run(int num_chips, std::size_t arena_capacity,
                                      const ChipBody& body, std::optional<bool> crowded = {}) {
    ProcessTeam team(num_chips, arena_capacity, body, crowded);
    std::vector<std::string> failures;
    for (ChildProcess& chip : team.chips_) failures.push_back(chip.join());
    return failures;
  }

 private:
  std::string job_ = unique_job();
  JobMemory memory_;
  Board board_;
  std::vector<ChildProcess> chips_;
};

/// ThreadSanitizer sees no races between processes.
#ifdef __SANITIZE_THREAD__
using Teams = ::testing::Types<ThreadTeam>;
#else
using Teams = ::testing::Types<ThreadTeam, ProcessTeam>;
#endif

}  // namespace weft::testing
