#include "inspect/history/system_trace.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "inspect/history/trace_document.hpp"

namespace weft {
namespace {

/// A process: its slot, and the low 16 bits of its incarnation.
struct ProcessKey {
  std::uint32_t slot = 0;
  std::uint32_t incarnation = 0;
  friend auto operator<=>(const ProcessKey&, const ProcessKey&) = default;
};

/// A track of the trace: the functions of an actor, or a part of the calls of one caller.
struct TrackKey {
  ProcessKey process{};
  std::uint32_t caller = 0;  ///< the actor's row + 1; 0: threads that run no actor
  std::uint32_t lane = 0;    ///< 0: the actor's functions; otherwise a track of calls
  friend auto operator<=>(const TrackKey&, const TrackKey&) = default;
};

/// A slice of the trace: a function that ran, a message that was sent, or a Reply.
struct CallSlice {
  TrackKey track{};
  std::uint32_t row = 0;  ///< row of the actor that ran or was called
  CallEvent event{};
  std::optional<MessageId> message{};
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  bool unfinished = false;
  std::uint8_t error = 0;  ///< an Errc; 0: no error
  bool is_answered = false;
};

constexpr std::int64_t kInstantNs = 1;

class SystemTraceWriter {
 public:
  SystemTraceWriter(const SystemEvents& events, const std::function<void(std::string_view)>& write)
      : events_(events), system_(events.system), document_(write) {}

  TraceCounts write(double last_s) {
    find_slices();
    if (functions_.empty() && calls_.empty()) {
      fail(Errc::not_found, "it keeps no events: no call was made, or WEFT_TRACE is off");
    }
    order_functions();
    place_calls();
    if (last_s > 0) {
      const double ns = std::min(last_s * 1e9, static_cast<double>(system_.at_ns));
      from_ns_ = system_.at_ns - static_cast<std::int64_t>(ns);
    }
    choose_shown();
    name_tracks();
    add_flows();
    begin_document();
    for (const CallSlice* slice : shown_) write_slice(*slice);
    for (const Flow& flow : flows_) write_flow(flow);
    write_mailboxes();
    document_.finish();
    return counts_;
  }

 private:
  struct Flow {
    const CallSlice* from;
    const CallSlice* to;
    std::int64_t from_ns;
    std::int64_t to_ns;
    std::string_view category;
  };

  bool is_shown(const CallSlice& slice) const { return slice.end_ns >= from_ns_; }
  ProcessKey process_of(const ActorPosition& position) const {
    return {position.process.slot, position.process.incarnation & 0xffffU};
  }

  void find_slices() {
    for (const SystemEvent& each : events_.events) {
      const CallEvent& event = each.event;
      const ProcessKey process{each.slot, event.incarnation};
      CallSlice slice{.track = {process, event.row + 1, 0},
                      .row = event.row,
                      .event = event,
                      .message = each.message(),
                      .begin_ns = each.at_ns,
                      .end_ns = each.at_ns + kInstantNs};
      switch (event.kind) {
        case CallEventKind::sent:
          slice.track.caller = static_cast<std::uint32_t>(event.value);
          sent_[*slice.message] = calls_.size();
          calls_.push_back(slice);
          break;
        case CallEventKind::answered: end_call(each); break;
        case CallEventKind::replied: replies_.push_back(slice); break;
        case CallEventKind::ran:
          slice.begin_ns = each.begin_ns;
          slice.end_ns = each.at_ns;
          if (event.function != ActorFunctionKind::call &&
              event.function != ActorFunctionKind::tell) {
            slice.message.reset();
          }
          functions_.push_back(slice);
          break;
        case CallEventKind::none: break;
      }
    }
    add_running();
    for (CallSlice& call : calls_) {
      if (call.is_answered || !events_.awaited.contains(*call.message)) continue;
      call.unfinished = true;
      call.end_ns = std::max(call.end_ns, system_.at_ns);
    }
  }

