#pragma once
/// ParentOnly: keeps a descriptor from forked children. With the descriptor, a child that outlives
/// this process would keep the locks and the memory of a job to which the child doesn't belong.

#include <utility>

namespace weft {

/// During its lifetime, children that this process forks have /dev/null in place of the descriptor.
/// (A child that calls exec() gets no descriptors of weft anyway.) Movable. Doesn't own the
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
