#include "actors/device/device_link.hpp"

namespace weft {

void DeviceProgress::complete(std::uint64_t run) {
  completed_.store(run, std::memory_order_release);
  completed_.notify_all();
}

void DeviceProgress::fail(std::exception_ptr failure, std::uint64_t step) {
  failure_ = failure;
  completed_.store(kFailed, std::memory_order_release);
  completed_.notify_all();
  on_failure_(std::move(failure), step);
}

void DeviceProgress::wait(std::uint64_t run) const {
  for (;;) {
    const std::uint64_t completed = completed_.load(std::memory_order_acquire);
    if (completed == kFailed) std::rethrow_exception(failure_);
    if (completed >= run) return;
    completed_.wait(completed, std::memory_order_acquire);
  }
}

void DeviceProgress::record(double ran, double idle) {
  const std::scoped_lock lock(times_mutex_);
  times_.ran.add(ran);
  times_.idle.add(idle);
}

DeviceProgress::Times DeviceProgress::times() const {
  const std::scoped_lock lock(times_mutex_);
  return times_;
}

}  // namespace weft