  void end_call(const SystemEvent& answered) {
    const auto found = sent_.find(answered.message());
    if (found == sent_.end()) {
      ++counts_.lost_begins;
      return;
    }
    CallSlice& call = calls_[found->second];
    call.is_answered = true;
    call.end_ns = std::max(answered.at_ns, call.begin_ns + kInstantNs);
    call.error = static_cast<std::uint8_t>(answered.event.value >> 32U);
  }

  /// Adds the functions that haven't ended.
  void add_running() {
    for (std::uint32_t row = 0; row < system_.actors.size(); ++row) {
      const SystemActor& actor = system_.actors[row];
      if (!actor.runs()) continue;
      const ActorFunction& function = actor.function;
      const bool is_call = function.kind == ActorFunctionKind::call;
      CallSlice slice{.track = {process_of(actor.position), row + 1, 0},
                      .row = row,
                      .event = {.kind = CallEventKind::ran,
                                .function = function.kind,
                                .row = row,
                                .endpoint = function.endpoint,
                                .peer = function.caller,
                                .number = actor.call},
                      .begin_ns = std::min(actor.since_ns, system_.at_ns),
                      .end_ns = system_.at_ns,
                      .unfinished = true};
      if (is_call || function.kind == ActorFunctionKind::tell) {
        const SystemProcess* caller = system_.process(function.caller);
        slice.event.peer_incarnation = caller == nullptr ? 0 : caller->peer.incarnation & 0xffffU;
        slice.message = MessageId{.slot = function.caller,
                                  .incarnation = slice.event.peer_incarnation,
                                  .is_call = is_call,
                                  .number = actor.call & CallEvent::kNumberMask};
      }
      functions_.push_back(slice);
    }
  }

  /// Corrects times, which come from several clocks. A function begins after its message was sent,
  /// and after the actor's previous function.
  void order_functions() {
    for (CallSlice& function : functions_) {
      const CallSlice* call = call_of(function);
      if (call != nullptr) {
        function.begin_ns = std::min(std::max(function.begin_ns, call->begin_ns), function.end_ns);
      }
    }
    std::ranges::stable_sort(functions_, [](const CallSlice& a, const CallSlice& b) {
      return std::pair(a.track, a.begin_ns) < std::pair(b.track, b.begin_ns);
    });
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      CallSlice& function = functions_[i];
      if (i > 0 && functions_[i - 1].track == function.track) {
        function.begin_ns = std::max(function.begin_ns, functions_[i - 1].end_ns);
      }
      function.end_ns = std::max(function.end_ns, function.begin_ns + kInstantNs);
    }
  }

  /// Gives each call a track on which it overlaps no other call.
  void place_calls() {
    std::map<std::pair<ProcessKey, std::uint32_t>, std::vector<std::int64_t>> ends;
    for (CallSlice& call : calls_) {  // in order of time
      std::vector<std::int64_t>& lanes = ends[{call.track.process, call.track.caller}];
      auto lane =
          std::ranges::find_if(lanes, [&](std::int64_t end_ns) { return end_ns <= call.begin_ns; });
      if (lane == lanes.end()) lane = lanes.insert(lane, 0);
      *lane = call.end_ns;
      call.track.lane = static_cast<std::uint32_t>(lane - lanes.begin()) + 1;
    }
  }

  const CallSlice* call_of(const CallSlice& function) const {
    if (!function.message) return nullptr;
    const auto found = sent_.find(*function.message);
    return found == sent_.end() ? nullptr : &calls_[found->second];
  }

  void choose_shown() {
    for (const std::vector<CallSlice>* slices : {&functions_, &calls_, &replies_}) {
      for (const CallSlice& slice : *slices) {
        if (is_shown(slice)) shown_.push_back(&slice);
      }
    }
    std::ranges::stable_sort(shown_, [](const CallSlice* a, const CallSlice* b) {
      return std::pair(a->begin_ns, b->end_ns) < std::pair(b->begin_ns, a->end_ns);
    });
  }

