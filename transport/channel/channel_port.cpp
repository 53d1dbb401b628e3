#include "transport/channel/channel_port.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/channel/channel.hpp"

/// Invariants (tests/unit/transport/channel/channel_model_test.cpp explores all schedules of small
/// cases):
/// 1. A slot has one owner: the writer, the reader, or a message that wasn't taken yet. The writer
///    owns all slots at first. Only the owner accesses a slot, and only the owner sends it.
/// 2. A lane has one sender and one taker. Messages are numbered from 1 and taken in order.
/// 3. Storing a word's `number` publishes the word's other fields and everything that the sender
///    did in the slot before. The store is a release; the load in take() is an acquire.
/// 4. A word is written again only after its message was taken. The sender of message n owns the
///    slot that it sends, so at most slot_count - 1 slots are away. Therefore the sender has got
///    back n - slot_count of the n - 1 slots that it sent before, and at least as many of its
///    messages were taken, in order. These include message n - (slot_count + 1), which was in the
///    same word. An end is sent without a slot, so there is one more word than there are slots.
/// 5. No wake-up is missed. The waiting side stores `asleep` and then loads `number`; the sender
///    stores `number` and then loads `asleep`. All of these are seq_cst, so at least one of the two
///    sides sees the other's store.
/// 6. A side that is gone leaves an end in its lane, or its byte of the file unlocked. If the other
///    side finds this byte unlocked, it checks the lane once more, so it takes all messages that
///    were sent before the death.
/// 7. A value that the other side may write at any time is loaded only once. The loaded copy is
///    checked and used.

