#include "actors/supervision/report_filter.hpp"

#include <algorithm>
#include <functional>

namespace weft {
namespace {

/// The number of reports that each of the three queues keeps. If a loop makes more reports than
/// that before its first step, or while it is ahead of the step that all chips have committed, some
/// may be passed twice.
constexpr std::size_t kKnownMax = 4096;

/// The number of generations whose reports may still arrive from the log.
constexpr std::size_t kBeginsMax = 256;

template <typename Queue, typename Entry>
void keep_last(Queue& queue, Entry entry) {
  queue.push_back(std::move(entry));
  if (queue.size() > kKnownMax) queue.pop_front();
}

}  // namespace

void ReportFilter::begin_generation(std::uint64_t generation, std::uint64_t step,
                                    const std::string& checkpoint) {
  Begin begin{.step = step, .next = {}};
  if (step == 0) begin.next = 0;  // the loop makes all its reports again
  const auto saved = std::ranges::find(saved_, checkpoint, &Saved::path);
  if (saved != saved_.end()) begin.next = saved->place.second + 1;
  begins_[generation] = begin;
  if (begins_.size() > kBeginsMax) begins_.erase(begins_.begin());
}

/// If the loop made this report before its first step in the report's generation, returns the Begin
/// of that generation. Otherwise, and in the first generation, returns null.
ReportFilter::Begin* ReportFilter::first_step_of(const Report& report) {
  const auto begun = begins_.find(report.generation);
  if (report.generation <= 1 || begun == begins_.end()) return nullptr;
  return report.step <= begun->second.step ? &begun->second : nullptr;
}

bool ReportFilter::is_known(const Report& report, std::uint64_t digest, Begin& begin) const {
  const auto is_earlier = [&](const auto& before) { return before.generation < report.generation; };
  const auto passed = [&](const Place& place) {
    if (place.first == report.step && begin.next)
      begin.next = std::max(*begin.next, place.second + 1);
    return true;
  };
  for (const Saved& saved : saved_) {
    if (!report.checkpoint.empty() && saved.path == report.checkpoint && is_earlier(saved)) {
      return passed(saved.place);
    }
  }
  for (const std::deque<Known>* all : {&greetings_, &recent_}) {
    for (const Known& known : *all) {
      if (known.digest == digest && is_earlier(known)) return passed(known.place);
    }
  }
  return false;
}

bool ReportFilter::is_new(const Report& report) {
  ++count_;
  const std::hash<std::string> hash;
  const std::uint64_t digest = hash(report.metrics) ^ hash(report.checkpoint) << 1;
  Place place{report.step, report.number};
  Begin* begin = first_step_of(report);
  if (begin != nullptr) {
    if (is_known(report, digest, *begin)) return false;
    if (begin->next) {
      place.second = (*begin->next)++;
    } else if (last_ && last_->first == place.first) {
      // Reports that the loop made during the step have their numbers. This report, made before the
      // loop's first step, gets the number after theirs.
      place.second = std::max(place.second, last_->second + 1);
    }
  }
  const bool is_new = !last_ || place > *last_ || (begin != nullptr && !begin->next);
  if (!is_new) return false;
  last_ = std::max(last_.value_or(place), place);
  remember(report, digest, place, begin != nullptr || report.step == 0);
  return true;
}

void ReportFilter::remember(const Report& report, std::uint64_t digest, const Place& place,
                            bool at_begin) {
  const Known known{report.generation, digest, place};
  if (at_begin && greetings_.size() < kKnownMax) {
    greetings_.push_back(known);
  } else {
    keep_last(recent_, known);
  }
  if (!report.checkpoint.empty()) {
    keep_last(saved_, Saved{report.generation, report.checkpoint, place});
  }
}

}  // namespace weft
