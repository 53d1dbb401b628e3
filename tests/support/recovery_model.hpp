#pragma once
/// What recovery_sim.cpp simulates: a random training loop with its expected values, and the parts
/// of the workers. Each part is as small as its counterpart's rule allows.

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "tests/support/random_program.hpp"

namespace weft::testing {

inline constexpr std::size_t kSimTensors = 3;
/// One for each tensor: its value, which is a hash of all that has ever been made of it.
using SimValues = std::array<std::uint64_t, kSimTensors>;
/// One for each tensor: its block in the arenas; -1 for none.
using SimPlaces = std::array<int, kSimTensors>;
inline constexpr SimPlaces kSimNowhere{-1, -1, -1};

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

/// StateDirectory; the slots outlive the process, the rest is made anew with each session.
class SimDirectory {
 public:
  /// Where version `step` lies; what other versions there are is forgotten.
  SimPlaces open(std::uint64_t step);
  std::optional<SimPlaces> read(std::uint64_t step) const;
  /// False: has written it. True: finish() has to; a kill may come in between.
  bool write(std::uint64_t step, const SimPlaces& places);
  void finish(std::uint64_t step, const SimPlaces& places);

 private:
  static constexpr std::uint64_t kNoStep = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t first = 0, last = 0;
    std::optional<SimPlaces> table;
  };
  std::array<Slot, 4> slots_;
  std::size_t last_ = 3;
  std::array<std::optional<SimPlaces>, 4> written_;
};

/// BufferPool, as far as it is for state.
class SimPool {
 public:
  /// New memory is taken around what is `taken`.
  explicit SimPool(const SimPlaces& taken = kSimNowhere) : taken_(taken) {}
  /// `any_age`: breaks the rule that a block is free only after the step in which it was freed.
  int allocate(std::uint64_t step, bool any_age);
  int allocate_for_host(std::uint64_t committed, std::uint64_t completed_run);
  void free(int block, std::uint64_t step, std::uint64_t last_run);

 private:
  struct Free {
    int block;
    std::uint64_t step, last_run;
  };
  int grow();
  int take();
  SimPlaces taken_;
  int next_ = 0;
  std::deque<Free> free_;
};

}  // namespace weft::testing
