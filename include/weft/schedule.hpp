#pragma once
/// Learning-rate schedules for Optimizer::set_lr. The rate depends on the step alone, so that a
/// training that continues needs no state of them.

#include <cstdint>

namespace weft {

struct ScheduleOptions {
  double lr = 1e-3;          ///< the highest rate
  std::uint64_t steps = 0;   ///< of the whole training; from there on the rate is `end_lr`
  std::uint64_t warmup = 0;  ///< steps in which the rate rises linearly to `lr`
  double end_lr = 0;
};

/// Half a cosine from `lr` to `end_lr` after the warm-up (I. Loshchilov, F. Hutter, 2017; torch's
/// CosineAnnealingLR). Throws invalid_argument for negative rates and steps <= warmup.
double cosine_schedule(std::uint64_t step, const ScheduleOptions& options);
/// A straight line from `lr` to `end_lr` after the warm-up (torch's LinearLR). Throws as above.
double linear_schedule(std::uint64_t step, const ScheduleOptions& options);
/// lr * gamma^(step / step_size), rounded down (torch's StepLR). Throws invalid_argument for
/// step_size = 0.
double step_schedule(std::uint64_t step, double lr, std::uint64_t step_size, double gamma = 0.1);

}  // namespace weft
