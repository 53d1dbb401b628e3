#pragma once
/// Wakes a thread that sleeps in poll(), and passes values to it from other threads.

#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace weft {

/// A file descriptor that is readable once wake() was called. Thread- and signal-safe.
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

/// Unbounded; any thread pushes, one pops.
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
  /// Absent if empty; fd() becomes readable again only after the next push.
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
