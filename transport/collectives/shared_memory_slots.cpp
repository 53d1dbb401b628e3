/// The functions of SharedMemoryTier for broadcasts through slots; see slot_call.hpp.

#include <algorithm>

#include "transport/collectives/shared_memory_tier.hpp"
#include "transport/job/control_format.hpp"

namespace weft {

/// Wakes the chips that sleep until a word of messages changes. Called after each write to such a
/// word.
inline void SharedMemoryTier::wake_message_sleepers() const {
  light_fence();
  GroupLine& first = *group_->first;
  if (first.slot_sleepers.load(std::memory_order_relaxed) == 0 ||
      first.slot_sleepers.exchange(0, std::memory_order_seq_cst) == 0) {
    return;
  }
  first.slot_woken.fetch_add(1, std::memory_order_seq_cst);
  wake_all(first.slot_woken);
}

/// Posts the message if there is room.
inline void SharedMemoryTier::post_message() {
  const SlotCall& call = *call_->message;
  if (!call.has_room(message_)) return;
  call.post(message_, *started_);
  posted_ = true;
  wake_message_sleepers();
}

void SharedMemoryTier::start_message() {
  const SlotCall& call = *call_->message;
  message_ = call.begin(started_->signature);
  posted_ = false;
  arrived_ = 0;
  if (call.is_root()) return post_message();
  if (call.is_published(message_) || !call.has_arrived(message_)) {
    call.publish();
    wake_message_sleepers();
  }
}

inline bool SharedMemoryTier::is_message_ready() const {
  const SlotCall& call = *call_->message;
  return posted_ || (call.is_root() ? call.has_room(message_) : call.has_arrived(message_));
}

/// Throws if a reader for which this root waits has called something else.
void SharedMemoryTier::require_readers() const {
  const SlotCall& call = *call_->message;
  if (!call.is_root()) return;
  for (const Peer& peer : group_->peers) {
    if (call.has_diverged(peer, message_)) fail_divergence(peer.member, started_->number);
  }
}

bool SharedMemoryTier::poll_message() {
  const SlotCall& call = *call_->message;
  if (call.is_root()) {
    if (!posted_) post_message();
    if (!posted_) return wait_on();
  } else {
    if (!call.has_arrived(message_)) return wait_on();
    if (!call.is_of_same_calls(message_)) fail_message();
  }
  if (wait_begin_ != 0) end_wait();
  call.take(message_);
  return true;
}

/// Notes that the chip waits: a reader for the message, a root for room. Returns false.
bool SharedMemoryTier::wait_on() {
  require_readers();
  note_missing();
  if (wait_begin_ == 0 && recorder_.events.is_on()) wait_begin_ = recorder_.events.now();
  fail_if_aborted();
  return false;
}

void SharedMemoryTier::note_missing() {
  for (arrived_ = 0; arrived_ + 1 < group_->peers.size(); ++arrived_) {
    if (is_missing(group_->peers[arrived_])) break;
  }
  missing_ = arrived_;
}

bool SharedMemoryTier::spin_for_message() const {
  for (int left = policy_.spins; !is_message_ready(); --left) {
    if (left <= 0) return false;
    pause_cpu();
  }
  return true;
}

void SharedMemoryTier::sleep_for_message(Clock::duration longest) const {
  GroupLine& first = *group_->first;
  const std::uint32_t woken = first.slot_woken.load(std::memory_order_seq_cst);
  first.slot_sleepers.store(1, std::memory_order_seq_cst);
  heavy_fence();
  if (is_message_ready()) return;
  sleep_on(first.slot_woken, woken, std::min<std::chrono::nanoseconds>(kSleepSlice, longest));
}

}  // namespace weft
