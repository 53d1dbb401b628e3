#pragma once
/// Replies: takes the messages at port 0 of a process, which are the answers to its calls.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "actors/process/wake_queue.hpp"
#include "actors/user/calls.hpp"
#include "transport/lanes/lane_node.hpp"
#include "transport/lanes/peer_table.hpp"

namespace weft {

/// A thread that waits for an answer takes messages itself: it leads. While no thread leads, the
/// thread `weft.replies` takes them: at once if a callback waits for an answer, otherwise when a
/// sender rings or a second has passed. So an answer to a waiting thread needn't wake another
/// thread. weft.replies also runs callbacks and everything that is due at a time. Thread-safe.
class Replies {
 public:
  using Clock = ActorCall::Clock;
  struct Hooks {
    /// Called by the thread that leads. Must not wait.
    std::function<void(InMessage)> on_message{};
    /// Called by the thread that leads when processes have died and their last messages were
    /// handled.
    std::function<void()> on_deaths{};
    /// Called by `weft.replies` after each kick(), and at the time that the last call returned.
    std::function<Clock::time_point()> on_time{};
    /// Returns how often a thread looks for an answer before it sleeps.
    std::function<int()> spins{};
  };

  Replies(const PeerTable& table, LaneNode& node, Hooks hooks);
  ~Replies();
  Replies(const Replies&) = delete;
  Replies& operator=(const Replies&) = delete;

  void start();
  /// Runs the callbacks that are due, then ends the thread `weft.replies`. The destructor calls it.
  void stop();
  /// Waits until the call has ended or `time` has come. Returns whether the call has ended.
  bool wait(ActorCall& call, Clock::time_point time);
  /// Takes the messages that have arrived, unless another thread takes them.
  void look();
  void kick() noexcept { port_->wake(); }
  /// Changes the number of callbacks that wait for an answer.
  void watch(int more_callbacks) noexcept;
  /// Runs `done` on the thread `weft.replies`; or in run_ready() if the program made the call and
  /// has called ready_fd().
  void post(std::function<void()> done, bool is_the_programs);
  /// Returns a descriptor that is readable while callbacks wait for run_ready(). Thread-safe.
  int ready_fd();
  /// Runs the program's callbacks on this thread. Returns their number.
  int run_ready();

 private:
  bool try_lead();
  void leave();
  void lead(const ActorCall& call, Clock::time_point time);
  bool take_one();
  void settle();
  void follow(ActorCall& call, std::chrono::nanoseconds at_most);
  void run();
  using Callbacks = std::vector<std::function<void()>>;
  int run_all(Callbacks& callbacks);

  const PeerTable* table_;
  LaneNode* node_;
  LanePort* port_;
  Hooks hooks_;
  std::mutex lead_;
  std::uint32_t deaths_ = 0;  // guarded by lead_
  std::mutex mutex_;
  std::vector<ActorCall*> followers_;  // guarded by mutex_
  Callbacks callbacks_;                // for weft.replies; guarded by mutex_
  Callbacks ready_;                    // for run_ready(); guarded by mutex_
  std::optional<WakeFd> ready_fd_;     // made under mutex_
  std::atomic<int> follower_count_{0};
  std::atomic<int> watch_count_{0};
  std::atomic<bool> is_led_{false};
  std::atomic<bool> must_stop_{false};
  std::jthread thread_;
};

}  // namespace weft
