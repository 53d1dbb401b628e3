#pragma once
/// Measures the limits of this machine, with which a profile is compared.

#include <cstdint>

#include "inspect/profile/plan_profile.hpp"

namespace weft {

/// Returns the limits of one of `chips` chips while it runs on one of `cores` cores. The
/// measurement uses as many threads as can run at once; all do the same work. First they multiply
/// and add in registers. Then they read two arrays and write their sum to a third, for several
/// sizes of the arrays, up to `bytes` for all three together. The best of several tries is used.
/// The measurement takes less than a second.
ChipLimits measure_limits(int chips, int cores, std::int64_t bytes);

}  // namespace weft
