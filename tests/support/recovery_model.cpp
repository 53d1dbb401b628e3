#include "tests/support/recovery_model.hpp"

#include <algorithm>
#include <utility>

namespace weft::testing {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15U + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9U;
  return x ^ (x >> 29);
}

constexpr SimValues kInitial{101, 102, 103};

}  // namespace

bool SimRun::any_update() const {
  return std::ranges::any_of(updates, [](bool update) { return update; });
}

std::uint64_t metrics_of_run(std::size_t step, std::size_t run) {
  return 1000 * (step + 1) + run + 1;
}

std::uint64_t metrics_of_step(std::size_t step) { return 1000 * (step + 1); }

SimScript::SimScript(int num_chips, Random& random) {
  greets = random.one_in(2);
  if (greets) reports.push_back(kSimGreeting);
  for (std::size_t k = 1; k < kSimTensors; ++k) {
    first_use[k] = random.one_in(3) ? random.below(12) : 0;
  }
  const std::uint64_t quiet = 2 + random.below(8);   // 1 of `quiet` steps has no run
  const std::uint64_t frozen = 2 + random.below(6);  // 1 of `frozen` runs updates nothing
  const std::uint64_t twice = 1 + random.below(4);   // 1 of `twice` steps has two or three runs
  const std::uint64_t meets = 1 + random.below(4);   // 1 of `meets` runs has a collective
  const std::size_t num_steps = 3 + random.below(num_chips > 32 ? 12 : 24);
  steps.resize(num_steps);
  for (std::size_t s = 0; s < num_steps; ++s) {
    if (random.one_in(quiet)) continue;
    const std::size_t runs = random.one_in(twice) ? 2 + random.below(2) : 1;
    for (std::size_t r = 0; r < runs; ++r) {
      SimRun run{.program = static_cast<std::uint32_t>(random.below(4))};
      run.ends_step = r + 1 == runs && !random.one_in(8);
      if (random.one_in(meets)) {
        run.group = random.one_in(2) ? num_chips : std::min(2, num_chips);
      }
      if (!random.one_in(frozen)) {
        for (std::size_t k = 0; k < kSimTensors; ++k) {
          run.updates[k] = uses(s, k) && (k == 0 || random.one_in(2));
        }
      }
      run.reports = random.one_in(4);
      steps[s].push_back(run);
    }
  }
  SimValues values = kInitial;
  expected.resize(num_steps + 1);
  for (std::size_t s = 0; s < num_steps; ++s) {
    for (std::size_t r = 0; r < steps[s].size(); ++r) {
      expected[s].push_back(values);
      values = apply(s, r, values);
      if (steps[s][r].reports) reports.push_back(metrics_of_run(s, r));
    }
    if (steps[s].empty()) expected[s].push_back(values);
    reports.push_back(metrics_of_step(s));
  }
  expected[num_steps].push_back(values);
}

SimValues SimScript::apply(std::size_t step, std::size_t run, const SimValues& in) const {
  std::uint64_t all = mix(step, run);
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    if (uses(step, k)) all = mix(all, in[k]);
  }
  SimValues out = in;
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    // A value of 0 marks a tensor that is being written, so results are odd and never 0.
    if (steps[step][run].updates[k]) out[k] = mix(all, in[k] + k) | 1;
  }
  return out;
}

}  // namespace weft::testing
