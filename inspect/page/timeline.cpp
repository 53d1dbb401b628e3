#include "inspect/page/timeline.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace weft {
namespace {

/// The beginnings whose ends are still to come, while a ring's events go by.
class RowBuilder {
 public:
  void add(const Event& event) {
    if (op_) close_op(event.at_ns);
    switch (event.kind) {
      case EventKind::run: return add_scope(event, SliceKind::run, run_, row_.runs);
      case EventKind::commit: return add_scope(event, SliceKind::commit, inner_, row_.slices);
      case EventKind::compile: return add_scope(event, SliceKind::compile, inner_, row_.slices);
      case EventKind::admission: return add_scope(event, SliceKind::admission, inner_, row_.slices);
      case EventKind::lease: return add_scope(event, SliceKind::lease, inner_, row_.slices);
      case EventKind::load: return add_scope(event, SliceKind::load, inner_, row_.slices);
      case EventKind::checkpoint: return add_scope(event, SliceKind::save, inner_, row_.slices);
      case EventKind::enter: inner_ = begin(event, SliceKind::wait); return;
      case EventKind::leave: return add_collective(event);
      case EventKind::plan_step: op_ = begin(event, SliceKind::op); return;
      case EventKind::error:
      case EventKind::generation:
      case EventKind::clock_jump: return add_mark(event);
      default: return;
    }
  }

  TimelineRow finish() {
    if (op_) put(*op_, -1, row_.slices);
    if (run_) put(*run_, -1, row_.runs);
    if (inner_) put(*inner_, -1, row_.slices);
    return std::move(row_);
  }

 private:
  static TimelineSlice begin(const Event& event, SliceKind kind) {
    return {.kind = kind,
            .begin_ns = event.at_ns,
            .text = event.text,
            .peer = event.peer,
            .number = event.number};
  }
  /// One that begins before the last has ended is a torn ring's, and left out.
  static void put(TimelineSlice slice, std::int64_t duration_ns,
                  std::vector<TimelineSlice>& slices) {
    if (!slices.empty()) {
      const TimelineSlice& last = slices.back();
      if (last.duration_ns < 0 || slice.begin_ns < last.begin_ns + last.duration_ns) return;
    }
    slice.duration_ns = duration_ns;
    slices.push_back(slice);
  }

  void add_scope(const Event& event, SliceKind kind, std::optional<TimelineSlice>& open,
                 std::vector<TimelineSlice>& slices) {
    if ((event.flags & kEventEnds) == 0) {
      open = begin(event, kind);
      return;
    }
    if (open && open->kind == kind) {
      if (event.peer >= 0) open->peer = event.peer;
      put(*open, event.at_ns - open->begin_ns, slices);
    }
    open.reset();
  }

  /// First the wait, for as long as the event says; then the exchange.
  void add_collective(const Event& event) {
    if (inner_ && inner_->kind == SliceKind::wait && inner_->number == event.number) {
      const std::int64_t took = event.at_ns - inner_->begin_ns;
      const auto waited = static_cast<std::int64_t>(
          std::min(event.value, static_cast<std::uint64_t>(std::max<std::int64_t>(took, 0))));
      TimelineSlice slice = *inner_;
      slice.peer = event.peer;
      if (waited > 0) put(slice, waited, row_.slices);
      slice.kind = SliceKind::exchange;
      slice.begin_ns += waited;
      if (took >= waited) put(slice, took - waited, row_.slices);
    }
    inner_.reset();
  }

  void add_mark(const Event& event) {
    TimelineSlice mark = begin(event, SliceKind::mark);
    if (mark.text.empty()) mark.text = to_string(event.kind);
    put(mark, 0, row_.slices);
  }

  void close_op(std::int64_t at_ns) {
    put(*op_, std::max<std::int64_t>(0, at_ns - op_->begin_ns), row_.slices);
    op_.reset();
  }