  void name_tracks() {
    for (const CallSlice* slice : shown_) threads_[slice->track];
    int thread = 0;
    for (auto& [track, place] : threads_) {
      const auto number = processes_.try_emplace(track.process, processes_.size() + 1).first;
      place = {static_cast<int>(number->second), ++thread};
    }
  }

  std::string name_of(const TrackKey& track) const {
    std::string name = track.caller == 0 ? "" : system_.actor_name(track.caller - 1);
    if (track.lane > 0) name += name.empty() ? "calls" : " calls";
    if (track.lane > 1) name += fmt::format(" {}", track.lane);
    return name;
  }

  std::string name_of(const ProcessKey& key) const {
    const SystemProcess* process = system_.process(key.slot);
    std::string name = SystemSnapshot::process_name(key.slot);
    if (process == nullptr || (process->peer.incarnation & 0xffffU) != key.incarnation) {
      return name + ", which has ended";
    }
    if (process->process.pid > 0) name += fmt::format(" (pid {})", process->process.pid);
    return name;
  }

  std::string endpoint_of(const CallSlice& slice) const {
    switch (slice.event.function) {
      case ActorFunctionKind::work: return "work";
      case ActorFunctionKind::make: return "constructor";
      default: return system_.endpoint_name(slice.row, slice.event.endpoint);
    }
  }

  void begin_document() {
    const std::int64_t first_ns = shown_.empty() ? system_.at_ns : shown_.front()->begin_ns;
    counts_.slices = shown_.size();
    for (const CallSlice* slice : shown_) counts_.unfinished += slice->unfinished ? 1 : 0;
    TraceArgs about;
    about.add("system", system_.id)
        .add("name", system_.name)
        .add_us("span_us", static_cast<std::uint64_t>(system_.at_ns - first_ns))
        .add("dropped_flows", counts_.dropped_flows)
        .add("unfinished", counts_.unfinished)
        .add("lost_begins", counts_.lost_begins);
    document_.begin(std::move(about), first_ns, events_.unix_minus_monotonic_ns);
    for (const auto& [process, number] : processes_) {
      document_.name_process(static_cast<int>(number), name_of(process), number);
    }
    for (const auto& [track, thread] : threads_) {
      document_.name_thread(thread, name_of(track), static_cast<std::uint64_t>(thread.thread));
    }
  }

  void write_slice(const CallSlice& slice) {
    const CallEvent& event = slice.event;
    TraceArgs args;
    std::string name = endpoint_of(slice);
    std::string_view category = "function";
    if (event.kind == CallEventKind::ran) {
      if (slice.message) args.add("caller", SystemSnapshot::process_name(event.peer));
      if (event.function == ActorFunctionKind::work && event.number > 1) {
        args.add("times", event.number);
      }
    } else {
      category = event.kind == CallEventKind::replied        ? "reply"
                 : event.function == ActorFunctionKind::call ? "call"
                                                             : "tell";
      name = fmt::format("{}.{}", system_.actor_name(slice.row), name);
      if (slice.error != 0) args.add("error", to_string(static_cast<Errc>(slice.error)));
    }
    if (slice.message) args.add("number", event.number);
    args.add_true("unfinished", slice.unfinished);
    document_.add_slice(threads_.at(slice.track), slice.begin_ns, slice.end_ns, category, name,
                        args);
  }

  void add_flow(const CallSlice& from, std::int64_t from_ns, const CallSlice& to,
                std::int64_t to_ns, std::string_view category) {
    if (from_ns > to_ns) {  // the times contradict each other
      ++counts_.dropped_flows;
    } else if (is_shown(from) && is_shown(to)) {
      flows_.push_back({&from, &to, from_ns, to_ns, category});
    }
  }

