#include "actors/simulate/actor_fiber.hpp"

#include <utility>

#include "actors/process/job_thread.hpp"

namespace weft {

ActorFiber::ActorFiber() {
  thread_ = start_job_thread("weft.simulated", [this] { run(); });
}

ActorFiber::~ActorFiber() {
  {
    const std::lock_guard lock(mutex_);
    must_end_ = true;
  }
  changed_.notify_all();
}

void ActorFiber::start(std::function<void()> function) {
  function_ = std::move(function);  // no lock is needed: the fiber's thread waits
  resume();
}

void ActorFiber::resume() {
  std::unique_lock lock(mutex_);
  is_its_turn_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !is_its_turn_; });
}

void ActorFiber::pause() {
  std::unique_lock lock(mutex_);
  is_its_turn_ = false;
  changed_.notify_all();
  changed_.wait(lock, [this] { return is_its_turn_; });
}

void ActorFiber::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_its_turn_ || must_end_; });
      if (!is_its_turn_) return;
    }
    function_();
    function_ = nullptr;
    const std::lock_guard lock(mutex_);
    is_its_turn_ = false;
    changed_.notify_all();
  }
}

}  // namespace weft
