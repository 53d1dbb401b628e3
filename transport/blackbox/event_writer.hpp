#pragma once
/// EventWriter: writes the events of one ring of a black box. Invariants:
///
/// 1. A ring has one writer at a time: the thread that drives the ring's actor. The shared ring of
///    a process is the exception: each of its threads claims a number and then the record.
/// 2. Word 0 of a record is cleared before its other words are written, and set to the tick after
///    them. So a reader accepts a record only if word 0 is a tick, and the same tick before and
///    after it has read the other words. A writer that dies during a write loses only that record.
/// 3. In the shared ring, a thread claims a record by exchanging word 0 for kBusy. If word 0 was
///    kBusy already, another thread has claimed the record and hasn't finished, and the ring has
///    wrapped around since. The later thread then drops its event.
/// 4. Writing takes a bounded number of steps and no lock.

#include <cstdint>
#include <string_view>

#include "transport/blackbox/box_clock.hpp"
#include "transport/blackbox/box_format.hpp"
#include "transport/blackbox/event.hpp"
#include "transport/blackbox/text_area.hpp"
#include "transport/memory/shared_field.hpp"

namespace weft {

/// Selects the events that are written. Any process may change the level while the job runs.
enum class TraceLevel : std::uint32_t {
  off = 0,
  sampled = 1,  ///< plan steps only in a plan's first 3 runs and in every 16th step
  full = 2,
};

/// The fields of an event except its kind; see event.hpp. `text` is an id that intern() returned.
struct EventFields {
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  int peer = -1;
  std::uint32_t text = 0;
  std::uint8_t flags = 0;
};

/// Writes events to one ring. All threads that write for one actor have copies of the EventWriter.
/// The BlackBoxWriter that made it must outlive the copies.
class EventWriter {
 public:
  EventWriter() = default;  ///< makes a writer that writes nothing

  bool is_on() const { return head_ != nullptr && level() != TraceLevel::off; }
  TraceLevel level() const {
    return head_ == nullptr ? TraceLevel::off : static_cast<TraceLevel>(load_field(*level_));
  }
  std::uint64_t now() const { return read_ticks(source_); }

  void put(EventKind kind, const EventFields& fields = {}) const {
    if (is_on()) put_at(now(), kind, fields);
  }
  /// Writes an event. `tick` is a result of now() just before the call.
  void put_at(std::uint64_t tick, EventKind kind, const EventFields& fields) const {
    const std::uint64_t number = is_shared_ ? claim() : load_field(head_->next);
    box_format::RecordV2& record = records_[number & mask_];
    if (is_shared_ && is_taken(record)) return;
    if (!is_shared_) store_field(record.words[0], std::uint64_t{0});
    const auto peer = static_cast<std::uint16_t>(fields.peer);
    store_field(record.words[1], std::uint64_t{static_cast<std::uint8_t>(kind)} |
                                     std::uint64_t{fields.flags} << 8 | std::uint64_t{peer} << 16 |
                                     std::uint64_t{fields.text} << 32);
    store_field(record.words[2], fields.number << 16 >> 16 | load_field(head_->step) << 48);
    store_field(record.words[3], fields.value);
    store_field(record.words[0], tick);
    if (!is_shared_) store_field(head_->next, number + 1);
  }

  /// Sets the step that later events are in.
  void step(std::uint64_t step) const {
    if (head_ != nullptr) store_field(head_->step, step);
  }
  /// Sets the step of the plan that the chip executes. `index` is the step's index in the plan.
  void position(std::uint32_t text, std::uint32_t index) const {
    if (head_ != nullptr) store_field(head_->position, std::uint64_t{index} << 32 | text);
  }

  /// Returns the id of a text. Must not be called during a step; see TextArea.
  std::uint32_t intern(std::string_view text, bool is_record = false) const {
    return texts_ == nullptr ? 0 : texts_->intern(text, is_record);
  }

 private:
  friend class BlackBoxWriter;

  std::uint64_t claim() const {
    return std::atomic_ref(head_->next).fetch_add(1, std::memory_order_relaxed);
  }
  static bool is_taken(box_format::RecordV2& record) {
    return std::atomic_ref(record.words[0]).exchange(box_format::kBusy) == box_format::kBusy;
  }

  box_format::RingHead* head_ = nullptr;
  box_format::RecordV2* records_ = nullptr;
  std::uint32_t mask_ = 0;  ///< mask that maps an event's number to its record
  bool is_shared_ = false;
  TickSource source_ = TickSource::monotonic;
  const std::uint32_t* level_ = nullptr;
  TextArea* texts_ = nullptr;
};

}  // namespace weft
