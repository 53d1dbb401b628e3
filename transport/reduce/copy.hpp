#pragma once
/// Copy: copies data to results that are larger than the caches.

#include <cstddef>

namespace weft {

/// A result of at least this many bytes has left the caches before it is read. For such a result, a
/// copy that doesn't load the overwritten cache lines is 1.3 to 2 times as fast; for smaller
/// results it is slower by the same factor. (Measured on an EPYC with two cores and 32 MiB of
/// third-level cache.)
inline constexpr std::size_t kPastCachesBytes = std::size_t{16} << 20;

/// Does the same as memcpy(), but bypasses the caches if the processor can.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace weft
