#pragma once
/// Outlet: writes to a descriptor of this program without blocking.

#include <string>
#include <string_view>

namespace weft {

/// Text on its way to a file descriptor of this program. The reader of the descriptor may have
/// stopped (a pager, a stopped terminal), and a blocking write would then stop all supervision.
/// Text that can't be written at once is therefore buffered until poll() reports room. Only one
/// thread may use it.
class Outlet {
 public:
  explicit Outlet(int fd) : fd_(fd) {}

  /// Writes as much as there is room for and buffers the rest.
  void write(std::string_view text);
  /// Writes as much of the buffer as there is room for.
  void flush();
  /// Drops the buffer.
  void drop() { rest_.clear(); }

  bool empty() const { return rest_.empty(); }
  /// Returns whether the buffer is so full that no more input for it should be read.
  bool full() const;
  int fd() const { return fd_; }

 private:
  int fd_;
  std::string rest_;
};

}  // namespace weft
