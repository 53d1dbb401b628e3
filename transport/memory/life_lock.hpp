#pragma once
/// LifeLock: a lock by which other processes see that this process is alive.

#include <cstdint>
#include <optional>

#include "transport/memory/parent_only.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

/// Owns a lock on one byte of a segment's file (an open file description lock). Movable. The kernel
/// releases the lock when the owner is destroyed or its process ends in any way. A forked child
/// doesn't have the lock.
class LifeLock {
 public:
  /// Takes the lock. Returns nothing if another owner has the lock. Throws io if the system
  /// refuses.
  static std::optional<LifeLock> take(const Segment& segment, std::uint32_t byte);

  /// Returns whether any owner has the lock on the byte, without taking the lock. Throws io.
  static bool is_held(const Segment& segment, std::uint32_t byte);

  LifeLock(LifeLock&& other) noexcept;
  LifeLock& operator=(LifeLock&& other) noexcept;
  ~LifeLock();

  /// Returns whether another owner, in any process, has the lock on `byte` of the same segment.
  /// Throws io.
  bool another_holds(std::uint32_t byte) const;

 private:
  explicit LifeLock(int descriptor) : descriptor_(descriptor), own_(descriptor) {}

  int descriptor_;
  ParentOnly own_;
};

}  // namespace weft
