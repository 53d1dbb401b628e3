#pragma once
/// Wakes a thread that sleeps in poll(), and passes values to it from other threads.

#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace weft {

/// A file descriptor that becomes readable by wake(). Thread-safe and signal-safe.
class WakeFd {
 public:
  WakeFd();
  ~WakeFd();
  WakeFd(const WakeFd&) = delete;
  WakeFd& operator=(const WakeFd&) = delete;

  int fd() const { return fd_; }
  void wake() const noexcept;
  void clear() const noexcept;

 private:
  int fd_;
};

/// An unbounded queue. Any thread may push; one thread pops.
template <typename T>
class WakeQueue {
 public:
  int fd() const { return wake_.fd(); }
  void push(T value) {
    {
      const std::lock_guard lock(mutex_);
      values_.push_back(std::move(value));
    }
    wake_.wake();
  }
  /// Returns the next value. If the queue is empty, returns nothing, and fd() becomes readable only
  /// after the next push.
  std::optional<T> pop() {
    const std::lock_guard lock(mutex_);
    if (values_.empty()) {
      wake_.clear();
      return {};
    }
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

 private:
  WakeFd wake_;
  std::mutex mutex_;
  std::deque<T> values_;
};

}  // namespace weft