  TimelineRow row_;
  std::optional<TimelineSlice> run_;
  std::optional<TimelineSlice> inner_;
  std::optional<TimelineSlice> op_;
};

/// The texts of a document, each once.
class Labels {
 public:
  std::size_t of(std::string_view text) {
    const auto [found, is_new] = numbers_.try_emplace(text, texts_.size());
    if (is_new) texts_.push_back(text);
    return found->second;
  }
  const std::vector<std::string_view>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string_view, std::size_t> numbers_;
  std::vector<std::string_view> texts_;
};

/// A list of numbers in JSON. There may be a million of them, each second.
class NumberList {
 public:
  template <typename T>
  void add(T number) {
    if (text_.size() > 1) text_ += ',';
    std::array<char, 24> digits{};
    const auto [end, error] = std::to_chars(digits.begin(), digits.end(), number);
    text_.append(digits.begin(), end);
  }
  std::string finish() { return std::move(text_) + "]"; }

 private:
  std::string text_ = "[";
};

std::string columns(const std::vector<TimelineSlice>& slices, std::int64_t after_ns,
                    Labels& labels) {
  NumberList t, d, k, l, p, n;
  std::int64_t last = 0;
  for (const TimelineSlice& slice : slices) {
    const bool ended = slice.duration_ns >= 0;
    if (ended && slice.begin_ns + slice.duration_ns <= after_ns) continue;
    t.add(slice.begin_ns - last);
    d.add(slice.duration_ns);
    k.add(static_cast<int>(slice.kind));
    l.add(labels.of(slice.text));
    p.add(slice.peer);
    n.add(slice.number);
    last = slice.begin_ns;
  }
  return fmt::format(R"({{"t":{},"d":{},"k":{},"l":{},"p":{},"n":{}}})", t.finish(), d.finish(),
                     k.finish(), l.finish(), p.finish(), n.finish());
}

std::int64_t last_event_ns(const Snapshot& job) {
  std::int64_t last = 0;
  for (const EventRing& ring : job.rings) {
    for (const Event& event : ring.events) last = std::max(last, event.at_ns);
  }
  return last;
}

/// Where steps begin: of the first chip that has any.
std::string step_marks(const Snapshot& job, std::int64_t after_ns) {
  NumberList t, n;
  for (const EventRing& ring : job.rings) {
    if (ring.kind != RingKind::chip) continue;
    bool any = false;
    std::int64_t last = 0;
    for (const Event& event : ring.events) {
      if (event.kind != EventKind::step) continue;
      any = true;
      if (event.at_ns <= after_ns) continue;
      t.add(event.at_ns - last);
      n.add(event.number);
      last = event.at_ns;
    }
    if (any) break;
  }
  return fmt::format(R"({{"t":{},"n":{}}})", t.finish(), n.finish());
}

std::string name_of(const EventRing& ring) {
  if (ring.kind == RingKind::chip) return fmt::format("chip {}", ring.chip);
  return ring.worker < 0 ? "trainer" : fmt::format("worker {}", ring.worker);
}

}  // namespace

TimelineRow timeline_row(const EventRing& ring) {
  RowBuilder builder;
  for (const Event& event : ring.events) builder.add(event);
  return builder.finish();
}

std::string timeline_json(const Snapshot& job, const TimelineRange& range) {
  Labels labels;
  std::vector<std::string> rows;
  for (const EventRing& ring : job.rings) {
    const bool shown =
        ring.kind == RingKind::chip || (ring.kind == RingKind::loop && ring.worker >= 0);
    if (!shown) continue;
    const TimelineRow row = timeline_row(ring);
    const bool whole = ring.before == 0 || ring.events.empty();
    rows.push_back(fmt::format(
        R"({{"name":"{}","worker":{},"chip":{},"from":{},"runs":{},"slices":{}}})", name_of(ring),
        ring.worker, ring.chip, whole ? 0 : ring.events.front().at_ns,
        columns(row.runs, range.after_ns, labels), columns(row.slices, range.after_ns, labels)));
  }
  const std::string texts =
      nlohmann::json(labels.texts()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return fmt::format(
      R"({{"schema":"weft.timeline/1","now":{},"unix_minus_monotonic":{},"labels":{},"steps":{},)"
      R"("rows":[{}]}})",
      range.now_ns != 0 ? range.now_ns : last_event_ns(job), job.unix_minus_monotonic_ns, texts,
      step_marks(job, range.after_ns), fmt::join(rows, ","));
}

}  // namespace weft
