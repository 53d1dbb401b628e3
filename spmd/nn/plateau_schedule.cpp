#include <weft/optim/plateau_schedule.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <span>

#include <weft/tensor/error.hpp>

#include "spmd/tensor/tensor_source.hpp"

namespace weft {
namespace {

/// Indices of the elements of the state.
enum Place : std::uint8_t { kRate, kBest, kBad, kCooldown, kPlaces };

}  // namespace

PlateauSchedule::PlateauSchedule(const Options& options, std::source_location loc)
    : options_(options) {
  if (!(options.factor >= 0 && options.factor < 1)) {
    fail(Errc::invalid_argument, "PlateauSchedule: factor = {}: expected 0 or more, below 1",
         options.factor);
  }
  if (!(options.lr >= 0 && options.min_lr >= 0)) {
    fail(Errc::invalid_argument, "PlateauSchedule: lr = {} and min_lr = {}: expected 0 or more",
         options.lr, options.min_lr);
  }
  if (options.patience < 0 || options.cooldown < 0) {
    fail(Errc::invalid_argument,
         "PlateauSchedule: patience = {} and cooldown = {}: expected 0 or more", options.patience,
         options.cooldown);
  }
  const float worst = options.mode == Mode::min ? std::numeric_limits<float>::infinity()
                                                : -std::numeric_limits<float>::infinity();
  const std::vector<float> first{static_cast<float>(options.lr), worst, 0, 0};
  state_ = make_buffer(options.name + ".state", first, {kPlaces});
  put_in_place(state_, loc);
}

bool PlateauSchedule::is_better(double metric, double best) const {
  const bool is_max = options_.mode == Mode::max;
  if (std::isinf(best)) return is_max ? metric > best : metric < best;
  const bool is_share = options_.threshold_mode == Threshold::rel;
  const double margin = is_share ? best * options_.threshold : options_.threshold;
  return is_max ? metric > best + margin : metric < best - margin;
}

double PlateauSchedule::step(double metric, std::source_location loc) {
  put_in_place(state_, loc);  // load() may have given the state another source
  std::vector<float> now = state_.to_vector(loc);
  if (is_better(metric, now[kBest])) {
    now[kBest] = static_cast<float>(metric);
    now[kBad] = 0;
  } else {
    now[kBad] += 1;
  }
  if (now[kCooldown] > 0) {
    now[kCooldown] -= 1;
    now[kBad] = 0;
  }
  if (now[kBad] > static_cast<float>(options_.patience)) {
    const double lower = std::max(now[kRate] * options_.factor, options_.min_lr);
    if (now[kRate] - lower > options_.eps) now[kRate] = static_cast<float>(lower);
    now[kCooldown] = static_cast<float>(options_.cooldown);
    now[kBad] = 0;
  }
  set_elements(state_, std::as_bytes(std::span(now)), loc);
  return now[kRate];
}

double PlateauSchedule::lr(std::source_location loc) const {
  put_in_place(state_, loc);
  return state_.to_vector(loc)[kRate];
}

}  // namespace weft
