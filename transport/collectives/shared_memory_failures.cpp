/// The functions of SharedMemoryTier that find out which chip is missing or called something else.

#include <sched.h>

#include <span>
#include <string>

#include <weft/tensor/error.hpp>

#include "transport/collectives/call_record.hpp"
#include "transport/collectives/shared_memory_tier.hpp"
#include "transport/job/control_format.hpp"

namespace weft {

bool SharedMemoryTier::is_missing(const Peer& peer) const {
  if (call_->message) return call_->message->is_awaited(peer, message_);
  return !has_reached(*peer.line, epoch_);
}

std::optional<RecordedCall> SharedMemoryTier::last_call(int member) const {
  return read_record(memory_->call_record(group_->chip(member)));
}

/// Returns the call with which `member` posted a message, if this call was collective `number` and
/// `reader` has passed the message.
std::optional<RecordedCall> SharedMemoryTier::posted_by(int member, std::uint64_t number,
                                                        int reader) const {
  if (group_->line(member).has_ring.load(std::memory_order_relaxed) == 0) return std::nullopt;
  return read_slot_record(memory_->slot_ring(group_->mask, group_->chip(member)), number,
                          group_->line(reader).messages.load(std::memory_order_acquire));
}

/// Returns the call that chip `member` made as its collective `number`, if it is known, and
/// otherwise the chip's last call. A chip that has passed a message made the same call as the
/// message's root.
std::optional<RecordedCall> SharedMemoryTier::call_of(int member, std::uint64_t number) const {
  const std::optional<RecordedCall> last = last_call(member);
  if (last && last->number <= number) return last;
  std::optional<RecordedCall> posted = posted_by(member, number, member);
  for (int root = 0; root < group_->size() && !posted; ++root) {
    posted = posted_by(root, number, member);
  }
  return posted ? posted : last;
}

/// Throws if a missing peer called something else than this chip. A peer may be at another
/// collective of the same number, or at a later one, without having arrived at this one. It then
/// sleeps in another group and would never be woken. (A chip announces before it records, so a peer
/// whose record has this number isn't missing just because its announcement isn't visible yet.)
/// Neither of these is an error: a peer at the same collective may work for long between entry and
/// exit, and a root may wait for peers that are still at an earlier collective.
void SharedMemoryTier::find_divergence(Clock::duration waited) const {
  if (call_->message) require_readers();
  for (const Peer& peer : group_->peers) {
    if (!is_missing(peer)) continue;
    require_presence(peer, waited);
    const bool is_root = call_->message && call_->message->is_root();
    const std::uint64_t number = is_root ? call_->message->number_awaited(peer) : started_->number;
    const std::optional<RecordedCall> call = last_call(peer.member);
    if (number == 0 || !call || call->number < number) continue;
    const bool same =
        !is_root && call->number == number && digest_of(call->words) == started_->call->digest();
    if (same || !is_missing(peer)) continue;
    if (is_root && call_->message->number_awaited(peer) != number) continue;
    fail_divergence(peer.member, number);
  }
}

/// Throws if a peer won't come, because it has left its loop, or has left more bodies of
/// on_each_chip() than this chip. (This chip then also sees all announcements that the peer made
/// before.) Waits a moment first: the trainer knows of most loops that end early and its error
/// gives both source lines, so it should report first.
void SharedMemoryTier::require_presence(const Peer& peer, Clock::duration waited) const {
  constexpr std::chrono::seconds kTrainerIsFirst(2);
  const auto bodies_left = [&](int member) {
    return memory_->commit_line(group_->chip(member)).bodies.load(std::memory_order_acquire);
  };
  const std::uint64_t left = bodies_left(peer.member);
  if (left <= bodies_left(group_->index) || !is_missing(peer)) return;
  if (left == kLoopEnded && waited < kTrainerIsFirst) return;
  fail(Errc::program_divergence, "at step {} chip {} called {}, but chip {} {} without it",
       started_->step, device_, to_string(*started_, *mesh_), group_->device(peer.member),
       left == kLoopEnded ? "has ended its loop" : "has left its on_each_chip() body");
}

void SharedMemoryTier::fail_divergence(int member, std::uint64_t number) const {
  constexpr int kTryCount = 1000;  // since the chip may be recording a call that it has announced
  std::optional<RecordedCall> other;
  for (int i = 0; i < kTryCount && (!other || other->number < number); ++i) {
    other = call_of(member, number);
    sched_yield();
  }
  std::optional<RecordedCall> own;
  if (number != started_->number) own = call_of(group_->index, number);
  fail_calls(group_->index, own ? *own : started_call(), member, other);
}

/// Throws because the root posted another call than this reader made.
void SharedMemoryTier::fail_message() const {
  fail_calls(group_->index, started_call(), call_->message->root(),
             call_->message->posted_call(message_));
}

RecordedCall SharedMemoryTier::started_call() const {
  return {started_->number, started_->call->words(), started_->call->name()};
}

void SharedMemoryTier::fail_calls(int member, const RecordedCall& call, int other_member,
                                  const std::optional<RecordedCall>& other) const {
  if (other && call.number == other->number && call.words == other->words) fail_history();
  fail(Errc::program_divergence, "at step {} chip {} called {}, but chip {} called {}",
       started_->step, group_->device(member), to_string(call, *mesh_),
       group_->device(other_member),
       other ? to_string(*other, *mesh_) : "a collective that it has already left");
}

/// Throws because the chips make the same call now, but made different calls before: several chips
/// took themselves for the root of a message.
void SharedMemoryTier::fail_history() const {
  constexpr std::uint64_t kLookBack = 1000;  // in collectives; not all are messages
  for (int member = 0; member < group_->size(); ++member) {
    for (std::uint64_t back = 0; back < kLookBack && back < started_->number; ++back) {
      const std::optional<RecordedCall> call = posted_by(member, started_->number - back, member);
      for (int other = member + 1; call && other < group_->size(); ++other) {
        const std::optional<RecordedCall> posted = posted_by(other, call->number, other);
        if (posted && posted->words != call->words) fail_calls(member, *call, other, posted);
      }
    }
  }
  fail(Errc::program_divergence,
       "at step {} chips called different broadcasts before {}; the record no longer shows "
       "which ones",
       started_->step, to_string(*started_, *mesh_));
}

void SharedMemoryTier::fail_timeout(Clock::duration waited) const {
  std::string missing;
  for (const Peer& peer : group_->peers) {
    if (!is_missing(peer)) continue;
    const std::optional<RecordedCall> last = last_call(peer.member);
    missing += fmt::format(
        "{}chip {} (last called: {})", missing.empty() ? "" : ", ", group_->device(peer.member),
        last ? to_string(*last, *mesh_) : "unknown, because it is just changing");
  }
  fail(Errc::timeout, "chip {} waited {:.3f} s in {} (step {}, {}) for {}", device_,
       std::chrono::duration<double>(waited).count(), to_string(*started_, *mesh_), started_->step,
       stage_ == 0 ? "at its entry" : "at its exit", missing);
}

}  // namespace weft
