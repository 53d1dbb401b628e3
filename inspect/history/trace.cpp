#include "inspect/history/trace.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "inspect/history/call_places.hpp"
#include "inspect/history/flows.hpp"
#include "inspect/history/timeline.hpp"
#include "inspect/history/trace_document.hpp"

namespace weft {
namespace {

/// The numbers of processes and threads in the trace. No process is 0, because Perfetto would take
/// it for the kernel.
constexpr int kTrainerProcess = 1000;
constexpr int kFirstChipThread = 10;
int process_of(int worker) { return worker < 0 ? kTrainerProcess : worker + 1; }

int thread_of(const EventRing& ring) {
  switch (ring.kind) {
    case RingKind::loop: return 1;
    case RingKind::link: return 2;
    case RingKind::shared: return 3;
    case RingKind::chip: break;
  }
  return kFirstChipThread + ring.chip;
}

std::string thread_name(const EventRing& ring) {
  if (ring.kind != RingKind::chip) return std::string(to_string(ring.kind));
  return fmt::format("chip {}", ring.chip);
}

struct SliceText {
  std::string name{};
  std::string_view category{};
  TraceArgs args{};
};

std::string chip_text(int chip) { return chip < 0 ? "" : fmt::format("chip {}", chip); }

class TraceWriter {
 public:
  TraceWriter(const Snapshot& job, const std::function<void(std::string_view)>& write)
      : job_(job), document_(write), places_(places_of_calls(job)) {
    for (const EventRing& ring : job.rings) tracks_.push_back(to_track(ring));
  }

  TraceCounts write(const TraceOptions& options) {
    const TimeWindow window = choose_window(options);
    const Flows flows = find_flows(tracks_, window);
    count(window, flows);
    begin_document(window);
    for (const Track& track : tracks_) write_track(track, window);
    std::uint64_t id = 0;
    for (const Flow& flow : flows.found) write_flow(flow, ++id);
    write_mailboxes(flows);
    document_.finish();
    return counts_;
  }

 private:
  TimeWindow choose_window(const TraceOptions& options) const {
    const std::optional<TimeWindow> all = window_of(tracks_);
    if (!all) fail(Errc::not_found, "the job keeps no events");
    TimeWindow window = *all;
    if (options.steps) {
      const auto [first, last] = *options.steps;
      const std::optional<TimeWindow> steps = window_of_steps(tracks_, first, last);
      if (!steps) fail(Errc::not_found, "there are no events of steps {} to {}", first, last);
      window = *steps;
    }
    if (options.last_s > 0) {
      const double ns = std::min(options.last_s * 1e9, static_cast<double>(window.to_ns));
      window.from_ns = std::max(window.from_ns, window.to_ns - static_cast<std::int64_t>(ns));
    }
    return window;
  }

  void count(const TimeWindow& window, const Flows& flows) {
    counts_.flows = flows.found.size();
    counts_.dropped_flows = flows.dropped;
    first_ns_ = window.to_ns;
    for (const Track& track : tracks_) {
      counts_.lost_begins += track.lost_begins;
      for (const Slice& slice : track.slices) {
        if (!window.has(slice)) continue;
        ++counts_.slices;
        if (slice.unfinished) ++counts_.unfinished;
        first_ns_ = std::min(first_ns_, slice.begin_ns);
      }
      for (const Mark& mark : track.marks) {
        if (!window.has(mark)) continue;
        ++counts_.marks;
        first_ns_ = std::min(first_ns_, mark.at_ns);
      }
    }
  }

  void begin_document(const TimeWindow& window) {
    TraceArgs about;
    about.add("job", job_.job)
        .add("name", job_.header.name)
        .add_us("span_us", static_cast<std::uint64_t>(window.to_ns - first_ns_))
        .add("dropped_flows", counts_.dropped_flows)
        .add("unfinished", counts_.unfinished)
        .add("lost_begins", counts_.lost_begins);
    document_.begin(std::move(about), first_ns_, job_.unix_minus_monotonic_ns);
    for (const Track& track : tracks_) name_thread(*track.ring);
  }

  static TraceThread place_of(const EventRing& ring) {
    return {process_of(ring.worker), thread_of(ring)};
  }

  void name_thread(const EventRing& ring) {
    const TraceThread place = place_of(ring);
    if (ring.kind == RingKind::loop) {
      const ActorRow* row = ring.worker < 0 ? job_.trainer() : job_.worker(ring.worker);
      std::string name = ring.worker < 0 ? "trainer" : fmt::format("worker {}", ring.worker);
      if (row != nullptr && row->pid > 0) name += fmt::format(" (pid {})", row->pid);
      document_.name_process(place.process, name, static_cast<std::uint64_t>(ring.worker + 1));
    }
    document_.name_thread(place, thread_name(ring), static_cast<std::uint64_t>(place.thread));
  }

