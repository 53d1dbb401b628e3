#pragma once
/// Measures the limits of this machine, with which a profile is compared.

#include <cstdint>

#include "inspect/profile/plan_profile.hpp"

namespace weft {

/// Returns the limits of each of `chips` chips while it has one of `cores` cores. As many threads
/// as can run at once do the same work. First they multiply and add in registers. Then they read
/// two arrays and write their sum to a third, for several array sizes up to `bytes` for all three.
/// The best of some tries counts. It takes less than a second.
ChipLimits measure_limits(int chips, int cores, std::int64_t bytes);

}  // namespace weft
