#pragma once
/// Outlet: writes to a descriptor of this program without blocking.

#include <string>
#include <string_view>

namespace weft {

/// Text on its way to a file descriptor of this program. If the descriptor's reader stops (a pager,
/// a stopped terminal), a blocking write would stop all supervision. Therefore text that can't be
/// written at once is buffered until poll() reports room. Only one thread may use it.
class Outlet {
 public:
  explicit Outlet(int fd) : fd_(fd) {}

  /// Writes as much text as there is room for, and buffers the rest.
  void write(std::string_view text);
  /// Writes as much buffered text as there is room for.
  void flush();
  /// Drops the buffer.
  void drop() { rest_.clear(); }

  bool empty() const { return rest_.empty(); }
  /// Returns whether the buffer is so full that no more text should be read for it.
  bool full() const;
  int fd() const { return fd_; }

 private:
  int fd_;
  std::string rest_;
};

}  // namespace weft
