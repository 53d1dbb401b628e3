#include "data/files/work_crew.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace weft {
namespace {

void take_idle_priority() {
  const sched_param none{};
  (void)::sched_setscheduler(0, SCHED_IDLE, &none);  // a failure only slows other work
}

}  // namespace

void Urgency::raise() {
  const std::lock_guard lock(mutex_);
  is_urgent_ = true;
  changed_.notify_all();
}

bool Urgency::is_urgent() const {
  const std::lock_guard lock(mutex_);
  return is_urgent_;
}

void WorkCrew::wait_until_urgent(const bool& is_done) const {
  std::unique_lock lock(urgency_->mutex_);
  urgency_->changed_.wait(lock, [&] { return is_done || urgency_->is_urgent_; });
}

void WorkCrew::each(std::size_t count, const std::function<void(std::size_t)>& work) const {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    bool is_done = false;  // guarded by the urgency's mutex
    std::vector<std::jthread> helpers;
    // If the task becomes urgent, other threads do the remaining work, because a thread can't leave
    // idle priority.
    if (count > 0 && urgency_ != nullptr && !urgency_->is_urgent()) {
      helpers.emplace_back([&] {
        take_idle_priority();
        run();
        const std::lock_guard lock(urgency_->mutex_);
        is_done = true;
        urgency_->changed_.notify_all();
      });
      wait_until_urgent(is_done);
    }
    const std::size_t left = count - std::min(count, next.load());
    const std::size_t threads = std::min(left, static_cast<std::size_t>(std::max(threads_, 1)));
    for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace weft
