#include "actors/user/replies.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"
#include "actors/user/waits.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

Replies::Replies(const PeerTable& table, LaneNode& node, Hooks hooks)
    : table_(&table), node_(&node), port_(&node.port(kReplyPort)), hooks_(std::move(hooks)) {
  port_->listen();
}

Replies::~Replies() { stop(); }

void Replies::start() {
  thread_ = start_job_thread("weft.replies", [this] { run(); });
}

void Replies::stop() {
  must_stop_.store(true);
  kick();
  if (thread_.joinable()) thread_.join();
  run_ready();
}

bool Replies::try_lead() {
  if (!lead_.try_lock()) return false;
  is_led_.store(true, std::memory_order_seq_cst);
  port_->attend();
  return true;
}

/// Ends the leading of this thread. Another waiting thread then leads, or weft.replies if a
/// callback waits.
void Replies::leave() {
  const bool is_watched = watch_count_.load(std::memory_order_seq_cst) > 0;
  if (is_watched) port_->listen();
  const bool must_kick = is_watched && port_->has_news();
  is_led_.store(false, std::memory_order_seq_cst);
  lead_.unlock();
  // A callback that was added meanwhile saw that a thread leads, so nobody listens for its answer
  // yet.
  if (must_kick || (!is_watched && watch_count_.load(std::memory_order_seq_cst) > 0)) kick();
  if (follower_count_.load(std::memory_order_seq_cst) == 0) return;
  const std::lock_guard lock(mutex_);
  if (!followers_.empty()) followers_.front()->poke();
}

void Replies::look() {
  if (!try_lead()) return;
  while (take_one()) {
  }
  leave();
}

void Replies::watch(int more_callbacks) noexcept {
  watch_count_.fetch_add(more_callbacks, std::memory_order_seq_cst);
  if (more_callbacks > 0) kick();
}

void Replies::settle() {
  const std::uint32_t deaths = table_->deaths();
  if (deaths == deaths_) return;
  node_->settle(kReplyPort, hooks_.on_message);
  deaths_ = deaths;
  hooks_.on_deaths();
}

bool Replies::take_one() {
  settle();
  try {
    std::optional<InMessage> message = port_->take();
    if (!message) return false;
    hooks_.on_message(std::move(*message));
  } catch (const Error& error) {
    logger("weft.worker")->warn("actors: a message was dropped: {}", error.what());
  }
  return true;
}

void Replies::lead(const ActorCall& call, Clock::time_point time) {
  while (!call.is_done()) {
    if (take_one()) continue;
    const Clock::time_point now = Clock::now();
    if (now >= time) break;
    port_->wait(hooks_.spins(), std::min<std::chrono::nanoseconds>(time - now, kSleepSlice));
  }
}

void Replies::follow(ActorCall& call, std::chrono::nanoseconds at_most) {
  {
    const std::lock_guard lock(mutex_);
    followers_.push_back(&call);
  }
  follower_count_.fetch_add(1, std::memory_order_seq_cst);
  if (is_led_.load(std::memory_order_seq_cst)) call.sleep(at_most);
  follower_count_.fetch_sub(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  std::erase(followers_, &call);
}

bool Replies::wait(ActorCall& call, Clock::time_point time) {
  while (!call.is_done()) {
    const Clock::time_point now = Clock::now();
    if (now >= time) {
      look();
      return call.is_done();
    }
    if (try_lead()) {
      lead(call, time);
      leave();
    } else {
      follow(call, std::min<std::chrono::nanoseconds>(time - now, kSleepSlice));
    }
  }
  return true;
}

void Replies::post(std::function<void()> done, bool is_the_programs) {
  {
    const std::lock_guard lock(mutex_);
    if (is_the_programs && ready_fd_) {
      ready_.push_back(std::move(done));
      ready_fd_->wake();
      return;
    }
    callbacks_.push_back(std::move(done));
  }
  kick();
}

int Replies::ready_fd() {
  const std::lock_guard lock(mutex_);
  if (!ready_fd_) ready_fd_.emplace();
  return ready_fd_->fd();
}

int Replies::run_ready() {
  const int count = run_all(ready_);
  const std::lock_guard lock(mutex_);
  if (ready_fd_ && ready_.empty()) ready_fd_->clear();
  return count;
}

int Replies::run_all(Callbacks& callbacks) {
  const ThreadRoleScope role({.may_block = false, .may_wait_for_room = false});
  for (int count = 0;;) {
    Callbacks now;
    {
      const std::lock_guard lock(mutex_);
      now.swap(callbacks);
    }
    if (now.empty()) return count;
    for (const std::function<void()>& each : now) {
      ++count;
      try {
        each();
      } catch (const std::exception& error) {
        logger("weft.worker")->error("actors: a callback of then() threw: {}", error.what());
      }
    }
  }
}

void Replies::run() {
  while (!must_stop_.load()) {
    const std::uint32_t seen = port_->rings();
    look();
    run_all(callbacks_);
    const Clock::time_point due = hooks_.on_time();
    const Clock::time_point now = Clock::now();
    if (due > now) {
      port_->sleep(seen, std::min<std::chrono::nanoseconds>(due - now, std::chrono::seconds(1)));
    }
  }
  run_all(callbacks_);
}

}  // namespace weft
