#include "inspect/history/own_time.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {
namespace {

struct OwnTime {
  int chip;
  double seconds;
};

/// The chips' own times, by the collective before which each own time ends.
using OwnTimes = std::map<std::pair<std::uint64_t, std::string_view>, std::vector<OwnTime>>;

double seconds_between(std::int64_t from, std::int64_t to) {
  return (static_cast<double>(to) - static_cast<double>(from)) / 1e9;
}

void add_own_times(const EventRing& ring, OwnTimes& times) {
  const Event* left = nullptr;
  const Event* commit = nullptr;
  double commits_s = 0;
  for (const Event& event : ring.events) {
    if (event.kind == EventKind::commit) {
      const bool is_end = (event.flags & kEventEnds) != 0;
      if (is_end && commit != nullptr && commit->number == event.number) {
        commits_s += seconds_between(commit->at_ns, event.at_ns);
      }
      commit = is_end ? nullptr : &event;
    } else if (event.kind == EventKind::leave) {
      left = &event;
      commits_s = 0;
    } else if (event.kind == EventKind::enter) {
      if (left != nullptr && left->number + 1 == event.number) {
        const double own = seconds_between(left->at_ns, event.at_ns) - commits_s;
        times[{event.number, event.text}].push_back({ring.chip, std::max(own, 0.0)});
      }
      left = nullptr;
    }
  }
}

double median(std::vector<OwnTime>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::ranges::nth_element(times, middle, {}, &OwnTime::seconds);
  return middle->seconds;
}

}  // namespace

std::map<int, double> own_time_above_median(const Snapshot& job) {
  OwnTimes times;
  for (const EventRing& ring : job.rings) {
    if (ring.kind == RingKind::chip) add_own_times(ring, times);
  }
  std::map<int, double> above;
  for (auto& [collective, own] : times) {
    if (own.size() < 2) continue;
    const double middle = median(own);
    for (const OwnTime& time : own) above[time.chip] += std::max(time.seconds - middle, 0.0);
  }
  return above;
}

}  // namespace weft
