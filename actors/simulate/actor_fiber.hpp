#pragma once
/// ActorFiber: a thread that runs only while another thread waits for it.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace weft {

/// Lets a function stop in the middle and continue later. The fiber's owner is the thread that
/// calls its functions.
class ActorFiber {
 public:
  ActorFiber();
  /// No function may be running when the fiber is destroyed.
  ~ActorFiber();
  ActorFiber(const ActorFiber&) = delete;
  ActorFiber& operator=(const ActorFiber&) = delete;

  /// Runs the function until it returns or pauses. It must not throw. No other function may be
  /// running.
  void start(std::function<void()> function);
  /// Continues the paused function until it returns or pauses again.
  void resume();
  /// Called by the function: lets the owner continue.
  void pause();
  /// Returns whether a function has begun and hasn't returned.
  bool is_running() const { return static_cast<bool>(function_); }
  std::thread::id thread() const { return thread_.get_id(); }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_its_turn_ = false;        // guarded by mutex_
  bool must_end_ = false;           // guarded by mutex_
  std::function<void()> function_;  ///< the owner and the thread use it in turn
  std::jthread thread_;
};

}  // namespace weft
