#pragma once
/// ActorFiber: a thread that runs only while another thread waits for it.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace weft {

/// So a function can stop in the middle, and continue later. One thread uses it, which is called
/// the owner.
class ActorFiber {
 public:
  ActorFiber();
  /// No function may be running.
  ~ActorFiber();
  ActorFiber(const ActorFiber&) = delete;
  ActorFiber& operator=(const ActorFiber&) = delete;

  /// Runs the function, which mustn't throw, until it returns or pauses. No other may be running.
  void start(std::function<void()> function);
  /// Lets the function that has paused continue until it returns or pauses again.
  void resume();
  /// To be called by the function.
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
  std::function<void()> function_;  ///< belongs to whoever has the turn
  std::jthread thread_;
};

}  // namespace weft
