#pragma once
/// Makes the random training loop of a simulated job, and the values that the loop should compute.

#include <array>
#include <cstdint>
#include <vector>

#include "tests/support/random_program.hpp"

namespace weft::testing {

inline constexpr std::size_t kSimTensors = 3;
/// One value for each tensor: a hash of all updates of the tensor.
using SimValues = std::array<std::uint64_t, kSimTensors>;
/// The offset of each tensor in a chip's arena.
using SimPlaces = std::array<std::uint64_t, kSimTensors>;

struct SimRun {
  std::uint32_t program = 0;
  std::array<bool, kSimTensors> updates{};
  int group = 1;  ///< the number of chips in each group of the run's collective
  bool ends_step = false;
  bool reports = false;  ///< the loop reports after it has started the run

  bool any_update() const;
};

/// A report. It names its generation, its step and its number within the step.
struct SimReport {
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint32_t number = 0;
  std::uint64_t metrics = 0;
};

/// The script that every worker's loop follows: the runs of each step, and a report after each
/// step.
struct SimScript {
  SimScript(int num_chips, Random& random);

  bool uses(std::size_t step, std::size_t tensor) const { return first_use[tensor] <= step; }
  /// Returns the values after a run that begins with the values `in`.
  SimValues apply(std::size_t step, std::size_t run, const SimValues& in) const;

  std::array<std::size_t, kSimTensors> first_use{};
  std::vector<std::vector<SimRun>> steps;
  /// The values before each run, by step and run. The entry after the last step has the final
  /// values.
  std::vector<std::vector<SimValues>> expected;
  bool greets = false;                 ///< the loop also reports before its first step
  std::vector<std::uint64_t> reports;  ///< the metrics of all reports, in order
};

/// The metrics of the report before the first step, of a report after a run has started, and of the
/// report after a step.
inline constexpr std::uint64_t kSimGreeting = 1;
std::uint64_t metrics_of_run(std::size_t step, std::size_t run);
std::uint64_t metrics_of_step(std::size_t step);

}  // namespace weft::testing
