#include "transport/memory/parent_only.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <set>

namespace weft {
namespace {

struct Hidden {
  std::mutex mutex;
  std::set<int> descriptors;  ///< guarded by mutex
};

/// Replaces the descriptors by /dev/null in a forked child, where only functions that are safe in a
/// signal handler may be called. Doesn't close the descriptors, because their owners may still do
/// that.
void hide(const std::set<int>& descriptors) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int descriptor : descriptors) {
    if (null >= 0) {
      ::dup3(null, descriptor, O_CLOEXEC);
    } else {
      ::close(descriptor);
    }
  }
  if (null >= 0) ::close(null);
}

/// Returns the hidden descriptors. The object is never destroyed, because children may be forked
/// while static objects are destroyed.
Hidden& hidden() {
  static Hidden* const all = [] {
    ::pthread_atfork([] { hidden().mutex.lock(); }, [] { hidden().mutex.unlock(); },
                     [] {
                       hide(hidden().descriptors);
                       hidden().mutex.unlock();
                     });
    return new Hidden;
  }();
  return *all;
}

}  // namespace

ParentOnly::ParentOnly(int descriptor) : descriptor_(descriptor) {
  Hidden& all = hidden();
  const std::lock_guard lock(all.mutex);
  all.descriptors.insert(descriptor);
}

ParentOnly::~ParentOnly() {
  if (descriptor_ < 0) return;
  Hidden& all = hidden();
  const std::lock_guard lock(all.mutex);
  all.descriptors.erase(descriptor_);
}

}  // namespace weft
