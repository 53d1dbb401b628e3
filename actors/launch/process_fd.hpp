#pragma once
/// ProcessFd: notices the end of a process, which needn't be a child of this one.

#include <sys/types.h>

#include <utility>

namespace weft {

/// Owns a pidfd, which becomes readable when the process ends.
class ProcessFd {
 public:
  /// If the process doesn't exist, or the system refuses, fd() is -1.
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
