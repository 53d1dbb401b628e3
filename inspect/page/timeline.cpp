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

#include "inspect/history/timeline.hpp"

namespace weft {
namespace {

/// Returns the kind of slice that shows an event; nothing for an event that the page doesn't show.
std::optional<SliceKind> shown_as(EventKind kind) {
  switch (kind) {
    case EventKind::run: return SliceKind::run;
    case EventKind::enter: return SliceKind::wait;
    case EventKind::commit: return SliceKind::commit;
    case EventKind::plan_step: return SliceKind::op;
    case EventKind::compile: return SliceKind::compile;
    case EventKind::admission: return SliceKind::admission;
    case EventKind::lease: return SliceKind::lease;
    case EventKind::load: return SliceKind::load;
    case EventKind::checkpoint: return SliceKind::save;
    case EventKind::error:
    case EventKind::generation:
    case EventKind::clock_jump: return SliceKind::mark;
    default: return {};
  }
}

TimelineSlice to_slice(const Event& event, std::int64_t begin_ns, SliceKind kind) {
  return {.kind = kind,
          .begin_ns = begin_ns,
          .text = event.text,
          .peer = event.peer,
          .number = event.number};
}

/// Makes a row from a track. Where a slice begins inside another slice, ends the outer one there.
class RowMaker {
 public:
  explicit RowMaker(const Track& track) {
    for (const Slice& slice : track.slices) last_ns_ = std::max(last_ns_, slice.end_ns);
    auto mark = track.marks.begin();
    for (const Slice& slice : track.slices) {
      for (; mark != track.marks.end() && mark->at_ns < slice.begin_ns; ++mark) add(*mark);
      add(slice);
    }
    for (; mark != track.marks.end(); ++mark) add(*mark);
  }

  TimelineRow take() { return std::move(row_); }

 private:
  static void cut_last(std::vector<TimelineSlice>& slices, std::int64_t at_ns) {
    while (!slices.empty() && slices.back().begin_ns >= at_ns) slices.pop_back();
    if (slices.empty()) return;
    TimelineSlice& last = slices.back();
    const std::int64_t room = at_ns - last.begin_ns;
    last.duration_ns = last.duration_ns < 0 ? room : std::min(last.duration_ns, room);
  }

  void add(const Mark& mark) {
    if (shown_as(mark.event->kind) != SliceKind::mark) return;
    cut_last(row_.slices, mark.at_ns);
    TimelineSlice slice = to_slice(*mark.event, mark.at_ns, SliceKind::mark);
    if (slice.text.empty()) slice.text = to_string(mark.event->kind);
    row_.slices.push_back(slice);
  }

  void add(const Slice& slice) {
    const std::optional<SliceKind> kind = shown_as(slice.begin->kind);
    if (!kind) return;
    std::vector<TimelineSlice>& slices = *kind == SliceKind::run ? row_.runs : row_.slices;
    cut_last(slices, slice.begin_ns);
    TimelineSlice shown = to_slice(*slice.begin, slice.begin_ns, *kind);
    if (slice.end != nullptr && slice.end->peer >= 0) shown.peer = slice.end->peer;
    if (*kind == SliceKind::wait && slice.end != nullptr) {
      add_collective(slice, shown);
      return;
    }
    const bool is_open = slice.unfinished && slice.end_ns == last_ns_;
    shown.duration_ns = is_open ? -1 : slice.end_ns - slice.begin_ns;
    slices.push_back(shown);
  }

  /// Adds two slices: first the wait, whose duration is in the end event, and then the exchange.
  void add_collective(const Slice& slice, TimelineSlice shown) {
    const std::int64_t took = slice.end_ns - slice.begin_ns;
    const auto waited =
        static_cast<std::int64_t>(std::min(slice.end->value, static_cast<std::uint64_t>(took)));
    shown.duration_ns = waited;
    if (waited > 0) row_.slices.push_back(shown);
    shown.kind = SliceKind::exchange;
    shown.begin_ns += waited;
    shown.duration_ns = took - waited;
    row_.slices.push_back(shown);
  }

  TimelineRow row_;
  /// End of the track; a slice is open if it is unfinished and reaches this time.
  std::int64_t last_ns_ = 0;
};

/// Numbers the texts of a document. Equal texts get the same number.
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

/// Writes a list of numbers as JSON, a million numbers in less than a second.
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

/// Returns the times at which steps began, of the first chip that has steps.
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

TimelineRow timeline_row(const EventRing& ring) { return RowMaker(to_track(ring)).take(); }

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
