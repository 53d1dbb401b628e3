#pragma once
/// Waits of threads: the roles of threads that run actors, time limits, and circles of waits.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "transport/actors/actor_table_format.hpp"

namespace weft {

namespace detail {
class ActorHost;
class ActorProcess;
}  // namespace detail

/// The calling thread's role: the actor that it runs, and the waits that it may make.
struct ThreadRole {
  /// True if the thread may wait for answers. A thread that several actors share must not.
  bool may_block = true;
  /// True if the thread may wait until a lane has room.
  bool may_wait_for_room = true;
  std::uint32_t port = 0;                   ///< the thread takes messages from this port; 0: from
                                            ///< none
  std::optional<ActorNumber> actor = {};    ///< the actor whose function the thread runs
  const detail::ActorHost* host = nullptr;  ///< the process to which `port` and `actor` belong

  /// Returns the actor if it belongs to the process `its_host`. An actor of another system may call
  /// that process too; then returns nothing.
  std::optional<ActorNumber> actor_in(const detail::ActorHost& its_host) const {
    return host == &its_host ? actor : std::nullopt;
  }
  static ThreadRole& current() {
    static thread_local ThreadRole role;
    return role;
  }
};

/// Sets the role of this thread until it is destroyed.
class ThreadRoleScope {
 public:
  explicit ThreadRoleScope(ThreadRole role) : before_(std::exchange(ThreadRole::current(), role)) {}
  ~ThreadRoleScope() { ThreadRole::current() = before_; }
  ThreadRoleScope(const ThreadRoleScope&) = delete;
  ThreadRoleScope& operator=(const ThreadRoleScope&) = delete;

 private:
  ThreadRole before_;
};

/// The limit of a send's wait. A number of seconds counts from the first is_over(), so that a send
/// that needn't wait reads no clock.
class SendLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit SendLimit(Clock::time_point deadline) : deadline_(deadline) {}
  explicit SendLimit(double seconds) : seconds_(seconds) {}
  bool is_over() {
    if (!deadline_) deadline_ = deadline_after(seconds_);
    return Clock::now() >= *deadline_;
  }

  /// Returns the time that is `seconds`, but at most three years, after `now`.
  static Clock::time_point deadline_after(double seconds, Clock::time_point now = Clock::now()) {
    constexpr double kLong = 1e8;
    return now + std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::chrono::duration<double>(std::min(seconds, kLong)));
  }

 private:
  double seconds_ = 0;
  std::optional<Clock::time_point> deadline_{};
};

/// Returns the circle of waits that actor `waiter` closes, such as "a[0].f > b[0].g > a[0].h"; ""
/// if there is none. The waiter's row must already have `awaited`, so that the last actor of a
/// circle that begins to wait finds the circle. A circle that an already sent answer will end isn't
/// returned.
std::string circle_of_waits(detail::ActorProcess& process, std::uint32_t waiter,
                            const AwaitedCall& awaited);

}  // namespace weft
