#pragma once
/// WorkCrew: runs independent pieces of one task, such as the MiBs of a file, on several threads.

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>

namespace weft {

/// Says whether a task must yield to other work or is urgent. Thread-safe.
class Urgency {
 public:
  explicit Urgency(bool is_urgent) : is_urgent_(is_urgent) {}
  /// Makes the task urgent, because a caller now waits for it.
  void raise();
  bool is_urgent() const;

 private:
  friend class WorkCrew;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_urgent_;
};

class WorkCrew {
 public:
  /// `threads` is the number of threads, including the calling thread. If `urgency` is given, only
  /// a single thread works, at idle priority, until the task becomes urgent.
  explicit WorkCrew(int threads, Urgency* urgency = nullptr)
      : threads_(threads), urgency_(urgency) {}

  /// Calls `work(i)` for each i < count and returns when all calls have ended. The calls begin in
  /// ascending order of i. After an exception no further call begins, and the first exception is
  /// rethrown.
  void each(std::size_t count, const std::function<void(std::size_t)>& work) const;

 private:
  void wait_until_urgent(const bool& is_done) const;

  int threads_;
  Urgency* urgency_;
};

}  // namespace weft
