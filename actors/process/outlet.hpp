#pragma once
/// A way out of this program that may be blocked.

#include <string>
#include <string_view>

namespace weft {

/// Text on its way to a file descriptor of this program. Whoever reads that may have stopped (a
/// pager, a stopped terminal), and a write that waits for them would end all supervision: so what
/// can't be written at once is kept, until poll() says that there is room. Used by one thread.
class Outlet {
 public:
  explicit Outlet(int fd) : fd_(fd) {}

  /// Writes as much as there is room for, keeps the rest.
  void write(std::string_view text);
  /// Writes as much of the rest as there is room for.
  void flush();
  /// Gives up the rest.
  void drop() { rest_.clear(); }

  bool empty() const { return rest_.empty(); }
  /// So much is kept that nothing more should be read for it.
  bool full() const;
  int fd() const { return fd_; }

 private:
  int fd_;
  std::string rest_;
};

}  // namespace weft
