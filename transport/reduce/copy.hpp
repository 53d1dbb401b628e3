#pragma once
/// Copies for results that are larger than the caches.

#include <cstddef>

namespace weft {

/// From this size on a result has left the caches before it is read, and a copy that doesn't fetch
/// the lines it overwrites takes 1.3 to 2 times less; in the caches it would take as much more. (On
/// an EPYC of two cores with 32 MiB of third-level cache.)
inline constexpr std::size_t kPastCachesBytes = std::size_t{16} << 20;

/// As memcpy, past the caches where the processor can.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace weft
