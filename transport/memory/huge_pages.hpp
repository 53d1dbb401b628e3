#pragma once
/// Huge pages under shared memory: who allows them, and how to come by them.

#include <cstddef>
#include <string>

namespace weft {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// Whether the files of a tmpfs may lie on huge pages: "never", "advise" (where a program asks),
/// "within_size", "always", or, of anonymous segments, "deny" and "force". "never" also where the
/// system doesn't say.
/// Of /dev/shm: its mount option `huge=`. A process in a namespace of its own has its own answer.
std::string huge_pages_of_shm();
/// Of anonymous segments: /sys/kernel/mm/transparent_hugepage/shmem_enabled.
std::string huge_pages_of_anonymous();

/// Asks for huge pages in a mapping that begins at a multiple of kHugePageBytes of its file and of
/// its address. No more than a wish.
void ask_for_huge_pages(std::byte* begin, std::size_t bytes) noexcept;
/// Gives the whole huge pages in a range of such a mapping their memory, where they can be had;
/// where not, ordinary pages or none. For `advise`: posix_fallocate() doesn't see what was asked.
void populate_huge_pages(std::byte* begin, std::size_t bytes) noexcept;

}  // namespace weft
