#pragma once
/// Recorder: writes what an actor does to its row of the board, which shows the present, and to its
/// ring of the black box, which stores the past.

#include <cstdint>
#include <optional>
#include <source_location>
#include <string_view>

#include "spmd/tensor/node.hpp"
#include "transport/blackbox/arrival_ledger.hpp"
#include "transport/blackbox/event_writer.hpp"
#include "transport/board/board.hpp"

namespace weft {

/// Copyable. Members that are default-constructed write nothing.
struct Recorder {
  Recorder() = default;
  /// Makes a recorder. A row is enough, without a ring, for an actor that is only shown on the
  /// board.
  Recorder(const BoardWriter& row, const EventWriter& ring = {}, const ArrivalLedger& waits = {})
      : board(row), events(ring), ledger(waits) {}

  void state(ActorState state) const {
    board.state(state);
    events.put(EventKind::state, {.value = static_cast<std::uint64_t>(state)});
  }
  void error(std::string_view text) const {
    board.error(text);
    events.put(EventKind::error, {.text = events.intern(text, true)});
  }

  BoardWriter board;
  EventWriter events;
  ArrivalLedger ledger;
};

/// Sets the actor's state during the scope's lifetime, and then the previous state again. Records
/// the beginning and the end as events of kind `kind`.
class StateScope {
 public:
  StateScope(const Recorder& recorder, ActorState state, EventKind kind, const EventFields& fields)
      : recorder_(recorder),
        before_(recorder.board.state()),
        kind_(kind),
        fields_(fields),
        begin_ns_(is_timed(kind) ? clock_ns(CLOCK_MONOTONIC) : 0) {
    recorder_.board.state(state);
    recorder_.events.put(kind, fields);
  }
  /// Makes a scope that writes no events.
  StateScope(const Recorder& recorder, ActorState state)
      : recorder_(recorder), before_(recorder.board.state()) {
    recorder_.board.state(state);
  }
  ~StateScope() {
    if (kind_) recorder_.events.put(*kind_, end());
    recorder_.board.state(before_);
  }
  StateScope(const StateScope&) = delete;
  StateScope& operator=(const StateScope&) = delete;

 private:
  EventFields end() const {
    EventFields fields = fields_;
    fields.flags |= kEventEnds;
    if (is_timed(*kind_)) {
      fields.value = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC) - begin_ns_);
    }
    return fields;
  }
  static bool is_timed(EventKind kind) {
    return kind == EventKind::compile || kind == EventKind::load;
  }

  Recorder recorder_;
  ActorState before_;
  std::optional<EventKind> kind_{};
  EventFields fields_{};
  std::int64_t begin_ns_ = 0;
};

/// Shows on the board a call of code that isn't part of weft, from enter() until the end of the
/// scope's lifetime.
class InsideScope {
 public:
  explicit InsideScope(const BoardWriter& board) : board_(board) {}
  InsideScope(const BoardWriter& board, std::string_view name, int tid) : board_(board) {
    enter(name, -1, tid, clock_ns(CLOCK_BOOTTIME));
  }
  ~InsideScope() { board_.leave_inside(); }
  InsideScope(const InsideScope&) = delete;
  InsideScope& operator=(const InsideScope&) = delete;

  /// Shows that the actor enters code that isn't part of weft; see BoardWriter::enter_inside().
  void enter(std::string_view name, std::int64_t number, int tid, std::int64_t since_ns) const {
    board_.enter_inside(name, number, tid, since_ns);
  }

 private:
  BoardWriter board_;
};

/// The recorder of a loop. Also shows the place in the program from which the loop last called
/// weft.
class LoopRecorder : public Recorder {
 public:
  explicit LoopRecorder(const Recorder& recorder) : Recorder(recorder) {}

  /// Records the place from which the program calls weft.
  void at(const std::source_location& where) {
    const bool is_same = where.line() == shown_.line() && where.file_name() == shown_.file_name();
    if (is_same || where.line() == 0) return;
    shown_ = where;
    board.source(file_line(where));
  }

 private:
  std::source_location shown_;
};

}  // namespace weft
