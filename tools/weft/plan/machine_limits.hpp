#pragma once
/// What this machine can do at most, measured: the limits beside which a profile is shown.

#include <cstdint>

#include "inspect/profile/plan_profile.hpp"

namespace weft {

/// Of each of `chips` chips while it has one of `cores` cores. As many threads as can run at once
/// do the same: multiply and add in registers; then read two arrays and write their sum to a third,
/// with arrays of several sizes, up to `bytes` for the three. The best of some tries, in less than
/// a second.
ChipLimits measure_limits(int chips, int cores, std::int64_t bytes);

}  // namespace weft
