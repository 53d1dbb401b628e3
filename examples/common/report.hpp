#pragma once
/// What a run says of itself when it has ended: numbers for people and for comparison.

#include <chrono>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace examples {

/// xxh3 of the names and elements of all parameters, in hex: equal for equal runs.
std::string digest(const weft::Module& net);

/// How long the steps of a loop take, the wait for their data included.
class StepTimes {
 public:
  void begin() { begin_ = Clock::now(); }
  void step_ended();
  /// Median and 99th percentile, in microseconds.
  weft::Metrics summary() const;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
  std::vector<double> step_us_;
};

/// What the file that --json names holds.
std::string to_json(const weft::Result& result);

}  // namespace examples
