#include "inspect/history/timeline.hpp"

#include <algorithm>

namespace weft {
namespace {

/// The duration that the trace gives to a message. A message takes no time, but an arrow needs a
/// slice at each end.
constexpr std::int64_t kMessageNs = 1000;
/// The latest time that is accepted. Whatever a record contains, a few thousand ns can then be
/// added to a time without overflow.
constexpr std::int64_t kLatestNs = std::int64_t{1} << 62;

/// Returns the level of a chip's event. A step of the loop contains runs, a run contains steps of a
/// plan, and a step of a plan may contain a collective. Waits can be inside any of them.
int rank_of(EventKind kind) {
  switch (kind) {
    case EventKind::step: return 0;
    case EventKind::run: return 1;
    case EventKind::plan_step: return 2;
    case EventKind::enter: return 3;
    default: return 4;
  }
}

bool is_message(EventKind kind) {
  return kind == EventKind::message_in || kind == EventKind::message_out;
}

/// Returns whether the event has a duration. A checkpoint event is an instant if it has a text, and
/// otherwise a wait.
bool has_duration(const Event& event) {
  switch (event.kind) {
    case EventKind::step:
    case EventKind::run:
    case EventKind::plan_step:
    case EventKind::enter:
    case EventKind::leave:
    case EventKind::commit:
    case EventKind::compile:
    case EventKind::admission:
    case EventKind::lease:
    case EventKind::load: return true;
    case EventKind::checkpoint: return event.text.empty();
    default: return false;
  }
}

bool is_end(const Event& event) {
  return event.kind == EventKind::leave || (event.flags & kEventEnds) != 0;
}

class TrackBuilder {
 public:
  explicit TrackBuilder(const EventRing& ring) { track_.ring = &ring; }

  void add(const Event& event) {
    before_ = now_;
    ended_now_ = false;
    now_ = std::max(std::clamp<std::int64_t>(event.at_ns, 0, kLatestNs), now_ + 1);
    end_message();
    if (is_message(event.kind)) {
      track_.slices.push_back(slice(event));
      in_message_ = true;
    } else if (event.kind == EventKind::state) {
      // A change of state adds nothing, because other events show what the actor does.
    } else if (!has_duration(event)) {
      track_.marks.push_back({&event, now_});
    } else if (is_end(event)) {
      end(event);
    } else {
      begin(event);
    }
  }

  Track finish() {
    ++now_;
    end_message();
    while (!open_.empty()) close_top(true);
    return std::move(track_);
  }

 private:
  Slice& top() { return track_.slices[open_.back()]; }
  Slice slice(const Event& event) const {
    return {.begin = &event,
            .begin_ns = now_,
            .end_ns = now_,
            .earliest_ns = ended_now_ ? now_ : before_ + 1};
  }

  void end_message() {
    if (!in_message_) return;
    Slice& message = track_.slices.back();
    message.end_ns = std::min(message.begin_ns + kMessageNs, now_);
    ended_now_ = message.end_ns == now_;
    in_message_ = false;
  }

  void close_top(bool unfinished) {
    top().end_ns = now_;
    top().unfinished = unfinished;
    open_.pop_back();
    ended_now_ = true;
  }
  /// Closes the innermost slice although no event ends it. Steps of loops and of plans always end
  /// like this. Any other slice counts as unfinished.
  void close_top() {
    const EventKind kind = top().begin->kind;
    close_top(kind != EventKind::step && kind != EventKind::plan_step);
  }

  void begin(const Event& event) {
    while (!open_.empty() && rank_of(top().begin->kind) > rank_of(event.kind)) close_top();
    const auto same = std::ranges::find(
        open_, event.kind, [&](std::size_t i) { return track_.slices[i].begin->kind; });
    for (auto left = open_.end() - same; left > 0; --left) close_top();
    open_.push_back(track_.slices.size());
    track_.slices.push_back(slice(event));
  }

  void end(const Event& event) {
    const EventKind kind = event.kind == EventKind::leave ? EventKind::enter : event.kind;
    const auto begun = std::ranges::find_if(open_, [&](std::size_t i) {
      const Event& other = *track_.slices[i].begin;
      return other.kind == kind && other.number == event.number;
    });
    if (begun == open_.end()) {
      ++track_.lost_begins;
      return;
    }
    for (auto above = open_.end() - begun - 1; above > 0; --above) close_top();
    top().end = &event;
    close_top(false);
  }

  Track track_;
  std::vector<std::size_t> open_;  ///< open slices, the outermost first
  bool in_message_ = false;        ///< whether the last slice is a message
  bool ended_now_ = false;         ///< whether a slice has ended at the current event
  std::int64_t now_ = -1;
  std::int64_t before_ = -1;
};

void widen(std::optional<TimeWindow>& window, std::int64_t from, std::int64_t to) {
  if (!window) window = TimeWindow{from, to};
  window->from_ns = std::min(window->from_ns, from);
  window->to_ns = std::max(window->to_ns, to);
}

}  // namespace

Track to_track(const EventRing& ring) {
  TrackBuilder builder(ring);
  for (const Event& event : ring.events) builder.add(event);
  return builder.finish();
}

std::optional<TimeWindow> window_of(const std::vector<Track>& tracks) {
  std::optional<TimeWindow> window;
  for (const Track& track : tracks) {
    for (const Slice& slice : track.slices) widen(window, slice.begin_ns, slice.end_ns);
    for (const Mark& mark : track.marks) widen(window, mark.at_ns, mark.at_ns);
  }
  return window;
}

std::optional<TimeWindow> window_of_steps(const std::vector<Track>& tracks, std::uint64_t first,
                                          std::uint64_t last) {
  std::optional<TimeWindow> window;
  for (const Track& track : tracks) {
    for (const Slice& slice : track.slices) {
      if (slice.begin->kind != EventKind::step) continue;
      const std::uint64_t step = slice.begin->number;
      if (step >= first && step <= last) widen(window, slice.begin_ns, slice.end_ns);
    }
  }
  return window;
}

}  // namespace weft
