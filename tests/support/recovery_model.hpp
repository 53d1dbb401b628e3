#pragma once
/// The random training loop of a simulated job, and the values that it is expected to make.

#include <array>
#include <cstdint>
#include <vector>

#include "tests/support/random_program.hpp"

namespace weft::testing {

inline constexpr std::size_t kSimTensors = 3;
/// One for each tensor: its value, which is a hash of all that has ever been made of it.
using SimValues = std::array<std::uint64_t, kSimTensors>;
/// One for each tensor: its offset in a chip's arena.
using SimPlaces = std::array<std::uint64_t, kSimTensors>;

struct SimRun {
  std::uint32_t program = 0;
  std::array<bool, kSimTensors> updates{};
  int group = 1;  ///< chips that meet in it
  bool ends_step = false;
  bool reports = false;  ///< the loop does, once it has started it

  bool any_update() const;
};

/// A report, and where the loop makes it when nothing disturbs it.
struct SimReport {
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint32_t number = 0;
  std::uint64_t metrics = 0;
};

/// What every worker's loop does: each step's runs, then a report.
struct SimScript {
  SimScript(int num_chips, Random& random);

  bool uses(std::size_t step, std::size_t tensor) const { return first_use[tensor] <= step; }
  /// What the run makes of the values.
  SimValues apply(std::size_t step, std::size_t run, const SimValues& in) const;

  std::array<std::size_t, kSimTensors> first_use{};
  std::vector<std::vector<SimRun>> steps;
  std::vector<std::vector<SimValues>> expected;  ///< before each run of each step; [steps] last
  bool greets = false;                           ///< reports before its first step, too
  std::vector<std::uint64_t> reports;            ///< metrics of all, in order
};

/// Metrics of the greeting, of the report in the middle of a run, and after a step.
inline constexpr std::uint64_t kSimGreeting = 1;
std::uint64_t metrics_of_run(std::size_t step, std::size_t run);
std::uint64_t metrics_of_step(std::size_t step);

}  // namespace weft::testing
