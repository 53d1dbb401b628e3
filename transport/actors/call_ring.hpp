#pragma once
/// CallRing: the last calls of one thread of an actor system's process, and the last functions that
/// the thread ran. Part of the table of actors; see actor_table_format.hpp. Invariants:
///
/// 1. A ring has one writer at a time, the thread that runs the actors of its port. Ring 0 is the
///    exception: all other threads of the process share it. Each of them claims a number and then
///    the record.
/// 2. Word 0 of a record is cleared before its other words are written, and set to the tick after
///    them. So a writer that dies during a write loses only that record. A reader that has copied a
///    record twice, with equal words and a tick, has a complete copy.
/// 3. A thread claims a record of ring 0 by exchanging word 0 for kClaimed. If word 0 was kClaimed
///    already, another thread is writing to the record, and the claiming thread drops its event.
/// 4. A process continues the rings of its slot's previous process, whose events remain.
///
/// The words of a record, low bits first:
///   0  tick, written last; 0: no event
///   1  kind:4 function:3 replies_later:1 endpoint:16 row:16 peer:8 incarnation:16
///   2  number:48 peer_incarnation:16
///   3  value

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/actors/actor_words.hpp"
#include "transport/blackbox/box_clock.hpp"
#include "transport/lanes/lane_ids.hpp"

namespace weft {

enum class CallEventKind : std::uint8_t {
  none = 0,
  sent = 1,  ///< a message is about to be sent; value: the caller's row + 1; 0: no actor
  /// A call has ended; value: as in `sent`, and in the upper half its Errc (0: no error).
  answered = 2,
  ran = 3,      ///< a function has ended; value: the tick at which it began
  replied = 4,  ///< a Reply is about to be sent
};

struct CallEvent {
  CallEventKind kind = CallEventKind::none;
  /// `call` or `tell`, or the kind of the function that ran.
  ActorFunctionKind function = ActorFunctionKind::none;
  bool replies_later = false;          ///< in `ran`: a Reply will answer
  std::uint32_t row = 0;               ///< row of the actor that was called, or ran
  std::uint32_t endpoint = 0;          ///< below 2^16
  std::uint32_t peer = 0;              ///< in `ran` and `replied`: slot of the calling process
  std::uint32_t peer_incarnation = 0;  ///< low 16 bits of the incarnation in `peer`
  std::uint32_t incarnation = 0;       ///< low 16 bits of the writing process's incarnation
  /// The low 48 bits of the number that the sender gave the message. The number is unique among the
  /// calls, or the tells, of the sending process. If `function` is work: how often the function
  /// ran.
  std::uint64_t number = 0;
  std::uint64_t value = 0;

  static CallEvent of(std::uint64_t first, std::uint64_t second, std::uint64_t value) noexcept {
    return {.kind = static_cast<CallEventKind>(first & 0xfU),
            .function = static_cast<ActorFunctionKind>(first >> 4U & 7U),
            .replies_later = (first >> 7U & 1U) != 0,
            .row = static_cast<std::uint32_t>(first >> 24U & 0xffffU),
            .endpoint = static_cast<std::uint32_t>(first >> 8U & 0xffffU),
            .peer = static_cast<std::uint32_t>(first >> 40U & 0xffU),
            .peer_incarnation = static_cast<std::uint32_t>(second >> 48U),
            .incarnation = static_cast<std::uint32_t>(first >> 48U),
            .number = second & kNumberMask,
            .value = value};
  }
  std::uint64_t first_word() const noexcept {
    return static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(function) << 4U |
           std::uint64_t{replies_later} << 7U | std::uint64_t{endpoint & 0xffffU} << 8U |
           std::uint64_t{row & 0xffffU} << 24U | std::uint64_t{peer & 0xffU} << 40U |
           std::uint64_t{incarnation} << 48U;
  }
  std::uint64_t second_word() const noexcept {
    return (number & kNumberMask) | std::uint64_t{peer_incarnation} << 48U;
  }

  static constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << 48U) - 1;
};

inline constexpr std::uint32_t kCallRingRecords = 2046;

struct CallRingRecord {
  static constexpr std::uint64_t kClaimed = 1;
  std::atomic<std::uint64_t> words[4];
};

struct alignas(64) CallRing {
  std::atomic<std::uint64_t> next;  ///< number of the next event; records[number % count] has it
  std::byte reserved[56];
  CallRingRecord records[kCallRingRecords];
};
static_assert(sizeof(CallRing) == 64 << 10);

/// Writes events to a ring, which must outlive the writer. A write takes no lock and a bounded
/// number of steps.
class CallRingWriter {
 public:
  CallRingWriter() = default;  ///< makes a writer that writes nothing
  CallRingWriter(CallRing& ring, bool is_shared, TickSource source, PeerId self)
      : ring_(&ring), is_shared_(is_shared), source_(source), incarnation_(self.incarnation) {}

  bool is_on() const { return ring_ != nullptr; }
  std::uint64_t now() const { return read_ticks(source_); }

  /// Writes an event and returns its number. Drops the event if another thread is writing to its
  /// record. `tick` is a result of now(), and at least 2.
  std::uint64_t put(std::uint64_t tick, const CallEvent& event) const {
    const std::uint64_t number = is_shared_ ? ring_->next.fetch_add(1, std::memory_order_relaxed)
                                            : ring_->next.load(std::memory_order_relaxed);
    CallRingRecord& record = ring_->records[number % kCallRingRecords];
    if (is_shared_ &&
        record.words[0].exchange(CallRingRecord::kClaimed) == CallRingRecord::kClaimed) {
      return number;
    }
    write(record, tick, event);
    if (!is_shared_) ring_->next.store(number + 1, std::memory_order_release);
    return number;
  }
  /// Replaces event `number` of a ring that isn't shared. Returns false if it isn't the ring's last
  /// event.
  bool replace(std::uint64_t number, std::uint64_t tick, const CallEvent& event) const {
    if (ring_->next.load(std::memory_order_relaxed) != number + 1) return false;
    write(ring_->records[number % kCallRingRecords], tick, event);
    return true;
  }

 private:
  void write(CallRingRecord& record, std::uint64_t tick, const CallEvent& event) const {
    if (!is_shared_) record.words[0].store(0, std::memory_order_relaxed);
    record.words[1].store((event.first_word() << 16U >> 16U) | std::uint64_t{incarnation_} << 48U,
                          std::memory_order_release);
    record.words[2].store(event.second_word(), std::memory_order_release);
    record.words[3].store(event.value, std::memory_order_release);
    record.words[0].store(tick, std::memory_order_release);
  }

  CallRing* ring_ = nullptr;
  bool is_shared_ = false;
  TickSource source_ = TickSource::monotonic;
  std::uint32_t incarnation_ = 0;
};

}  // namespace weft
