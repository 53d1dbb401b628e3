#pragma once
/// HugePages: says whether the system allows huge pages for shared memory, and requests them.

#include <cstddef>
#include <string>

namespace weft {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// Returns the policy for huge pages in /dev/shm: the mount option `huge=` in this process's mount
/// namespace, which is "never", "advise" (only if requested), "within_size" or "always". Returns
/// "never" if the system doesn't report it.
std::string huge_pages_of_shm();
/// Returns the policy for anonymous segments, from
/// /sys/kernel/mm/transparent_hugepage/shmem_enabled: one of the four words above, "deny" or
/// "force".
std::string huge_pages_of_anonymous();

/// Requests huge pages for a mapping whose address and offset in the file are multiples of
/// kHugePageBytes. The system may ignore the request.
void ask_for_huge_pages(std::byte* begin, std::size_t bytes) noexcept;
/// Allocates the huge pages that are completely within a range of a mapping for which huge pages
/// were requested. If no huge pages are available, allocates small pages or nothing. With the
/// policy `advise` this call is needed, because posix_fallocate() ignores the request.
void populate_huge_pages(std::byte* begin, std::size_t bytes) noexcept;

}  // namespace weft
