#pragma once
/// WorkCrew: the threads that do independent pieces of one task, such as the MiBs of a file.

#include <cstddef>
#include <functional>

namespace weft {

class WorkCrew {
 public:
  /// The calling thread is one of `threads`.
  explicit WorkCrew(int threads) : threads_(threads) {}

  /// Calls `work(i)` for each i < count, in ascending order of their beginnings, and returns when
  /// all have ended. After an exception no further piece begins; the first one is rethrown.
  void each(std::size_t count, const std::function<void(std::size_t)>& work) const;

 private:
  int threads_;
};

}  // namespace weft
