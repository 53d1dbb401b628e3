#pragma once
/// Huge pages for shared memory: says whether the system allows them, and requests them.

#include <cstddef>
#include <string>

namespace weft {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// Returns the policy for huge pages in /dev/shm, which is the mount option `huge=` in this
/// process's mount namespace: "never", "advise" (only if requested), "within_size" or "always". It
/// is also "never" if the system doesn't report it.
std::string huge_pages_of_shm();
/// Returns the policy for anonymous segments, from
/// /sys/kernel/mm/transparent_hugepage/shmem_enabled: one of the words above, "deny" or "force".
std::string huge_pages_of_anonymous();

/// Requests huge pages for a mapping whose address and offset in the file are multiples of
/// kHugePageBytes. The system may ignore the request.
void ask_for_huge_pages(std::byte* begin, std::size_t bytes) noexcept;
/// Allocates the huge pages that are wholly in a range of a mapping for which they were requested.
/// If none are available, allocates ordinary pages or nothing. With the policy `advise` this must
/// be called, because posix_fallocate() ignores the request.
void populate_huge_pages(std::byte* begin, std::size_t bytes) noexcept;

}  // namespace weft
