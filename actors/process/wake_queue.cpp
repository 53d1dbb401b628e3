#include "actors/process/wake_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <weft/tensor/error.hpp>

namespace weft {

WakeFd::WakeFd() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ < 0) fail(Errc::io, "eventfd: {}", std::strerror(errno));
}

WakeFd::~WakeFd() { ::close(fd_); }

void WakeFd::wake() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
}

void WakeFd::clear() const noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd_, &count, sizeof count);
}

}  // namespace weft