  void add_flows() {
    std::map<MessageId, const CallSlice*> begun;
    std::map<MessageId, const CallSlice*> replied;
    for (const CallSlice& reply : replies_) replied[*reply.message] = &reply;
    for (const CallSlice& function : functions_) {
      if (!function.message) continue;
      begun[*function.message] = &function;
      if (const CallSlice* call = call_of(function)) {
        add_flow(*call, call->begin_ns, function, function.begin_ns, "call flow");
      } else {
        ++counts_.dropped_flows;
      }
    }
    for (const CallSlice& call : calls_) {
      const auto function = begun.find(*call.message);
      if (function == begun.end()) {
        const bool is_open = events_.open.contains(*call.message);
        counts_.dropped_flows += is_open || call.error != 0 ? 0 : 1;
        continue;
      }
      const auto error = static_cast<Errc>(call.error);
      if (!call.is_answered || (call.error != 0 && error != Errc::endpoint_failed)) continue;
      const auto reply = replied.find(*call.message);
      const CallSlice& from = reply == replied.end() ? *function->second : *reply->second;
      const std::int64_t to_ns = call.end_ns - 1;
      const std::int64_t from_ns = std::min(from.end_ns - 1, std::max(to_ns, from.begin_ns));
      add_flow(from, from_ns, call, to_ns, "reply flow");
    }
    counts_.flows = flows_.size();
  }

  void write_flow(const Flow& flow) {
    const std::string name = endpoint_of(*flow.from);
    ++last_flow_;
    document_.add_flow(true, last_flow_, threads_.at(flow.from->track), flow.from_ns, flow.category,
                       name);
    document_.add_flow(false, last_flow_, threads_.at(flow.to->track), flow.to_ns, flow.category,
                       name);
  }

  /// Writes how many messages wait for each actor over time. Counts messages whose sending and
  /// beginning are both recorded, and messages that nobody has begun.
  void write_mailboxes() {
    std::map<std::uint32_t, std::vector<std::pair<std::int64_t, int>>> changes;
    for (const CallSlice& function : functions_) {
      const CallSlice* call = call_of(function);
      if (call == nullptr) continue;
      changes[function.row].emplace_back(call->begin_ns, 1);
      changes[function.row].emplace_back(function.begin_ns, -1);
    }
    for (const CallSlice& call : calls_) {
      if (events_.open.contains(*call.message)) changes[call.row].emplace_back(call.begin_ns, 1);
    }
    for (auto& [row, mailbox] : changes) {
      const auto process = processes_.find(process_of(system_.actors[row].position));
      if (process == processes_.end()) continue;
      std::ranges::stable_sort(mailbox, {}, [](const auto& change) { return change.first; });
      int depth = 0;
      for (const auto& [at_ns, by] : mailbox) {
        depth += by;
        if (at_ns < from_ns_) continue;
        document_.add_counter(static_cast<int>(process->second), at_ns,
                              fmt::format("mailbox {}", system_.actor_name(row)), "messages",
                              depth);
      }
    }
  }

  const SystemEvents& events_;
  const SystemSnapshot& system_;
  TraceDocument document_;
  TraceCounts counts_;
  std::int64_t from_ns_ = 0;
  std::vector<CallSlice> functions_;
  std::vector<CallSlice> calls_;             ///< in order of the times at which they were sent
  std::vector<CallSlice> replies_;           ///< slices of an instant
  std::map<MessageId, std::size_t> sent_;    ///< indices in calls_
  std::vector<const CallSlice*> shown_;      ///< in order of the times at which they begin
  std::map<TrackKey, TraceThread> threads_;  ///< threads of the slices that are shown
  std::map<ProcessKey, std::size_t> processes_;
  std::vector<Flow> flows_;
  std::uint64_t last_flow_ = 0;
};

}  // namespace

TraceCounts write_system_trace(const SystemEvents& events, double last_s,
                               const std::function<void(std::string_view)>& write) {
  return SystemTraceWriter(events, write).write(last_s);
}

}  // namespace weft
