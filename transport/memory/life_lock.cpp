#include "transport/memory/life_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

struct flock lock_of(std::uint32_t byte) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

/// Opens the segment's file again, because a lock belongs to an open file description, and dup()
/// doesn't make a new one. Opens it by its path in /proc, which works even if the file's name was
/// removed or reused.
int open_again(const Segment& segment) {
  const std::string path = fmt::format("/proc/self/fd/{}", segment.descriptor());
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    fail(Errc::io, "segment '{}' can't be opened again for a lock ({}): {}", segment.name(), path,
         std::strerror(errno));
  }
  return descriptor;
}

}  // namespace

std::optional<LifeLock> LifeLock::take(const Segment& segment, std::uint32_t byte) {
  LifeLock lock(open_again(segment));
  struct flock wanted = lock_of(byte);
  if (fcntl(lock.descriptor_, F_OFD_SETLK, &wanted) == 0) return lock;
  if (errno == EAGAIN || errno == EACCES) return std::nullopt;
  fail(Errc::io, "byte {} of segment '{}' can't be locked: {}", byte, segment.name(),
       std::strerror(errno));
}

LifeLock::LifeLock(LifeLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), own_(std::move(other.own_)) {}

LifeLock& LifeLock::operator=(LifeLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(own_, other.own_);
  return *this;
}

LifeLock::~LifeLock() {
  own_ = {};
  if (descriptor_ >= 0) close(descriptor_);
}

bool LifeLock::is_held(const Segment& segment, std::uint32_t byte) {
  return LifeLock(open_again(segment)).another_holds(byte);
}

bool LifeLock::another_holds(std::uint32_t byte) const {
  struct flock lock = lock_of(byte);
  if (fcntl(descriptor_, F_OFD_GETLK, &lock) != 0) {
    fail(Errc::io, "byte {} of a segment can't be tested for a lock: {}", byte,
         std::strerror(errno));
  }
  return lock.l_type != F_UNLCK;
}

}  // namespace weft
