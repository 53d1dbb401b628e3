#include "transport/memory/huge_pages.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string_view>

namespace weft {
namespace {

// MADV_POPULATE_WRITE, which madvise() has since Linux 5.14. Older kernels refuse it; the memory
// then gets small pages.
constexpr int kPopulateWrite = 23;

constexpr char kNever[] = "never";

}  // namespace

std::string huge_pages_of_shm() {
  // A line of this file is "36 35 98:0 /root /dev/shm rw,noatime shared:1 - tmpfs tmpfs
  // rw,size=8k,huge=advise". If several mounts are at /dev/shm, the last one counts.
  std::string policy = kNever;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string word;
    for (int i = 0; i < 5; ++i) words >> word;
    if (word != "/dev/shm") continue;
    policy = kNever;
    constexpr std::string_view kOption = ",huge=";
    const std::size_t option = line.rfind(kOption);
    if (option == std::string::npos) continue;
    const std::size_t begin = option + kOption.size();
    policy = line.substr(begin, line.find(',', begin) - begin);
  }
  return policy;
}

std::string huge_pages_of_anonymous() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string line;
  std::getline(file, line);  // "always within_size advise [never] deny force"
  const std::size_t begin = line.find('[');
  const std::size_t end = line.find(']');
  return end == std::string::npos ? kNever : line.substr(begin + 1, end - begin - 1);
}

void ask_for_huge_pages(std::byte* begin, std::size_t bytes) noexcept {
  madvise(begin, bytes, MADV_HUGEPAGE);
}

void populate_huge_pages(std::byte* begin, std::size_t bytes) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t before = (kHugePageBytes - address % kHugePageBytes) % kHugePageBytes;
  if (bytes < before + kHugePageBytes) return;
  const std::size_t whole = (bytes - before) / kHugePageBytes * kHugePageBytes;
  madvise(begin + before, whole, kPopulateWrite);
}

}  // namespace weft
