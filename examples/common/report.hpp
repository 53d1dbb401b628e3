#pragma once
/// The summary of a run that has ended: numbers for people and for comparison.

#include <chrono>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace examples {

/// Returns the XXH3 hash of the names and elements of all parameters, in hex. Equal runs have equal
/// digests.
std::string digest(const weft::Module& net);

/// Measures the steps of a loop, including the wait for their data.
class StepTimes {
 public:
  void begin() { begin_ = Clock::now(); }
  void step_ended();
  /// Returns the median and the 99th percentile, in microseconds.
  weft::Metrics summary() const;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
  std::vector<double> step_us_;
};

/// Returns the content of the file that the option --json names.
std::string to_json(const weft::Result& result);

}  // namespace examples
