#include "actors/job/job_outcome.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace weft {
namespace {

/// A SIGTERM that comes later than this after the first one is a new request, from a user who
/// doesn't want to wait.
constexpr std::chrono::seconds kOneRequest{2};

/// The time in which processes must end after a job that failed, and after one that ended well.
/// Then they are killed.
constexpr std::chrono::milliseconds kPatienceFailed{1000};
constexpr std::chrono::milliseconds kPatienceEnded{10000};

}  // namespace

JobOutcome::Actions JobOutcome::on_signal(int signal, std::string why, Time now) {
  note_request(EndedBy::signal);
  const bool is_repeated = signal == SIGTERM && first_term_ && now - *first_term_ <= kOneRequest;
  if (is_repeated) return {};
  const bool has_ended_as_told = first_term_ && job_ended_;
  if (own_failure_ || has_ended_as_told) {
    last_signal_ = signal;
    Actions actions{DropOutput{}};
    const bool patience_is_over = job_ended_ && !kill_at_;
    if (patience_is_over) end_if_stuck(actions);
    return actions;
  }
  if (signal != SIGTERM || first_term_) {
    return on_own_failure({.code = Errc::cancelled, .message = std::move(why)}, now);
  }
  first_term_ = now;
  return {Preempt{std::move(why)}};
}

void JobOutcome::note_request(EndedBy by) {
  if (requested_ == EndedBy::loops) requested_ = by;
}

JobOutcome::Actions JobOutcome::on_request(EndedBy by, std::string why, Time now) {
  note_request(by);
  if (by == EndedBy::stop) return {Preempt{std::move(why)}};
  return on_own_failure({.code = Errc::cancelled, .message = std::move(why)}, now);
}

JobOutcome::Actions JobOutcome::on_own_failure(Failure failure, Time now) {
  if (own_failure_) return {};
  own_failure_ = std::move(failure);
  came_late_ = job_ended_ && !job_failure_;
  if (kill_at_) kill_at_ = std::min(*kill_at_, now + kPatienceFailed);
  return {Cancel{own_failure_->code, own_failure_->message}};
}

JobOutcome::Actions JobOutcome::on_callback_threw() {
  callback_threw_ = true;
  return {Cancel{Errc::loop_failed, "a callback threw an exception"}};
}

void JobOutcome::on_job_ended(std::optional<Failure> failure, Time now) {
  job_ended_ = true;
  kill_at_ = now + (failure ? kPatienceFailed : kPatienceEnded);
  job_failure_ = std::move(failure);
}

/// Ends the program if its loop still runs although a SIGTERM or a second signal came, because a
/// thread that doesn't return can only be ended with its process.
void JobOutcome::end_if_stuck(Actions& actions) const {
  const int signal = last_signal_ != 0 ? last_signal_ : first_term_ ? SIGTERM : 0;
  if (local_loop_runs_ && signal != 0) actions.push_back(EndProgram{signal});
}

JobOutcome::Actions JobOutcome::on_time(Time now) {
  if (!kill_at_ || now < *kill_at_) return {};
  kill_at_.reset();
  Actions actions{KillProcesses{}};
  // The output of a job in the background may never be read, so it is dropped. A job in the
  // foreground waits until its output is read, for example by a pager.
  if (in_background_ || requested_ != EndedBy::loops) actions.push_back(DropOutput{});
  end_if_stuck(actions);
  if (local_loop_runs_) actions.push_back(WarnOfLoop{});
  return actions;
}

std::optional<Failure> JobOutcome::failure() const {
  if (job_failure_) return job_failure_;
  const bool is_too_late = own_failure_ && own_failure_->code == Errc::cancelled && came_late_;
  return is_too_late ? std::nullopt : own_failure_;
}

EndedBy JobOutcome::ended_by() const {
  if (callback_threw_) return EndedBy::callback;
  const std::optional<Failure> why = failure();
  if (!why) return EndedBy::loops;
  if (why->code != Errc::cancelled) return EndedBy::failure;
  // If nobody asked the trainer to cancel the job, it was preempted by a signal to a worker.
  return requested_ == EndedBy::loops ? EndedBy::signal : requested_;
}

}  // namespace weft
