#include <weft/optim/learning_rates.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// Returns the learning rate of a step. `shape` maps the completed fraction (0 to 1) of the steps
/// after the warm-up to the remaining fraction of lr - end_lr.
template <typename Shape>
double warmed_up(const char* name, std::uint64_t step, const ScheduleOptions& options,
                 Shape shape) {
  const auto [lr, steps, warmup, end_lr] = options;
  if (!(lr >= 0 && end_lr >= 0)) {
    fail(Errc::invalid_argument, "{}: lr = {} and end_lr = {}: expected 0 or more", name, lr,
         end_lr);
  }
  if (steps <= warmup) {
    fail(Errc::invalid_argument, "{}: steps = {} and warmup = {}: expected more steps than warmup",
         name, steps, warmup);
  }
  if (step < warmup) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  const double done = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  return end_lr + (lr - end_lr) * shape(std::min(done, 1.0));
}

/// Returns the rate between `from` and `to` after a fraction `done` of the steps.
double annealed(double from, double to, double done, bool linear) {
  return to + (from - to) * (linear ? 1 - done : 0.5 * (1 + std::cos(std::numbers::pi * done)));
}

}  // namespace

double cosine_schedule(std::uint64_t step, const ScheduleOptions& options) {
  return warmed_up("cosine_schedule", step, options,
                   [](double done) { return 0.5 * (1 + std::cos(std::numbers::pi * done)); });
}

double linear_schedule(std::uint64_t step, const ScheduleOptions& options) {
  return warmed_up("linear_schedule", step, options, [](double done) { return 1 - done; });
}

double step_schedule(std::uint64_t step, double lr, std::uint64_t step_size, double gamma) {
  if (step_size == 0) {
    fail(Errc::invalid_argument, "step_schedule: step_size = 0: expected 1 or more");
  }
  return lr * std::pow(gamma, static_cast<double>(step / step_size));
}

double constant_schedule(std::uint64_t step, double lr, double factor, std::uint64_t steps) {
  if (!(factor >= 0 && factor <= 1)) {
    fail(Errc::invalid_argument, "constant_schedule: factor = {}: expected 0 to 1", factor);
  }
  return step < steps ? lr * factor : lr;
}

double exponential_schedule(std::uint64_t step, double lr, double gamma) {
  return lr * std::pow(gamma, static_cast<double>(step));
}

double multi_step_schedule(std::uint64_t step, double lr, std::span<const std::uint64_t> milestones,
                           double gamma) {
  if (!std::ranges::is_sorted(milestones)) {
    fail(Errc::invalid_argument, "multi_step_schedule: the milestones don't ascend");
  }
  const auto reached = std::ranges::upper_bound(milestones, step) - milestones.begin();
  return lr * std::pow(gamma, static_cast<double>(reached));
}

double polynomial_schedule(std::uint64_t step, const ScheduleOptions& options, double power) {
  return warmed_up("polynomial_schedule", step, options,
                   [&](double done) { return std::pow(1 - done, power); });
}

double cosine_restarts_schedule(std::uint64_t step, const CosineRestartsOptions& options) {
  const auto [lr, first, factor, end_lr] = options;
  if (first == 0 || factor == 0) {
    fail(Errc::invalid_argument,
         "cosine_restarts_schedule: first = {} and factor = {}: expected 1 or more", first, factor);
  }
  std::uint64_t period = first;
  if (factor == 1) step %= period;
  while (step >= period) {
    step -= period;
    period *= factor;
  }
  return annealed(lr, end_lr, static_cast<double>(step) / static_cast<double>(period), false);
}

double one_cycle_schedule(std::uint64_t step, const OneCycleOptions& options) {
  const auto& [max_lr, steps, share, linear, div_factor, final_div_factor, three_phase] = options;
  if (steps < 2 || !(share >= 0 && share <= 1) || !(div_factor > 0 && final_div_factor > 0)) {
    fail(Errc::invalid_argument,
         "one_cycle_schedule: steps = {}, warmup_share = {}, div_factor = {}, final_div_factor = "
         "{}: expected 2 steps or more, a share from 0 to 1 and factors above 0",
         steps, share, div_factor, final_div_factor);
  }
  const double first_lr = max_lr / div_factor;
  const auto total = static_cast<double>(steps);
  const double last = total - 1;
  const double top = share * total - 1;
  const double down = three_phase ? 2 * share * total - 2 : top;
  const double now = std::min(static_cast<double>(step), last);
  const auto part = [](double at, double from, double to) {
    return to == from ? 1 : (at - from) / (to - from);
  };
  if (now <= top) return annealed(first_lr, max_lr, part(now, 0, top), linear);
  if (now <= down) return annealed(max_lr, first_lr, part(now, top, down), linear);
  return annealed(three_phase ? first_lr : max_lr, first_lr / final_div_factor,
                  part(now, down, last), linear);
}

}  // namespace weft
