#include "actors/host/step_teller.hpp"

#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// Returns the number of steps that the loop of worker 0 has ended.
std::uint64_t step_of(const Board& board) {
  try {
    return board.read(1).step;  // the row after the trainer's
  } catch (const Error&) {
    return 0;  // a process has written nonsense to the row
  }
}

}  // namespace

void StepTeller::begin(std::uint64_t step) {
  told_ = step;
  if (is_heard_) next_ = Clock::now() + kInterval;
}

std::optional<std::uint64_t> StepTeller::look(Clock::time_point now) {
  if (!next_ || now < *next_) return {};
  next_ = now + kInterval;
  return last(step_of(*board_));
}

std::optional<std::uint64_t> StepTeller::last(std::uint64_t step) {
  if (step <= told_) return {};
  told_ = step;
  return step;
}

}  // namespace weft
