#pragma once
/// `weft plan -- ./program`: shows what a program's first step would run, before any training.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spmd/plan/plan.hpp"
#include "tools/weft/launch/options.hpp"
#include "tools/weft/plan/predict.hpp"

namespace weft {

/// The first step of a program, as the program's workers have traced and compiled it.
struct FirstStep {
  Plan plan;
  std::string site{};
  int num_workers = 1;
  int chips_per_worker = 1;
  bool keeps_state = false;
  std::uint64_t arena_bytes = 0;
  double compile_seconds = 0;
};

/// The exit code if contradictions prevent the first step.
inline constexpr int kRefused = 3;

/// Runs the program up to its first step. If the program doesn't reach it, sets `code`, shows the
/// program's output on stderr and returns nothing.
std::optional<FirstStep> trace_first_step(const LaunchOptions& options, int& code);

/// The host's memory, speed and folder of compiled programs, as the step can use them.
struct HostRoom {
  std::uint64_t shm_free_bytes = 0;
  HostSpeed speed{};
  std::string compile_cache{};  ///< the value of WEFT_COMPILE_CACHE
};

/// Returns the requirements of the step that the host doesn't meet. If there are none, the step can
/// run.
std::vector<std::string> contradictions(const FirstStep& step, const HostRoom& room);

/// to_text() returns everything as text for people, to_json() as weft.plan/1 for programs.
std::string to_text(const FirstStep& step, const HostRoom& room);
std::string to_json(const FirstStep& step, const HostRoom& room);

}  // namespace weft
