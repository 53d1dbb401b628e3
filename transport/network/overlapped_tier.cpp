#include "transport/network/overlapped_tier.hpp"

#include <pthread.h>

#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {

OverlappedTier::OverlappedTier(std::unique_ptr<NetworkTier> tier, const Recorder& recorder)
    : recorder_(recorder), tier_(std::move(tier)) {}

OverlappedTier::~OverlappedTier() = default;

std::unique_ptr<const TierCall> OverlappedTier::prepare(const CollectiveCall& call) {
  return tier_->prepare(call);  // any thread may call it: it reads only constant data
}

void OverlappedTier::start(const StartedCall& started, const TierCall& call) {
  {
    const std::scoped_lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    started_ = queue_.empty() ? 0 : push(started, call);
  }
  if (started_ == 0) tier_->start(started, call);
}

bool OverlappedTier::poll() {
  if (started_ != 0) return has_ended(started_);
  if (!tier_->poll()) return false;
  arrival_ = tier_->arrival();
  return true;
}

void OverlappedTier::wait() {
  if (started_ != 0) return await(started_);
  tier_->wait();
  arrival_ = tier_->arrival();
}

bool OverlappedTier::begin(const StartedCall& started, const TierCall& call) {
  const std::scoped_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  begun_.push_back(push(started, call));
  return true;
}

bool OverlappedTier::poll_begun() {
  if (!has_ended(begun_.front())) return false;
  begun_.pop_front();
  return true;
}

void OverlappedTier::wait_begun() {
  await(begun_.front());
  begun_.pop_front();
}

void OverlappedTier::check_begun() {
  const std::scoped_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void OverlappedTier::abandon() noexcept {
  begun_.clear();
  {
    const std::scoped_lock lock(mutex_);
    if (queue_.empty()) return;
  }
  thread_ = {};
  if (failure_) return;
  failure_ = std::make_exception_ptr(
      Error(Errc::peer_lost, "this chip's run failed while collectives between hosts ran"));
}

/// Adds a collective to the queue, and returns its place. The mutex must be locked.
std::uint64_t OverlappedTier::push(const StartedCall& started, const TierCall& call) {
  queue_.push_back({&started, &call});
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    ::pthread_setname_np(thread_.native_handle(), "wires");
  }
  work_.notify_one();
  return ++pushed_;
}

void OverlappedTier::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  // While the queue isn't empty, wait() returns true, even after a stop was requested.
  while (work_.wait(lock, stop, [this] { return !queue_.empty(); }) && !stop.stop_requested()) {
    const Queued next = queue_.front();
    lock.unlock();
    std::exception_ptr failure;
    bool has_ended = false;
    try {
      has_ended = carry_out(next, stop);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) failure_ = failure;
    if (has_ended) {
      queue_.pop_front();
      ++ended_;
    }
    progress_.notify_all();
    if (!has_ended) return;
  }
}

/// Carries out a queued collective. Returns false if the thread shall end.
bool OverlappedTier::carry_out(const Queued& next, const std::stop_token& stop) {
  tier_->start(*next.started, *next.call);
  const bool has_ended = tier_->wait_beside([&](int chip) {
    awaited_.store(chip, std::memory_order_relaxed);
    return !stop.stop_requested();
  });
  awaited_.store(-1, std::memory_order_relaxed);
  return has_ended;
}

bool OverlappedTier::has_ended(std::uint64_t place) {
  const std::scoped_lock lock(mutex_);
  if (ended_ >= place) {
    arrival_ = {};
    return true;
  }
  if (failure_) std::rethrow_exception(failure_);
  return false;
}

/// Waits until the thread has carried out the collective with this place in the queue. The chip's
/// wait is recorded as a wait for the chip that the thread awaited last.
void OverlappedTier::await(std::uint64_t place) {
  arrival_ = {};
  const std::uint64_t begin = recorder_.events.is_on() ? recorder_.events.now() : 0;
  std::unique_lock lock(mutex_);
  while (ended_ < place && !failure_) {
    const int chip = awaited_.load(std::memory_order_relaxed);
    if (chip >= 0) {
      recorder_.board.waiting_for(chip);
      arrival_.last_chip = chip;
    }
    progress_.wait_for(lock, kSleepSlice);
  }
  if (ended_ < place) std::rethrow_exception(failure_);
  if (begin != 0 && arrival_.last_chip >= 0) arrival_.waited = recorder_.events.now() - begin;
}

}  // namespace weft
