#pragma once
/// TermWatch: handles SIGTERM in a worker. Platforms send this signal to take a machine back, and
/// the trainer must be told.

#include <functional>
#include <thread>

namespace weft {

/// During its lifetime, SIGTERM calls `on_term` on a separate thread, unless the program already
/// has its own handler. A process may have one TermWatch at a time.
class TermWatch {
 public:
  explicit TermWatch(std::function<void()> on_term);
  ~TermWatch();
  TermWatch(const TermWatch&) = delete;
  TermWatch& operator=(const TermWatch&) = delete;

 private:
  std::jthread thread_;
};

}  // namespace weft
