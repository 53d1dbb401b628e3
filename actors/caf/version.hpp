#pragma once
/// Gives common names to the parts of CAF that differ between its versions. There is a header for
/// each version: Debian 12 and 13 have CAF 0.17, and other package managers have CAF 1.x.

#include <cstdint>

#include <caf/config.hpp>

namespace weft {

/// The first id of weft's message types in CAF 1.x. Programs that link weft statically and have
/// their own message types may use the ids from CAF's 200 up to this one.
inline constexpr std::uint16_t kFirstTypeId = 3000;

}  // namespace weft

#if CAF_MAJOR_VERSION < 1
#include "actors/caf/caf_0_17.hpp"
#include "actors/caf/observed_actor_0_17.hpp"
#else
#include "actors/caf/caf_1.hpp"
#include "actors/caf/observed_actor_1.hpp"
#endif
