#pragma once
/// Huge pages for shared memory: whether the system allows them, and how to request them.

#include <cstddef>
#include <string>

namespace weft {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// Whether the files of a tmpfs may use huge pages: "never", "advise" (if a program asks),
/// "within_size", "always", or, for anonymous segments, "deny" and "force". "never" also if the
/// system doesn't report it.
/// For /dev/shm: its mount option `huge=`, in this process's mount namespace.
std::string huge_pages_of_shm();
/// Returns the same for anonymous segments, from /sys/kernel/mm/transparent_hugepage/shmem_enabled.
std::string huge_pages_of_anonymous();

/// Requests huge pages for a mapping that begins at a multiple of kHugePageBytes, both in its file
/// and in its address. The system may ignore the request.
void ask_for_huge_pages(std::byte* begin, std::size_t bytes) noexcept;
/// Allocates the whole huge pages in a range of such a mapping if they are available; otherwise
/// ordinary pages or none. It is needed for `advise`, because posix_fallocate() ignores the
/// request.
void populate_huge_pages(std::byte* begin, std::size_t bytes) noexcept;

}  // namespace weft
