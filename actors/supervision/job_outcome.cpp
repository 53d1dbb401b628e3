#include "actors/supervision/job_outcome.hpp"

#include <csignal>
#include <utility>

namespace weft {
namespace {

/// A later SIGTERM is a request of its own: by someone who doesn't want to wait.
constexpr std::chrono::seconds kOneRequest{2};

}  // namespace

JobOutcome::SignalVerdict JobOutcome::on_signal(int signal, Time now) {
  on_request(EndedBy::signal);
  const bool is_repeated = signal == SIGTERM && first_term_ && now - *first_term_ <= kOneRequest;
  if (is_repeated) return SignalVerdict::ignore;
  const bool has_ended_as_told = first_term_ && job_ended_;
  if (own_failure_ || has_ended_as_told) return SignalVerdict::leave;
  if (signal != SIGTERM || first_term_) return SignalVerdict::cancel;
  first_term_ = now;
  return SignalVerdict::preempt;
}

void JobOutcome::on_request(EndedBy by) {
  if (requested_ == EndedBy::loops) requested_ = by;
}

bool JobOutcome::on_own_failure(Failure failure) {
  if (own_failure_) return false;
  own_failure_ = std::move(failure);
  came_late_ = job_ended_ && !job_failure_;
  return true;
}

void JobOutcome::on_job_ended(std::optional<Failure> failure) {
  job_ended_ = true;
  job_failure_ = std::move(failure);
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
  // Where nobody told the trainer, a worker was told by a signal of its own.
  return requested_ == EndedBy::loops ? EndedBy::signal : requested_;
}

}  // namespace weft
