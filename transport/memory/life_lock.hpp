#pragma once
/// LifeLock: shows other processes that this process is alive. The kernel guarantees it.

#include <cstdint>
#include <optional>

#include "transport/memory/parent_only.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

/// Movable owner of a lock on one byte of a segment's file (an open file description lock). The
/// kernel releases the lock when the owner is destroyed or its process ends, however it ends. A
/// child forked from the process doesn't hold it.
class LifeLock {
 public:
  /// Takes the lock. Absent if another owner holds the byte. Throws io if the system refuses.
  static std::optional<LifeLock> take(const Segment& segment, std::uint32_t byte);

  /// Returns whether any owner holds the byte, without taking it. Throws io.
  static bool is_held(const Segment& segment, std::uint32_t byte);

  LifeLock(LifeLock&& other) noexcept;
  LifeLock& operator=(LifeLock&& other) noexcept;
  ~LifeLock();

  /// Returns whether another owner holds the byte of the same segment, in this process or another.
  /// Throws io.
  bool another_holds(std::uint32_t byte) const;

 private:
  explicit LifeLock(int descriptor) : descriptor_(descriptor), own_(descriptor) {}

  int descriptor_;
  ParentOnly own_;
};

}  // namespace weft
