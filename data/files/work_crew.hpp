#pragma once
/// WorkCrew: the threads that do independent pieces of one task, such as the MiBs of a file.

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>

namespace weft {

/// Of a task: whether other work goes before it. Thread-safe.
class Urgency {
 public:
  explicit Urgency(bool is_urgent) : is_urgent_(is_urgent) {}
  /// From now on somebody waits for the task.
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
  /// The calling thread is one of `threads`. As long as `urgency` isn't urgent, a single thread
  /// works in their place, at idle priority.
  explicit WorkCrew(int threads, Urgency* urgency = nullptr)
      : threads_(threads), urgency_(urgency) {}

  /// Calls `work(i)` for each i < count, in ascending order of their beginnings, and returns when
  /// all have ended. After an exception no further piece begins; the first one is rethrown.
  void each(std::size_t count, const std::function<void(std::size_t)>& work) const;

 private:
  void wait_until_urgent(const bool& is_done) const;

  int threads_;
  Urgency* urgency_;
};

}  // namespace weft
