#include "inspect/profile/step_times.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include <weft/tensor/error.hpp>

#include "inspect/history/timeline.hpp"

namespace weft {
namespace {

/// Returns the plan's step for each step number that a chip's events use.
std::vector<std::size_t> numbered_steps(const Plan& plan) {
  std::vector<std::size_t> steps;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    switch (step.kind) {
      case StepKind::update_wait:
      case StepKind::join: break;
      // Each value that the loop carries has its own step number in events.
      case StepKind::begin: steps.insert(steps.end(), step.count, i); break;
      default: steps.push_back(i); break;
    }
  }
  return steps;
}

struct Execution {
  std::size_t step = 0;  ///< index in the plan
  std::int64_t ns = 0;
  std::int64_t waited_ns = 0;
};

struct SeenRun {
  std::int64_t ns = 0;
  std::vector<Execution> executions{};
};

bool is_whole_run(const Slice& slice) {
  return slice.begin->kind == EventKind::run && slice.end != nullptr && !slice.unfinished;
}

/// Reads the slices of one chip, which must be in the order of their beginnings.
class RunReader {
 public:
  RunReader(const Plan& plan, const std::vector<std::size_t>& numbered, std::uint64_t fingerprint)
      : plan_(plan), numbered_(numbered), fingerprint_(fingerprint) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (plan.steps[i].kind == StepKind::update_wait) update_wait_ = i;
    }
  }

  void add(const Slice& slice) {
    const Event& event = *slice.begin;
    const std::int64_t ns = slice.end_ns - slice.begin_ns;
    if (event.kind == EventKind::run) {
      close();
      if (!is_whole_run(slice) || event.value != fingerprint_) return;
      end_ns_ = slice.end_ns;
      run_.ns = ns;
      return;
    }
    if (slice.begin_ns >= end_ns_) return;
    if (event.kind == EventKind::plan_step) {
      if (event.number >= numbered_.size()) {
        fail(Errc::corrupt, "an event names step {}, but the plan has {} steps: another plan ran",
             event.number, numbered_.size());
      }
      is_whole_ = is_whole_ || event.number == 0;
      begin_step(numbered_[event.number], ns);
    } else if (event.kind == EventKind::commit) {
      add_commit(ns);
    } else if (event.kind == EventKind::enter && slice.end != nullptr && last_ != kNone) {
      Execution& step = run_.executions[last_];
      const auto waited = static_cast<std::int64_t>(std::min<std::uint64_t>(
          slice.end->value, static_cast<std::uint64_t>(std::max<std::int64_t>(step.ns, 0))));
      step.waited_ns = std::min(step.ns, step.waited_ns + waited);
    }
  }

  std::vector<SeenRun> take() {
    close();
    return std::move(runs_);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// Begins an execution of a step. At the beginning of a loop, the events of all values that the
  /// loop carries form one execution.
  void begin_step(std::size_t step, std::int64_t ns) {
    const bool goes_on = plan_.steps[step].kind == StepKind::begin && last_ != kNone &&
                         run_.executions[last_].step == step;
    if (goes_on) {
      run_.executions[last_].ns += ns;
      return;
    }
    last_ = run_.executions.size();
    run_.executions.push_back({step, ns});
  }

  /// Adds the wait for a commit, which happens within the previous step, and takes its time from
  /// this step.
  void add_commit(std::int64_t ns) {
    if (update_wait_ == kNone || last_ == kNone) return;
    run_.executions[last_].ns -= ns;
    run_.executions.push_back({update_wait_, ns, ns});
  }

  /// Ends a run. The run doesn't count if the event of its first step wasn't seen.
  void close() {
    if (is_whole_) runs_.push_back(std::move(run_));
    run_ = {};
    is_whole_ = false;
    end_ns_ = 0;
    last_ = kNone;
  }

  const Plan& plan_;
  const std::vector<std::size_t>& numbered_;
  std::uint64_t fingerprint_;
  std::size_t update_wait_ = kNone;
  std::vector<SeenRun> runs_;
  SeenRun run_;
  std::int64_t end_ns_ = 0;   // end of the current run; 0: no run
  std::size_t last_ = kNone;  // index in run_.executions of the last step that began
  bool is_whole_ = false;     // whether the event of the run's first step was seen
};

/// Returns the median; 0 if there are no times. Of two times in the middle, returns the lower one.
std::int64_t median(std::vector<std::int64_t>& times) {
  if (times.empty()) return 0;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace

PlanTimes plan_times(const Snapshot& job, std::uint64_t fingerprint, const Plan& plan) {
  const std::vector<std::size_t> numbered = numbered_steps(plan);
  PlanTimes times;
  times.steps.resize(plan.steps.size());
  std::vector<std::vector<std::int64_t>> by_step(plan.steps.size());
  std::vector<std::int64_t> by_run;
  for (const EventRing& ring : job.rings) {
    if (ring.kind != RingKind::chip) continue;
    RunReader reader(plan, numbered, fingerprint);
    const Track track = to_track(ring);
    for (const Slice& slice : track.slices) reader.add(slice);
    std::vector<SeenRun> runs = reader.take();
    if (runs.empty()) continue;
    if (runs.size() > 1) runs.erase(runs.begin());
    ++times.chips;
    for (const SeenRun& run : runs) {
      by_run.push_back(run.ns);
      times.run_ns += run.ns;
      for (const Execution& execution : run.executions) {
        by_step[execution.step].push_back(execution.ns);
        times.steps[execution.step].total_ns += execution.ns;
        times.steps[execution.step].waited_ns += execution.waited_ns;
      }
    }
  }
  times.runs = by_run.size();
  times.median_run_ns = median(by_run);
  times.other_ns = times.run_ns;
  for (std::size_t i = 0; i < by_step.size(); ++i) {
    times.steps[i].count = by_step[i].size();
    times.steps[i].median_ns = median(by_step[i]);
    times.other_ns -= times.steps[i].total_ns;
  }
  return times;
}

std::map<std::uint64_t, std::int64_t> run_times(const Snapshot& job) {
  std::map<std::uint64_t, std::int64_t> times;
  for (const EventRing& ring : job.rings) {
    if (ring.kind != RingKind::chip) continue;
    const Track track = to_track(ring);
    std::set<std::uint64_t> seen;
    for (const Slice& slice : track.slices) {
      if (!is_whole_run(slice)) continue;
      const std::uint64_t program = slice.begin->value;
      times[program] += seen.insert(program).second ? 0 : slice.end_ns - slice.begin_ns;
    }
  }
  return times;
}

}  // namespace weft
