#pragma once
/// Waits of threads: their roles among the threads that run actors, limits, and circles.

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

/// The role of the calling thread.
struct ThreadRole {
  /// Whether it may wait for answers. A thread that several actors share may not.
  bool may_block = true;
  /// Whether it may wait until a lane has room.
  bool may_wait_for_room = true;
  std::uint32_t port = 0;                   ///< from which the thread takes messages; 0: none
  std::optional<ActorNumber> actor = {};    ///< whose function the thread runs
  const detail::ActorHost* host = nullptr;  ///< the process of `port` and `actor` in its system

  /// Returns the actor if it belongs to this process of a system. An actor of another system may
  /// call this one, too.
  std::optional<ActorNumber> actor_in(const detail::ActorHost& its_host) const {
    return host == &its_host ? actor : std::nullopt;
  }
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

/// The limit of a send's wait. The time of a number of seconds begins with the first is_over(), so
/// that a send that needn't wait reads no clock.
class SendLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit SendLimit(Clock::time_point deadline) : deadline_(deadline) {}
  explicit SendLimit(double seconds) : seconds_(seconds) {}
  bool is_over() {
    if (!deadline_) deadline_ = deadline_after(seconds_);
    return Clock::now() >= *deadline_;
  }

  /// Returns the time so many seconds after `now`; after three years at most.
  static Clock::time_point deadline_after(double seconds, Clock::time_point now = Clock::now()) {
    constexpr double kLong = 1e8;
    return now + std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::chrono::duration<double>(std::min(seconds, kLong)));
  }

 private:
  double seconds_ = 0;
  std::optional<Clock::time_point> deadline_{};
};

/// Returns the circle of waits that ends at actor `waiter`, such as "a[0].f > b[0].g > a[0].h". ""
/// if there is none. The waiter's row must have `awaited` already, so that of the actors of a
/// circle the last one that begins to wait finds it. Never finds a circle that an answer which is
/// under way will end.
std::string circle_of_waits(detail::ActorProcess& process, std::uint32_t waiter,
                            const AwaitedCall& awaited);

}  // namespace weft