namespace weft {
namespace {

constexpr bool is_end(std::uint32_t slot) {
  return slot == static_cast<std::uint32_t>(ChannelEnd::closed) ||
         slot == static_cast<std::uint32_t>(ChannelEnd::abandoned);
}

constexpr ChannelRole other(ChannelRole role) {
  return role == ChannelRole::writer ? ChannelRole::reader : ChannelRole::writer;
}

std::string_view to_string(ChannelRole role) {
  return role == ChannelRole::writer ? "writer" : "reader";
}

LifeLock attach(const Channel& channel, ChannelRole role) {
  ChannelSide& side = channel.side(role);
  std::optional<LifeLock> lock =
      LifeLock::take(channel.segment(), static_cast<std::uint32_t>(role));
  if (!lock || side.attached.load(std::memory_order_acquire) != 0) {
    fail(Errc::invalid_argument,
         "{} already had its {} (process {}): a channel has only one in its lifetime; make "
         "another channel",
         channel.label(), to_string(role), side.pid.load(std::memory_order_relaxed));
  }
  side.pid.store(getpid(), std::memory_order_relaxed);
  side.attached.store(1, std::memory_order_seq_cst);
  return std::move(*lock);
}

}  // namespace

ChannelPort::ChannelPort(Channel& channel, ChannelRole role, WaitPolicy policy,
                         const JobMemory* job)
    : channel_(&channel),
      role_(role),
      policy_(policy),
      job_(job),
      lock_(attach(channel, role)),
      own_(&channel.side(role)),
      peer_(&channel.side(other(role))),
      out_{.words = channel.lane(role), .word_count = channel.slot_count() + 1},
      in_{.words = channel.lane(other(role)), .word_count = channel.slot_count() + 1},
      owned_(channel.slot_count(), role == ChannelRole::writer) {}

ChannelPort::~ChannelPort() {
  if (!closed_) post(static_cast<std::uint32_t>(ChannelEnd::abandoned), 0);
}

void ChannelPort::Cursor::advance() noexcept {
  ++number;
  if (++index == word_count) index = 0;
}

void ChannelPort::post(std::uint32_t slot, std::uint64_t bytes) noexcept {
  ChannelWord& word = out_.word();
  word.slot.store(slot, std::memory_order_relaxed);
  word.bytes.store(bytes, std::memory_order_relaxed);
  word.number.store(out_.awaited(), std::memory_order_seq_cst);
  if (peer_->asleep.load(std::memory_order_seq_cst) != 0) wake_all(word.number);
}

void ChannelPort::send(Message message) noexcept {
  WEFT_CHECK(owned_[message.slot] && !closed_, message.slot, closed_);
  owned_[message.slot] = false;
  post(message.slot, message.bytes);
  out_.advance();
}

void ChannelPort::close() noexcept {
  if (closed_) return;
  post(static_cast<std::uint32_t>(ChannelEnd::closed), 0);
  closed_ = true;
}

void ChannelPort::note_filling(std::uint64_t frame) noexcept {
  own_->filling.store(frame, std::memory_order_relaxed);
}

bool ChannelPort::arrived() const noexcept {
  return in_.word().number.load(std::memory_order_acquire) != in_.previous();
}

std::optional<ChannelPort::Message> ChannelPort::take() {
  if (peer_end_) return end_of_peer();
  const ChannelWord& word = in_.word();
  const std::uint32_t number = word.number.load(std::memory_order_acquire);
  if (number == in_.previous()) return std::nullopt;
  const Message message{.slot = word.slot.load(std::memory_order_relaxed),
                        .bytes = word.bytes.load(std::memory_order_relaxed)};
  if (number == in_.awaited() && is_end(message.slot)) {
    peer_end_ = static_cast<ChannelEnd>(message.slot);
    return end_of_peer();
  }
  if (number != in_.awaited() || message.slot >= channel_->slot_count() || owned_[message.slot] ||
      message.bytes > channel_->slot_bytes()) {
    fail(Errc::corrupt,
         "{}: the {} sent message {} with slot {} of {} bytes; expected message {} with one of "
         "the {} slots that the {} doesn't hold, of at most {} bytes",
         channel_->label(), peer_name(), number, message.slot, message.bytes, in_.awaited(),
         channel_->slot_count(), to_string(role_), channel_->slot_bytes());
  }
  owned_[message.slot] = true;
  in_.advance();
  return message;
}

/// Handles the end of the other side. Returns std::nullopt if this is the reader and the writer
/// closed the channel. Otherwise throws: to a writer any end of the reader is a failure, because
/// the writer needs its slots back.
std::nullopt_t ChannelPort::end_of_peer() const {
  if (role_ == ChannelRole::writer || peer_end_ == ChannelEnd::abandoned) {
    fail_lost("left without closing the channel");
  }
  return std::nullopt;
}

void ChannelPort::await() {
  const Clock::time_point since = Clock::now();
  if (await_for(policy_.deadline)) return;
  fail(Errc::timeout, "the {} (process {}) of {} waited {:.3f} s for {}", to_string(role_),
       getpid(), channel_->label(), std::chrono::duration<double>(Clock::now() - since).count(),
       awaited_text());
}

bool ChannelPort::await_for(std::chrono::nanoseconds at_most) {
  if (at_most == std::chrono::nanoseconds::zero()) {
    check_peer();
    return arrived();
  }
  for (int i = 0; i < policy_.spins; ++i) {
    if (arrived()) return true;
    pause_cpu();
  }
  const Clock::time_point since = Clock::now();
  while (!arrived()) {
    if (job_ != nullptr && job_->aborted()) {
      fail(Errc::peer_lost, "{}; the {} of {} was waiting for {}", job_->abort_reason(),
           to_string(role_), channel_->label(), awaited_text());
    }
    const Clock::duration waited = Clock::now() - since;
    if (waited >= at_most) return false;
    if (waited < policy_.yield_for) {
      sched_yield();
      continue;
    }
    sleep(std::min<std::chrono::nanoseconds>(kSleepSlice, at_most - waited));
    check_peer();
  }
  return true;
}

void ChannelPort::sleep(std::chrono::nanoseconds at_most) noexcept {
  const std::atomic<std::uint32_t>& number = in_.word().number;
  own_->asleep.store(1, std::memory_order_seq_cst);
  if (number.load(std::memory_order_seq_cst) == in_.previous()) {
    sleep_on(number, in_.previous(), at_most);
  }
  own_->asleep.store(0, std::memory_order_relaxed);
}

/// Throws peer_lost if no message has come, and the process of the other side is gone.
void ChannelPort::check_peer() const {
  if (!arrived() && peer_died() && !arrived()) fail_lost("died");
}

bool ChannelPort::peer_died() const {
  return peer_->attached.load(std::memory_order_acquire) != 0 &&
         !lock_.another_holds(static_cast<std::uint32_t>(other(role_)));
}

std::string ChannelPort::peer_name() const {
  const std::string_view role = to_string(other(role_));
  if (peer_->attached.load(std::memory_order_acquire) == 0) {
    return fmt::format("{} (which hasn't attached yet)", role);
  }
  return fmt::format("{} (process {})", role, peer_->pid.load(std::memory_order_relaxed));
}

std::string ChannelPort::awaited_text() const {
  return role_ == ChannelRole::writer
             ? fmt::format("the {} to release one of {} slots for frame #{}", peer_name(),
                           channel_->slot_count(), sent() + 1)
             : fmt::format("the {} to publish frame #{}", peer_name(), taken() + 1);
}

void ChannelPort::fail_lost(std::string_view how) const {
  if (role_ == ChannelRole::writer) {
    fail(Errc::peer_lost, "{}: the {} {}; {} frames were published, {} released", channel_->label(),
         peer_name(), how, sent(), taken());
  }
  const std::uint64_t frame = taken() + 1;
  const bool filling = peer_->filling.load(std::memory_order_relaxed) == frame;
  fail(Errc::peer_lost, "{}: the {} {} {} frame #{}; {} frames were received", channel_->label(),
       peer_name(), how, filling ? "while it was filling" : "before", frame, taken());
}

}  // namespace weft
