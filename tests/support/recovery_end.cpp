// Checks the failures and the end of a simulated job, and describes violations.

#include <algorithm>

#include <fmt/format.h>

#include "tests/support/recovery_world.hpp"

namespace weft::testing {
namespace {

constexpr const char* kNames[] = {
    "loop",        "chip",          "join",
    "program",     "lease",         "report",
    "part",        "saved",         "ended",
    "unwound",     "paused",        "asks",
    "link down",   "process began", "process ended",
    "restart due", "link lost",     "deadline",
    "grace",       "hang seen",     "assigned",
    "start",       "asked",         "admit",
    "grant",       "pause",         "end at",
    "peer ended",  "join parts",    "drop parts",
    "save ended",  "unwind",        "trainer is gone",
    "kill",        "start process",
};

}  // namespace

std::string SimJob::trace() const {
  std::string text;
  for (const SimWorker& worker : workers_) {
    text += fmt::format("\n  worker {}: life {}, {}{}{}at {}, generation {}, step {}, {} runs",
                        &worker - &workers_[0], worker.life, worker.alive ? "" : "dead, ",
                        worker.linked ? "" : "no link, ", worker.stopped ? "stopped, " : "",
                        static_cast<int>(worker.at), worker.generation, worker.step, worker.runs);
  }
  for (std::uint64_t i = count_ - std::min<std::uint64_t>(count_, recent_.size()); i < count_;
       ++i) {
    const Event& event = recent_[i % kRecentEvents];
    text += fmt::format("\n  {}: {}", event.time, kNames[static_cast<std::size_t>(event.what)]);
    if (event.what == What::chip || event.what == What::loop) {
      const bool chip = event.what == What::chip;
      const auto w = static_cast<std::size_t>(chip ? event.worker / chips_each_ : event.worker);
      text += fmt::format(" {} of life {}, at step {}", event.worker, event.life, workers_[w].step);
    } else {
      text += fmt::format(" worker {}, life {}, generation {}, {} {} {}", event.worker, event.life,
                          event.generation, event.a, event.b, static_cast<std::int64_t>(event.c));
    }
  }
  return text;
}

/// Counts incidents. Deaths of different workers in one recovery are one incident.
void SimJob::count_incidents() {
  for (; losses_ < job_.recovery().failures().size(); ++losses_) {
    const int worker = job_.recovery().failures()[losses_].worker;
    if (lost_.empty() || lost_.contains(worker)) {
      lost_.clear();
      ++incidents_;
    }
    lost_.insert(worker);
  }
  if (job_.recovery().incidents() != incidents_)
    violated(fmt::format("{} incidents, not {}", job_.recovery().incidents(), incidents_));
}

/// Returns whether the job has survived failures like this one so often that it may give up now.
bool SimJob::has_repeated(const Failure& failure) const {
  const auto survived =
      std::ranges::count_if(job_.recovery().failures(), [&](const Failure& other) {
        return other.worker == failure.worker && other.code == failure.code &&
               other.signal == failure.signal && other.exit_code == failure.exit_code;
      });
  return survived >= (is_kill(failure) ? 19 : 2);
}

void SimJob::check_end() const {
  const std::uint64_t lost = job_.recovery().failures().size();
  if (lost > faults_) {
    std::string counted = "more failures than faults:";
    for (const Failure& failure : job_.recovery().failures())
      counted += fmt::format(" {};", failure.message);
    violated(counted);
  }
  if (const auto& failure = job_.failure()) {
    const auto says = [&](const char* words) {
      return failure->message.find(words) != std::string::npos;
    };
    const bool too_many =
        says("run.failure.max_failures") && incidents_ == policy_.max_failures && lost < faults_;
    const bool too_late = says("were not ready within") && deadline_ != kLongDeadline;
    if (says("all loops ended at step") || says("all loops were ended")) {
      return check_preempted_end();
    }
    const bool too_soon =
        (failure->message == "preempted" || says("was ended by SIGTERM")) && job_.generation() == 1;
    const bool no_grace = says("within run.grace_s") && grace_s_ != kLongGrace;
    const bool in_vain = says("; ") && failure->code == Errc::cancelled && lost > 0 &&
                         ((says("no loop calls") && !job_.has_asked()) ||
                          (says("isn't the first loss") && policy_.backoff_ms > 0));
    const bool by_sigterm = says("before its loop could end") && has_sigterms_;
    if (!too_many && !too_late && !too_soon && !no_grace && !in_vain && !by_sigterm &&
        !(says("; the worker failed like this") && has_repeated(*failure))) {
      violated(failure->message);
    }
    return;
  }
  for (int c = 0; c < static_cast<int>(chips_.size()); ++c) {
    const SimWorker& worker = workers_[static_cast<std::size_t>(c / chips_each_)];
    if (worker.step != script_.steps.size()) violated("the job ends before its last step");
    check_inputs(c, {.step = worker.step, .in = places_of(c)});
  }
  if (delivered_ != script_.reports.size()) violated("a report is missing");
}

void SimJob::check_preempted_end() const {
  const std::uint64_t step = workers_.front().step;
  for (const SimWorker& worker : workers_) {
    if (worker.step != step) violated("preempted loops end at different steps");
  }
  for (int c = 0; c < static_cast<int>(chips_.size()); ++c) {
    check_inputs(c, {.step = step, .in = places_of(c)});
  }
  const auto before = [&](std::uint64_t metrics) { return metrics < metrics_of_step(step); };
  auto made = static_cast<std::size_t>(std::ranges::count_if(script_.reports, before));
  // If worker 0 was told to end, it ended in the sync of its last step, before that step's report.
  if (workers_.front().was_ended) --made;
  // After the first generation, the report of a step that an earlier one began may have arrived
  // too.
  const bool more = delivered_ > made && job_.generation() == 1;
  if (delivered_ < made || more) violated("a report is missing, or there is one more");
}

}  // namespace weft::testing
