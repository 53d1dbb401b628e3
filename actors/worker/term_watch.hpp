#pragma once
/// SIGTERM to a worker: the platform wants the machine back, and the job has to know.

#include <functional>
#include <thread>

namespace weft {

/// While it lives, SIGTERM calls `on_term` on a thread of its own, where the program hasn't a
/// handler of its own before. One per process at a time.
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
