#pragma once
/// The random training loop of a simulated job, and the values that it should compute.

#include <array>
#include <cstdint>
#include <vector>

#include "tests/support/random_program.hpp"

namespace weft::testing {

inline constexpr std::size_t kSimTensors = 3;
/// One value for each tensor: a hash of all updates that it has had.
using SimValues = std::array<std::uint64_t, kSimTensors>;
/// One offset for each tensor, in a chip's arena.
using SimPlaces = std::array<std::uint64_t, kSimTensors>;

struct SimRun {
  std::uint32_t program = 0;
  std::array<bool, kSimTensors> updates{};
  int group = 1;  ///< number of chips that meet in its collective
  bool ends_step = false;
  bool reports = false;  ///< the loop reports after it has started the run

  bool any_update() const;
};

/// A report, and the point at which an undisturbed loop makes it.
struct SimReport {
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint32_t number = 0;
  std::uint64_t metrics = 0;
};

/// The script of every worker's loop: the runs of each step, then a report.
struct SimScript {
  SimScript(int num_chips, Random& random);

  bool uses(std::size_t step, std::size_t tensor) const { return first_use[tensor] <= step; }
  /// Returns the values after the run.
  SimValues apply(std::size_t step, std::size_t run, const SimValues& in) const;

  std::array<std::size_t, kSimTensors> first_use{};
  std::vector<std::vector<SimRun>> steps;
  /// The values before each run of each step; [steps] has the last.
  std::vector<std::vector<SimValues>> expected;
  bool greets = false;                 ///< it also reports before its first step
  std::vector<std::uint64_t> reports;  ///< the metrics of all reports, in order
};

/// The metrics of the greeting, of the report in the middle of a run, and of the report after a
/// step.
inline constexpr std::uint64_t kSimGreeting = 1;
std::uint64_t metrics_of_run(std::size_t step, std::size_t run);
std::uint64_t metrics_of_step(std::size_t step);

}  // namespace weft::testing
