/// SharedMemoryTier: who is missing, and who called something else.

#include <sched.h>

#include <span>
#include <string>

#include <weft/error.hpp>

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

/// With a message that `reader` is through with.
std::optional<RecordedCall> SharedMemoryTier::posted_by(int member, std::uint64_t number,
                                                        int reader) const {
  if (group_->line(member).has_ring.load(std::memory_order_relaxed) == 0) return std::nullopt;
  return read_slot_record(memory_->slot_ring(group_->mask, group_->chip(member)), number,
                          group_->line(reader).messages.load(std::memory_order_acquire));
}

/// What a chip called as its collective of this number, or last. One that went on from a message
/// called what its root posted.
std::optional<RecordedCall> SharedMemoryTier::call_of(int member, std::uint64_t number) const {
  const std::optional<RecordedCall> last = last_call(member);
  if (last && last->number <= number) return last;
  std::optional<RecordedCall> posted = posted_by(member, number, member);
  for (int root = 0; root < group_->size() && !posted; ++root) {
    posted = posted_by(root, number, member);
  }
  return posted ? posted : last;
}

/// A peer that is at another collective of this number, or beyond, but hasn't arrived, called
/// something else in its place: it is asleep in another group, and nobody would ever wake. (It
/// announces before it records, so what was announced with that number is visible once the number
/// is.) At the same collective, it may be long at work between entry and exit. A root awaits the
/// peer at an earlier collective than its own.
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

/// A chip that has left more bodies of on_each_chip() than this one, or its loop, won't come. (What
/// it had announced before is visible once that is.) The trainer knows of most loops that end
/// early, and names both lines, so that it goes first.
void SharedMemoryTier::require_presence(const Peer& peer, Clock::duration waited) const {
  constexpr std::chrono::seconds kTrainerIsFirst(2);
  const auto bodies_left = [&](int member) {
    return memory_->commit_line(group_->chip(member)).bodies.load(std::memory_order_acquire);
  };
  const std::uint64_t left = bodies_left(peer.member);
  if (left <= bodies_left(group_->index) || !is_missing(peer)) return;
  if (left == kLoopEnded && waited < kTrainerIsFirst) return;
  fail(Errc::program_divergence, "at step {} chip {} called {}, but chip {} {} without it",
       started_->step, chip_, to_string(*started_, *mesh_), group_->chip(peer.member),
       left == kLoopEnded ? "has ended its loop" : "has left its on_each_chip() body");
}

void SharedMemoryTier::fail_divergence(int member, std::uint64_t number) const {
  constexpr int kTryCount = 1000;  // it may have announced what it is just recording
  std::optional<RecordedCall> other;
  for (int i = 0; i < kTryCount && (!other || other->number < number); ++i) {
    other = call_of(member, number);
    sched_yield();
  }
  std::optional<RecordedCall> own;
  if (number != started_->number) own = call_of(group_->index, number);
  fail_calls(group_->index, own ? *own : started_call(), member, other);
}

/// The root posted another call than this reader's.
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
       started_->step, group_->chip(member), to_string(call, *mesh_), group_->chip(other_member),
       other ? to_string(*other, *mesh_) : "something that it has left since");
}

/// Chips call the same, but haven't before: several took themselves for the root of a message.
void SharedMemoryTier::fail_history() const {
  constexpr std::uint64_t kLookBack = 1000;  // collectives; only some are messages
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
       "at step {} chips have called different broadcasts before {}; which, they don't know any "
       "more",
       started_->step, to_string(*started_, *mesh_));
}

void SharedMemoryTier::fail_timeout(Clock::duration waited) const {
  std::string missing;
  for (const Peer& peer : group_->peers) {
    if (!is_missing(peer)) continue;
    const std::optional<RecordedCall> last = last_call(peer.member);
    missing += fmt::format("{}chip {} (last called: {})", missing.empty() ? "" : ", ",
                           group_->chip(peer.member),
                           last ? to_string(*last, *mesh_) : "changing just now");
  }
  fail(Errc::timeout, "chip {} waited {:.3f} s in {} (step {}, {}) for {}", chip_,
       std::chrono::duration<double>(waited).count(), to_string(*started_, *mesh_), started_->step,
       stage_ == 0 ? "at its entry" : "at its exit", missing);
}

}  // namespace weft
