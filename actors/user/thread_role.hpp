#pragma once
/// ThreadRole: what the calling thread may do, as a thread that runs actors.

#include <cstdint>
#include <optional>
#include <utility>

namespace weft {

struct ThreadRole {
  /// Whether it may wait for answers. A thread that several actors share may not.
  bool may_block = true;
  /// Whether it may wait until a lane has room.
  bool may_wait_for_room = true;
  std::uint32_t port = 0;                   ///< from which the thread takes messages; 0: none
  std::optional<std::uint32_t> actor = {};  ///< the row of the actor whose function it runs

  static ThreadRole& current() {
    static thread_local ThreadRole role;
    return role;
  }
};

/// Sets the role of this thread while it lives.
class ThreadRoleScope {
 public:
  explicit ThreadRoleScope(ThreadRole role) : before_(std::exchange(ThreadRole::current(), role)) {}
  ~ThreadRoleScope() { ThreadRole::current() = before_; }
  ThreadRoleScope(const ThreadRoleScope&) = delete;
  ThreadRoleScope& operator=(const ThreadRoleScope&) = delete;

 private:
  ThreadRole before_;
};

}  // namespace weft
