#include "inspect/history/flows.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace weft {
namespace {

/// Identifies a message by its sender and its receiver (a worker; -1: the trainer), and by its
/// number among the messages between the two.
using MessageKey = std::tuple<int, int, std::uint64_t>;

class FlowFinder {
 public:
  FlowFinder(std::vector<Track>& tracks, const TimeWindow& window)
      : tracks_(tracks), window_(window) {}

  Flows find() {
    for_each(EventKind::message_out, [&](std::size_t track, std::size_t i) { add_sent(track, i); });
    for_each(EventKind::message_in, [&](std::size_t track, std::size_t i) { receive(track, i); });
    for (const auto& [key, ends] : sent_) flows_.dropped += ends.size();
    for_each(EventKind::enter, [&](std::size_t track, std::size_t i) {
      entered_[{tracks_[track].ring->chip, slice(track, i).begin->number}].push_back({track, i});
    });
    for_each(EventKind::enter, [&](std::size_t track, std::size_t i) { add_arrival(track, i); });
    return std::move(flows_);
  }

 private:
  Slice& slice(std::size_t track, std::size_t i) { return tracks_[track].slices[i]; }

  template <typename Action>
  void for_each(EventKind kind, Action action) {
    for (std::size_t track = 0; track < tracks_.size(); ++track) {
      for (std::size_t i = 0; i < tracks_[track].slices.size(); ++i) {
        const Slice& one = slice(track, i);
        if (one.begin->kind == kind && window_.has(one)) action(track, i);
      }
    }
  }

  void add_sent(std::size_t track, std::size_t i) {
    const Slice& out = slice(track, i);
    sent_[{tracks_[track].ring->worker, out.begin->peer, out.begin->number}].push_back(
        {track, i, out.begin_ns});
  }

  /// Finds the sender of a received message. Several sent messages may have the same number,
  /// because a worker that replaces a dead one counts its messages from the beginning.
  void receive(std::size_t track, std::size_t i) {
    const Slice& in = slice(track, i);
    if (in.begin->number == 0) return;  // the sender doesn't count its messages
    auto& ends = sent_[{in.begin->peer, tracks_[track].ring->worker, in.begin->number}];
    auto last = ends.end();
    for (auto end = ends.begin(); end != ends.end(); ++end) {
      if (end->at_ns > in.begin_ns || slice(end->track, end->slice).begin->text != in.begin->text) {
        continue;
      }
      if (last == ends.end() || end->at_ns > last->at_ns) last = end;
    }
    if (last == ends.end()) {
      ++flows_.dropped;
      return;
    }
    flows_.found.push_back({true, in.begin->text, *last, {track, i, in.begin_ns}});
    ends.erase(last);
  }

  void add_arrival(std::size_t track, std::size_t i) {
    const Slice& waiter = slice(track, i);
    if (waiter.end == nullptr || waiter.end->peer < 0) return;
    const std::int64_t at = waiter.end_ns - 1;
    const auto entered = entered_.find({waiter.end->peer, waiter.begin->number});
    if (entered != entered_.end()) {
      for (auto end = entered->second.rbegin(); end != entered->second.rend(); ++end) {
        Slice& last = slice(end->track, end->slice);
        const bool is_same = last.begin->text == waiter.begin->text && end->track != track;
        if (!is_same || last.earliest_ns > at || last.end_ns <= waiter.begin_ns) continue;
        last.begin_ns = std::min(last.begin_ns, at);
        flows_.found.push_back(
            {false, "came last", {end->track, end->slice, last.begin_ns}, {track, i, at}});
        return;
      }
    }
    ++flows_.dropped;
  }

  std::vector<Track>& tracks_;
  const TimeWindow window_;
  std::map<MessageKey, std::vector<FlowEnd>> sent_;
  // Ends of flows, by chip and number of the collective.
  std::map<std::pair<int, std::uint64_t>, std::vector<FlowEnd>> entered_;
  Flows flows_;
};

}  // namespace

Flows find_flows(std::vector<Track>& tracks, const TimeWindow& window) {
  Flows flows = FlowFinder(tracks, window).find();
  // After the search had found this flow, it may have moved the beginning of the slice.
  for (Flow& flow : flows.found) {
    FlowEnd& from = flow.from;
    if (!flow.is_message) from.at_ns = tracks[from.track].slices[from.slice].begin_ns;
  }
  return flows;
}

}  // namespace weft