  void write_track(const Track& track, const TimeWindow& window) {
    const TraceThread place = place_of(*track.ring);
    for (const Slice& slice : track.slices) {
      if (!window.has(slice)) continue;
      SliceText text = text_of(slice);
      text.args.add_true("unfinished", slice.unfinished);
      document_.add_slice(place, slice.begin_ns, slice.end_ns, text.category, text.name, text.args);
    }
    for (const Mark& mark : track.marks) {
      if (!window.has(mark)) continue;
      const SliceText text = text_of(mark);
      if (text.name.empty()) continue;
      document_.add_mark(place, mark.at_ns, text.category, text.name, text.args);
    }
  }

  SliceText collective_text(const Slice& slice) const {
    const Event& event = *slice.begin;
    SliceText text{.name = std::string(event.text), .category = "collective"};
    text.args.add("number", event.number).add("bytes", event.value);
    if (const auto place = places_.find(event.text); place != places_.end()) {
      text.args.add("source", place->second);
    }
    if (slice.end != nullptr) {
      const int last = slice.end->peer;
      text.args.add_us("waited_us", slice.end->value)
          .add("last", last < 0 ? "this chip" : chip_text(last));
    }
    return text;
  }

  SliceText text_of(const Slice& slice) const {
    const Event& event = *slice.begin;
    SliceText text{.name = std::string(to_string(event.kind)), .category = "loop"};
    switch (event.kind) {
      case EventKind::step:
        return {.name = fmt::format("step {}", event.number), .category = "step"};
      case EventKind::run:
        text = {.name = fmt::format("run {}", event.number), .category = "run"};
        text.args.add("program", fmt::format("{:016x}", event.value));
        return text;
      case EventKind::plan_step: {
        const auto [op, place] = split_step_text(event.text);
        text = {.name = std::string(op), .category = "op"};
        text.args.add("index", event.number).add("source", place);
        return text;
      }
      case EventKind::enter: return collective_text(slice);
      case EventKind::commit:
        text = {.name = "commit wait", .category = "commit"};
        text.args.add("step", event.number).add("waits_for", chip_text(event.peer));
        return text;
      case EventKind::message_in:
      case EventKind::message_out:
        text = {.name = std::string(event.text), .category = "message"};
        text.args.add("what", event.kind == EventKind::message_in ? "begun" : "sent")
            .add("number", event.number);
        return text;
      case EventKind::compile: text.args.add("source", event.text); return text;
      case EventKind::load: text.args.add("loader", event.text); return text;
      case EventKind::admission:
        text.args.add("program", fmt::format("{:016x}", event.value));
        return text;
      case EventKind::checkpoint: text.name = "checkpoint wait"; [[fallthrough]];
      default: text.args.add("step", event.number); return text;
    }
  }

  /// Returns the text of a mark. Its name is empty if the trace doesn't show this kind of event.
  SliceText text_of(const Mark& mark) const {
    const Event& event = *mark.event;
    SliceText text{.category = to_string(event.kind)};
    switch (event.kind) {
      case EventKind::report:
      case EventKind::generation:
        text.name = fmt::format("{} {}", to_string(event.kind), event.number);
        break;
      case EventKind::checkpoint:
        text.name = fmt::format("checkpoint {}", event.text);
        text.args.add("step", event.number).add("bytes", event.value);
        break;
      case EventKind::error:
      case EventKind::log:
        text.name = to_string(event.kind);
        text.args.add("text", event.text);
        break;
      case EventKind::clock_jump:
        text.name = "the host slept";
        text.args.add_us("us", event.value);
        break;
      default: break;
    }
    return text;
  }

  void write_flow(const Flow& flow, std::uint64_t id) {
    const std::string_view category = flow.is_message ? "message flow" : "arrival";
    const auto write_end = [&](bool begins, const FlowEnd& end) {
      document_.add_flow(begins, id, place_of(*tracks_[end.track].ring), end.at_ns, category,
                         flow.name);
    };
    write_end(true, flow.from);
    write_end(false, flow.to);
  }

  /// Writes a curve for each worker's mailbox: how many messages were sent whose handling hasn't
  /// begun. Counts only messages both of whose ends are known.
  void write_mailboxes(const Flows& flows) {
    struct Change {
      std::int64_t at_ns;
      int by;
    };
    std::map<int, std::vector<Change>> changes;
    for (const Flow& flow : flows.found) {
      if (!flow.is_message) continue;
      std::vector<Change>& mailbox = changes[tracks_[flow.to.track].ring->worker];
      mailbox.push_back({flow.from.at_ns, 1});
      mailbox.push_back({flow.to.at_ns, -1});
    }
    for (auto& [worker, mailbox] : changes) {
      std::ranges::stable_sort(mailbox, {}, &Change::at_ns);
      int depth = 0;
      for (const Change& change : mailbox) {
        depth += change.by;
        document_.add_counter(process_of(worker), change.at_ns, "mailbox", "messages", depth);
      }
    }
  }

  const Snapshot& job_;
  TraceDocument document_;
  const std::map<std::string_view, std::string_view> places_;
  std::vector<Track> tracks_;
  TraceCounts counts_;
  std::int64_t first_ns_ = 0;
};

}  // namespace

TraceCounts write_trace(const Snapshot& job, const TraceOptions& options,
                        const std::function<void(std::string_view)>& write) {
  return TraceWriter(job, write).write(options);
}

}  // namespace weft
