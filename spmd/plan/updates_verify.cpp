#include <algorithm>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "spmd/plan/donate.hpp"
#include "spmd/plan/schedule.hpp"
#include "spmd/plan/shared.hpp"

namespace weft {
namespace {

template <typename... Args>
[[noreturn]] void refuse_updates(fmt::format_string<Args...> format, Args&&... args) {
  fail(Errc::corrupt, "plan: {}", fmt::format(format, std::forward<Args>(args)...));
}

/// Checks that every output that updates an input is written after the update_wait, or is held.
void check_updates(const Plan& plan) {
  const auto wait = std::ranges::find(plan.steps, StepKind::update_wait, &PlanStep::kind);
  std::vector<std::uint32_t> early;
  std::int64_t bytes = 0;
  for (auto step = plan.steps.begin(); step != plan.steps.end(); ++step) {
    if (step->kind == StepKind::update_wait && step != wait) {
      refuse_updates("there are two update_waits");
    }
    for (const std::uint32_t output : written_outputs(plan, *step)) {
      if (plan.program.outputs[output].updates < 0) continue;
      if (wait == plan.steps.end()) {
        refuse_updates("output {} is written without an update_wait", output);
      }
      if (step > wait) continue;
      early.push_back(output);
      bytes += static_cast<std::int64_t>(
          slot_bytes(plan.program.type(plan.program.outputs[output].value)));
    }
  }
  if (plan.held != early) {
    refuse_updates("outputs {} are held until the update_wait, but the steps before it write {}",
                   fmt::join(plan.held, ", "), fmt::join(early, ", "));
  }
  if (bytes > kHeldBytesMax) {
    refuse_updates("{} bytes of outputs are held; at most {} are possible", bytes, kHeldBytesMax);
  }
}

void check_barriers(const Plan& plan, const Mesh& mesh) {
  auto end = plan.steps.end();
  while (end != plan.steps.begin() && std::prev(end)->kind == StepKind::update_wait) --end;
  const bool is_last = end != plan.steps.begin() && std::prev(end)->kind == StepKind::barrier;
  const auto count = std::ranges::count(plan.steps, StepKind::barrier, &PlanStep::kind);
  if (needs_final_barrier(plan, mesh) ? !is_last || count != 1 : count != 0) {
    refuse_updates("there are {} barriers; expected {} at the end", count,
                   needs_final_barrier(plan, mesh) ? "one" : "none");
  }
}

void check_donated(const Plan& plan) {
  const std::vector<bool> allowed = donated_updates(plan.program, plan.steps);
  if (plan.donated.size() != allowed.size()) {
    refuse_updates("there are {} donations for {} outputs", plan.donated.size(), allowed.size());
  }
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (plan.donated[i] && !allowed[i]) {
      refuse_updates("output {} is written over the input that it updates, which is still read", i);
    }
  }
}

}  // namespace

void verify_updates(const Plan& plan, const Mesh& mesh) {
  check_updates(plan);
  check_barriers(plan, mesh);
  check_donated(plan);
}

}  // namespace weft
