#pragma once
/// ProcessFd: sees the end of a process that needn't be a child of this one.

#include <sys/types.h>

#include <utility>

namespace weft {

/// Owns a pidfd, which is readable once the process has ended. Movable.
class ProcessFd {
 public:
  /// If there is no such process, or the system refuses, fd() is -1.
  explicit ProcessFd(pid_t pid) noexcept;
  ProcessFd(ProcessFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ProcessFd& operator=(ProcessFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~ProcessFd();

  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace weft
