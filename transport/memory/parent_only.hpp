#pragma once
/// ParentOnly: a descriptor that a forked child doesn't get. Otherwise a child that lives longer
/// would hold the locks and the memory of a job to which it doesn't belong.

#include <utility>

namespace weft {

/// While it lives, a child that this process forks has /dev/null in place of the descriptor. (A
/// child that calls exec gets none of weft's descriptors anyway.) Movable. It doesn't own the
/// descriptor, and must be destroyed before the descriptor is closed. Thread-safe.
class ParentOnly {
 public:
  ParentOnly() = default;  ///< hides no descriptor
  explicit ParentOnly(int descriptor);
  ParentOnly(ParentOnly&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ParentOnly& operator=(ParentOnly&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~ParentOnly();

 private:
  int descriptor_ = -1;
};

}  // namespace weft
