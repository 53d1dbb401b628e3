#pragma once
/// StepTeller: decides when a program's callbacks learn how far the loops of a job are.

#include <chrono>
#include <cstdint>
#include <optional>

#include "transport/board/board.hpp"

namespace weft {

/// Tells only growing steps: those that run again after a loss aren't told again. Only the
/// trainer's thread uses it.
class StepTeller {
 public:
  using Clock = std::chrono::steady_clock;
  /// The least time between two steps that are told.
  static constexpr std::chrono::milliseconds kInterval{100};

  /// `is_heard`: whether there are callbacks; without them, no step is told.
  StepTeller(const Board& board, bool is_heard) : board_(&board), is_heard_(is_heard) {}

  /// The loops begin at this step.
  void begin(std::uint64_t step);
  /// Returns the number of steps that the loop of worker 0 has ended, if it is due to be told.
  std::optional<std::uint64_t> look(Clock::time_point now);
  /// Returns the job's last step, unless it has been told.
  std::optional<std::uint64_t> last(std::uint64_t step);
  /// Returns when look() must be called next; nothing while no loop runs.
  std::optional<Clock::time_point> deadline() const { return next_; }

 private:
  const Board* board_;
  bool is_heard_;
  std::uint64_t told_ = 0;
  std::optional<Clock::time_point> next_{};
};

}  // namespace weft
