#include "actors/user/calls.hpp"

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/memory/wait.hpp"

namespace weft {

void ActorCall::when_done(std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_done()) {
      callbacks_.push_back(std::move(done));
      host_->watch(1);
      return;
    }
  }
  host_->post(std::move(done), what.op == ActorOp::call);
}

void ActorCall::cancel() {
  host_->end(*this, {.error = Error(Errc::cancelled, "the call was cancelled")});
}

void ActorCall::cancel_on(const std::stop_token& stop) {
  if (stop.stop_possible()) on_stop_.emplace(stop, CancelIt{this});
}

bool ActorCall::finish(detail::Answer answer) {
  std::vector<std::function<void()>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    if (is_done()) return false;
    answer_ = std::move(answer);
    callbacks.swap(callbacks_);
    is_done_.store(true, std::memory_order_seq_cst);
  }
  if (is_awaited_.load(std::memory_order_seq_cst)) poke();
  if (callbacks.empty()) return true;
  host_->watch(-static_cast<int>(callbacks.size()));
  for (std::function<void()>& each : callbacks)
    host_->post(std::move(each), what.op == ActorOp::call);
  return true;
}

void ActorCall::sleep(std::chrono::nanoseconds at_most) {
  const std::uint32_t seen = pokes_.load(std::memory_order_seq_cst);
  is_awaited_.store(true, std::memory_order_seq_cst);
  if (!is_done_.load(std::memory_order_seq_cst)) sleep_on(pokes_, seen, at_most);
  is_awaited_.store(false, std::memory_order_relaxed);
}

void ActorCall::poke() noexcept {
  pokes_.fetch_add(1, std::memory_order_seq_cst);
  wake_all(pokes_);
}

Calls::Calls(PeerMemory& own) : own_(&own), calls_(kCallCountMax), rounds_(kCallCountMax) {
  free_.reserve(kCallCountMax);
  for (std::uint32_t index = kCallCountMax; index > 0; --index) free_.push_back(index - 1);
}

Calls::Begun Calls::begin(const std::shared_ptr<ActorCall>& call, PeerId to) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) throw too_many_calls_error();
  const std::uint32_t index = free_.back();
  free_.pop_back();
  call->number = ++rounds_[index] * kCallCountMax + index;
  call->sent_as.store(call->number, std::memory_order_relaxed);
  call->sent_to = to;
  calls_[index] = call;
  own_->call(index).store(call->number, std::memory_order_seq_cst);
  const bool is_earliest = call->deadline < earliest();
  if (is_earliest) earliest_.store(call->deadline, std::memory_order_relaxed);
  return {.number = call->number, .is_earliest = is_earliest};
}

std::shared_ptr<ActorCall> Calls::take_locked(std::uint32_t index) {
  own_->call(index).store(0, std::memory_order_seq_cst);
  free_.push_back(index);
  calls_[index]->number = 0;
  return std::exchange(calls_[index], nullptr);
}

std::shared_ptr<ActorCall> Calls::take(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::uint32_t>(number % kCallCountMax);
  if (number == 0 || calls_[index] == nullptr || calls_[index]->number != number) return nullptr;
  return take_locked(index);
}

void Calls::take(const ActorCall& call) {
  const std::lock_guard lock(mutex_);
  if (call.number != 0) take_locked(static_cast<std::uint32_t>(call.number % kCallCountMax));
}

std::uint64_t Calls::number_of(const ActorCall& call) {
  const std::lock_guard lock(mutex_);
  return call.number;
}

std::vector<std::shared_ptr<ActorCall>> Calls::take_if(
    const std::function<bool(const ActorCall&)>& is_wanted) {
  const std::lock_guard lock(mutex_);
  return take_if_locked(is_wanted);
}

std::vector<std::shared_ptr<ActorCall>> Calls::take_expired(Clock::time_point now) {
  if (now < earliest()) return {};
  const std::lock_guard lock(mutex_);
  Clock::time_point next = Clock::time_point::max();
  auto expired = take_if_locked([&](const ActorCall& call) {
    if (call.deadline <= now) return true;
    next = std::min(next, call.deadline);
    return false;
  });
  earliest_.store(next, std::memory_order_relaxed);
  return expired;
}

std::vector<std::shared_ptr<ActorCall>> Calls::take_if_locked(
    const std::function<bool(const ActorCall&)>& is_wanted) {
  std::vector<std::shared_ptr<ActorCall>> taken;
  for (std::uint32_t index = 0; index < kCallCountMax; ++index) {
    if (calls_[index] != nullptr && is_wanted(*calls_[index])) taken.push_back(take_locked(index));
  }
  std::ranges::sort(taken, {}, [](const auto& call) { return call->deadline; });
  return taken;
}

}  // namespace weft
