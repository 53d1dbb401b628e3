#pragma once
/// job_events_to(): sends the events of a job to a CAF actor.

#include <cstdint>
#include <memory>
#include <utility>

#include <caf/all.hpp>

#include <weft/job/callback.hpp>

namespace weft {

// The messages: each function of Callback sends one of these types.
struct JobStarted {
  JobInfo job{};
};
struct JobStep {
  std::uint64_t step = 0;  ///< steps that worker 0 has ended; at most ten messages a second
};
struct JobReported {
  Metrics metrics{};  ///< worker 0's report
};
struct JobLost {
  Failure failure{};  ///< the loss of a worker that the job survives; at the end, Result::error
};
struct JobRecovered {
  std::uint64_t step = 0;  ///< the step at which all loops begin again
};
struct JobSaved {
  Checkpoint checkpoint{};  ///< a complete checkpoint, which can be restored
  std::uint64_t step = 0;   ///< the step of the checkpoint's state
};
struct JobHung {
  HangReport report{};
};
struct JobValidated {
  Validation validation{};
};
struct JobEnded {
  Result result{};
};

namespace detail {

class CafJobEvents : public Callback {
 public:
  explicit CafJobEvents(caf::actor watcher) : watcher_(std::move(watcher)) {}

  void on_start(const JobInfo& job) override { tell(JobStarted{job}); }
  void on_report(const Metrics& metrics) override { tell(JobReported{metrics}); }
  void on_step(std::uint64_t step) override { tell(JobStep{step}); }
  void on_failure(const Failure& failure) override { tell(JobLost{failure}); }
  void on_recovered(std::uint64_t step) override { tell(JobRecovered{step}); }
  void on_checkpoint(const Checkpoint& checkpoint, std::uint64_t step) override {
    tell(JobSaved{checkpoint, step});
  }
  void on_hang(const HangReport& report) override { tell(JobHung{report}); }
  void on_validation(const Validation& validation) override { tell(JobValidated{validation}); }
  void on_end(const Result& result) override {
    tell(JobEnded{result});
    watcher_ = nullptr;
  }

 private:
  template <typename Event>
  void tell(Event event) {
#if CAF_MAJOR_VERSION < 1
    caf::anon_send(watcher_, std::move(event));
#else
    caf::anon_mail(std::move(event)).send(watcher_);
#endif
  }

  caf::actor watcher_;
};

}  // namespace detail

/// Makes a callback (RunConfig::callbacks) that sends the events of one job to a CAF actor:
///
///   caf::behavior watcher(caf::event_based_actor* self) {
///     return {[](const weft::JobReported& report) { plot(report.metrics); },
///             [=](const weft::JobEnded&) { self->quit(); }, ...};
///   }
///
/// JobEnded is the last message. The CAF actor system must exist until then. In CAF 1.x the actor
/// system needs the types' ids: `CAF_MAIN(caf::id_block::weft_job_events)`, or
/// `caf::init_global_meta_objects<caf::id_block::weft_job_events>()` before it begins.
inline std::shared_ptr<Callback> job_events_to(const caf::actor& watcher) {
  return std::make_shared<detail::CafJobEvents>(watcher);
}

}  // namespace weft

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::JobStarted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::JobReported)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::JobLost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::JobRecovered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::JobSaved)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::JobHung)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::JobValidated)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::JobEnded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::JobStep)

// These ids are 2900 to 2908. An application's own ids begin at caf::first_custom_type_id, which is
// 200.
CAF_BEGIN_TYPE_ID_BLOCK(weft_job_events, 2900)
CAF_ADD_TYPE_ID(weft_job_events, (weft::JobStarted))
CAF_ADD_TYPE_ID(weft_job_events, (weft::JobReported))
CAF_ADD_TYPE_ID(weft_job_events, (weft::JobLost))
CAF_ADD_TYPE_ID(weft_job_events, (weft::JobRecovered))
CAF_ADD_TYPE_ID(weft_job_events, (weft::JobSaved))
CAF_ADD_TYPE_ID(weft_job_events, (weft::JobHung))
CAF_ADD_TYPE_ID(weft_job_events, (weft::JobValidated))
CAF_ADD_TYPE_ID(weft_job_events, (weft::JobEnded))
CAF_ADD_TYPE_ID(weft_job_events, (weft::JobStep))
CAF_END_TYPE_ID_BLOCK(weft_job_events)
