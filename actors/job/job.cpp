#include <weft/job/job.hpp>

#include <future>
#include <thread>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/job/job_control.hpp"
#include "actors/job/job_request.hpp"
#include "actors/job/job_run.hpp"
#include "actors/process/job_thread.hpp"

namespace weft {

struct Job::State {
  explicit State(JobRequest job) : request(std::move(job)) {}

  const JobRequest request;
  JobControl control;
  std::promise<void> started;
  // The thread writes `result` and `thrown` before the control reports that the job has ended.
  Result result;
  std::exception_ptr thrown;
  std::jthread thread;  ///< parent of the worker processes, which end with it

  void run() {
    bool has_started = false;
    try {
      result = run_job(request, control, [&] {
        has_started = true;
        started.set_value();
      });
    } catch (...) {
      thrown = std::current_exception();
      if (!has_started) started.set_exception(thrown);
    }
    control.ended();
  }
  void require_other_thread(const char* what) const {
    if (std::this_thread::get_id() != thread.get_id()) return;
    fail(Errc::invalid_argument,
         "Job::{} was called in a callback of the same job and would wait for that callback: "
         "call stop() or cancel() there, and wait on another thread",
         what);
  }
};

Job::Job() noexcept = default;
Job::Job(Job&&) noexcept = default;
Job::Job(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}

Job& Job::operator=(Job&& other) noexcept {
  if (this != &other) const Job ended(std::exchange(state_, std::move(other.state_)));
  return *this;
}

Job::~Job() {
  if (!state_) return;
  WEFT_CHECK(std::this_thread::get_id() != state_->thread.get_id(),
             "a Job was destroyed in one of its own callbacks: its destructor would wait for "
             "that callback");
  if (phase() != Phase::ended) cancel();
}

Job Job::start(JobRequest request) {
  auto state = std::make_unique<State>(std::move(request));
  std::future<void> started = state->started.get_future();
  state->thread = start_job_thread("weft.job", [state = state.get()] { state->run(); });
  started.get();
  return Job(std::move(state));
}

void Job::stop() {
  if (state_) state_->control.stop("Job::stop() was called");
}

void Job::cancel() {
  if (state_) state_->control.cancel("Job::cancel() was called");
}

PostedCommand Job::post(const Command& command) {
  if (!state_) {
    fail(Errc::invalid_argument,
         "Job::post() was called on an empty Job: use a Job that Trainer::start() returned");
  }
  return state_->control.posts().post(command);
}

void Job::wait() const {
  if (!state_) return;
  state_->require_other_thread("wait()");
  state_->control.wait_ended({});
}

bool Job::wait_for(std::chrono::nanoseconds time) const {
  if (!state_) return true;
  state_->require_other_thread("wait_for()");
  return state_->control.wait_ended(time);
}

Result Job::result() const {
  if (!state_) {
    fail(Errc::invalid_argument,
         "Job::result() was called on an empty Job: use a Job that Trainer::start() returned");
  }
  state_->require_other_thread("result()");
  state_->control.wait_ended({});
  if (state_->thrown) std::rethrow_exception(state_->thrown);
  return state_->result;
}

Job::Phase Job::phase() const { return state_ ? state_->control.phase() : Phase::ended; }

Metrics Job::latest() const { return state_ ? state_->control.latest() : Metrics(); }

JobInfo Job::info() const { return state_ ? state_->control.info() : JobInfo(); }

int Job::fd() const { return state_ ? state_->control.ended_fd() : -1; }

}  // namespace weft
