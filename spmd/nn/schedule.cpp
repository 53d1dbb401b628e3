#include <weft/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <weft/error.hpp>

namespace weft {
namespace {

/// `shape` takes how much of the way after the warm-up is done, 0 to 1, to how much of the rate
/// above end_lr is left.
template <typename Shape>
double warmed_up(const char* name, std::uint64_t step, const ScheduleOptions& options,
                 Shape shape) {
  const auto [lr, steps, warmup, end_lr] = options;
  if (!(lr >= 0 && end_lr >= 0)) {
    fail(Errc::invalid_argument, "{}: lr = {} and end_lr = {}: expected 0 or more", name, lr,
         end_lr);
  }
  if (steps <= warmup) {
    fail(Errc::invalid_argument, "{}: steps = {} and warmup = {}: expected more steps than that",
         name, steps, warmup);
  }
  if (step < warmup) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  const double done = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  return end_lr + (lr - end_lr) * shape(std::min(done, 1.0));
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

}  // namespace weft
