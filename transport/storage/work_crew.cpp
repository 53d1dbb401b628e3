#include "transport/storage/work_crew.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace weft {

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
    std::vector<std::jthread> helpers;
    const std::size_t helpers_wanted =
        std::min(count, static_cast<std::size_t>(std::max(threads_, 1))) - (count > 0 ? 1 : 0);
    while (helpers.size() < helpers_wanted) helpers.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace weft
