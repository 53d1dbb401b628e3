#include "actors/process/surroundings.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// The smallest stack that is accepted. Kernels and libraries' threads have used less than half of
/// it.
constexpr std::size_t kStackBytesMin = std::size_t{512} << 10;

/// Returns the size of the first thread's stack or of a new thread's stack, whichever is smaller.
std::size_t smallest_stack() {
  std::size_t bytes = kStackBytesMin;
  pthread_attr_t defaults;
  if (::pthread_getattr_default_np(&defaults) == 0) {
    std::size_t of_threads = 0;
    if (::pthread_attr_getstacksize(&defaults, &of_threads) == 0) {
      bytes = std::min(bytes, of_threads);
    }
    ::pthread_attr_destroy(&defaults);
  }
  rlimit of_first{};
  if (::getrlimit(RLIMIT_STACK, &of_first) == 0) {
    bytes = std::min<std::size_t>(bytes, of_first.rlim_cur);
  }
  return bytes;
}

}  // namespace

void require_surroundings(const std::string& site) {
  if (const std::size_t bytes = smallest_stack(); bytes < kStackBytesMin) {
    fail(Errc::unavailable,
         "fit() at {}: a thread's stack has {} KiB (ulimit -s): expected at least {}; raise it in "
         "the shell that starts the program: ulimit -s 8192",
         site, bytes >> 10, kStackBytesMin >> 10);
  }
  std::array<char, 1> target;
  if (::readlink("/proc/self/exe", target.data(), target.size()) < 0) {
    fail(Errc::unavailable,
         "fit() at {}: /proc/self/exe can't be read: weft finds its program, its threads and its "
         "locks in /proc; mount it: mount -t proc proc /proc",
         site);
  }
}

}  // namespace weft
