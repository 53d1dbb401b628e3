#pragma once
/// TermWatch: handles SIGTERM in a worker, because the trainer must be told of it. Platforms send
/// this signal when they take a machine back.

#include <functional>
#include <thread>

namespace weft {

/// While it lives, SIGTERM calls `on_term` on a separate thread, unless the program has its own
/// handler. A process may have one TermWatch at a time.
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
