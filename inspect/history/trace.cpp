#include "inspect/history/trace.hpp"

#include <algorithm>
#include <ctime>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "inspect/history/call_places.hpp"
#include "inspect/history/flows.hpp"
#include "inspect/history/timeline.hpp"

namespace weft {
namespace {

/// The numbers of processes and threads in the trace. Perfetto would take the number 0 for the
/// kernel.
constexpr int kTrainerProcess = 1000;
constexpr int kFirstChipThread = 10;
/// The number of bytes that are written at once.
constexpr std::size_t kPieceBytes = 1 << 16;

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

std::string json_text(std::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The fields of an event's `args`.
class TraceArgs {
 public:
  TraceArgs& add(std::string_view name, std::string_view text) {
    if (!text.empty()) add_raw(name, json_text(text));
    return *this;
  }
  TraceArgs& add(std::string_view name, std::uint64_t number) {
    return add_raw(name, fmt::to_string(number));
  }
  TraceArgs& add_us(std::string_view name, std::uint64_t ns) {
    return add_raw(name, fmt::format("{}.{:03}", ns / 1000, ns % 1000));
  }
  TraceArgs& add_true(std::string_view name, bool is_true) {
    return is_true ? add_raw(name, "true") : *this;
  }
  const std::string& fields() const { return fields_; }

 private:
  TraceArgs& add_raw(std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(fields_), "{}\"{}\":{}", fields_.empty() ? "" : ",", name,
                   value);
    return *this;
  }
  std::string fields_;
};

struct SliceText {
  std::string name{};
  std::string_view category{};
  TraceArgs args{};
};

std::string chip_text(int chip) { return chip < 0 ? "" : fmt::format("chip {}", chip); }

class TraceWriter {
 public:
  TraceWriter(const Snapshot& job, const std::function<void(std::string_view)>& write)
      : job_(job), write_(write), places_(places_of_calls(job)) {
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
    write_text("\n]}\n");
    write_(buffer_);
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

  void write_text(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() < kPieceBytes) return;
    write_(buffer_);
    buffer_.clear();
  }
  template <typename... Values>
  void add_event(fmt::format_string<Values...> format, Values&&... values) {
    std::string text(is_first_ ? "\n" : ",\n");
    is_first_ = false;
    fmt::format_to(std::back_inserter(text), format, std::forward<Values>(values)...);
    write_text(text);
  }
  std::string us(std::int64_t ns) const { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
  std::string since_first(std::int64_t at_ns) const { return us(at_ns - first_ns_); }

  void begin_document(const TimeWindow& window) {
    std::int64_t unix_ns = 0;
    if (__builtin_add_overflow(first_ns_, job_.unix_minus_monotonic_ns, &unix_ns)) unix_ns = 0;
    unix_ns = std::max<std::int64_t>(unix_ns, 0);
    const std::time_t seconds = unix_ns / 1'000'000'000;
    TraceArgs about;
    about.add("job", job_.job)
        .add("name", job_.header.name)
        .add("begin", fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z", fmt::gmtime(seconds),
                                  unix_ns % 1'000'000'000))
        .add("begin_unix_ns", static_cast<std::uint64_t>(unix_ns))
        .add_us("span_us", static_cast<std::uint64_t>(window.to_ns - first_ns_))
        .add("dropped_flows", counts_.dropped_flows)
        .add("unfinished", counts_.unfinished)
        .add("lost_begins", counts_.lost_begins);
    write_text(fmt::format("{{\"displayTimeUnit\":\"ns\",\"otherData\":{{{}}},\"traceEvents\":[",
                           about.fields()));
    for (const Track& track : tracks_) name_thread(*track.ring);
  }

  void name_thread(const EventRing& ring) {
    const int process = process_of(ring.worker);
    const int thread = thread_of(ring);
    const auto metadata = [&](std::string_view what, const TraceArgs& args) {
      add_event(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", process, thread,
                what, args.fields());
    };
    if (ring.kind == RingKind::loop) {
      const ActorRow* row = ring.worker < 0 ? job_.trainer() : job_.worker(ring.worker);
      std::string name = ring.worker < 0 ? "trainer" : fmt::format("worker {}", ring.worker);
      if (row != nullptr && row->pid > 0) name += fmt::format(" (pid {})", row->pid);
      metadata("process_name", TraceArgs().add("name", name));
      metadata("process_sort_index",
               TraceArgs().add("sort_index", static_cast<std::uint64_t>(ring.worker + 1)));
    }
    metadata("thread_name", TraceArgs().add("name", thread_name(ring)));
    metadata("thread_sort_index",
             TraceArgs().add("sort_index", static_cast<std::uint64_t>(thread)));
  }

  void write_track(const Track& track, const TimeWindow& window) {
    const std::string place =
        fmt::format(R"("pid":{},"tid":{})", process_of(track.ring->worker), thread_of(*track.ring));
    for (const Slice& slice : track.slices) {
      if (!window.has(slice)) continue;
      SliceText text = text_of(slice);
      text.args.add_true("unfinished", slice.unfinished);
      add_event(R"({{"ph":"X",{},"ts":{},"dur":{},"cat":"{}","name":{},"args":{{{}}}}})", place,
                since_first(slice.begin_ns), us(slice.end_ns - slice.begin_ns), text.category,
                json_text(text.name), text.args.fields());
    }
    for (const Mark& mark : track.marks) {
      if (!window.has(mark)) continue;
      const SliceText text = text_of(mark);
      if (text.name.empty()) continue;
      add_event(R"({{"ph":"i","s":"t",{},"ts":{},"cat":"{}","name":{},"args":{{{}}}}})", place,
                since_first(mark.at_ns), text.category, json_text(text.name), text.args.fields());
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

  /// Returns the text of a mark. The name is empty if the trace doesn't show this kind of event.
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
    const auto write_end = [&](std::string_view phase, const FlowEnd& end) {
      const EventRing& ring = *tracks_[end.track].ring;
      add_event(R"({{"ph":{},"id":{},"pid":{},"tid":{},"ts":{},"cat":"{}","name":{}}})", phase, id,
                process_of(ring.worker), thread_of(ring), since_first(end.at_ns), category,
                json_text(flow.name));
    };
    write_end(R"("s")", flow.from);
    write_end(R"("f","bp":"e")", flow.to);
  }

  /// Writes a curve of the number of messages in each worker's mailbox: those that were sent and
  /// whose handling hasn't begun. Only messages with both ends known count.
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
        add_event(R"({{"ph":"C","pid":{},"ts":{},"name":"mailbox","args":{{"messages":{}}}}})",
                  process_of(worker), since_first(change.at_ns), depth);
      }
    }
  }

  const Snapshot& job_;
  const std::function<void(std::string_view)>& write_;
  const std::map<std::string_view, std::string_view> places_;
  std::vector<Track> tracks_;
  TraceCounts counts_;
  std::int64_t first_ns_ = 0;
  std::string buffer_;
  bool is_first_ = true;
};

}  // namespace

TraceCounts write_trace(const Snapshot& job, const TraceOptions& options,
                        const std::function<void(std::string_view)>& write) {
  return TraceWriter(job, write).write(options);
}

}  // namespace weft
