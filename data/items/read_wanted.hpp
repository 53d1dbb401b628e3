#pragma once
/// ReadWanted: tells a dataset whether the item that this thread reads is still wanted.

#include <atomic>
#include <utility>

namespace weft {

/// During its lifetime, items that this thread reads are wanted as long as `is_unwanted` is false.
/// A dataset that waits for items from elsewhere checks this while it waits.
class ReadWanted {
 public:
  explicit ReadWanted(const std::atomic<bool>& is_unwanted)
      : before_(std::exchange(current_, &is_unwanted)) {}
  ~ReadWanted() { current_ = before_; }
  ReadWanted(const ReadWanted&) = delete;
  ReadWanted& operator=(const ReadWanted&) = delete;

  static bool is_wanted() {
    return current_ == nullptr || !current_->load(std::memory_order_relaxed);
  }

 private:
  static inline thread_local const std::atomic<bool>* current_ = nullptr;
  const std::atomic<bool>* before_;
};

}  // namespace weft
