#include "actors/launch/process_fd.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace weft {

ProcessFd::ProcessFd(pid_t pid) noexcept
    : fd_(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1) {}

ProcessFd::~ProcessFd() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace weft
