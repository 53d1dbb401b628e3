#include "actors/job/job_control.hpp"

#include <map>
#include <utility>

namespace weft {
namespace {

/// The jobs of this process by id.
struct KnownJobs {
  std::mutex mutex;
  std::map<std::string, JobControl*> jobs;  // guarded by mutex

  /// Returns the only object, which is never destroyed because a Job may be a static variable.
  static KnownJobs& instance() {
    static auto* const known = new KnownJobs;
    return *known;
  }
};

}  // namespace

JobControl::~JobControl() {
  KnownJobs& known = KnownJobs::instance();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.jobs, [this](const auto& entry) { return entry.second == this; });
}

void JobControl::cancel_job(const std::string& id, const std::string& why) {
  KnownJobs& known = KnownJobs::instance();
  const std::lock_guard lock(known.mutex);
  const auto found = known.jobs.find(id);
  if (found != known.jobs.end()) found->second->cancel(why);
}

std::string JobControl::actors_of(const std::string& id) {
  KnownJobs& known = KnownJobs::instance();
  const std::lock_guard lock(known.mutex);
  const auto found = known.jobs.find(id);
  if (found == known.jobs.end()) return {};
  const std::lock_guard of_job(found->second->mutex_);
  return found->second->actors_;
}

void JobControl::stop(std::string why) {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Job::Phase::ended) phase_ = Job::Phase::stopping;
  }
  requests_.push({Kind::stop, std::move(why)});
}

void JobControl::cancel(std::string why) {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Job::Phase::ended) phase_ = Job::Phase::stopping;
  }
  requests_.push({Kind::cancel, std::move(why)});
}

Job::Phase JobControl::phase() const {
  const std::lock_guard lock(mutex_);
  return phase_;
}

Metrics JobControl::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

JobInfo JobControl::info() const {
  const std::lock_guard lock(mutex_);
  return info_;
}

bool JobControl::wait_ended(std::optional<std::chrono::nanoseconds> timeout) const {
  std::unique_lock lock(mutex_);
  const auto has_ended = [this] { return phase_ == Job::Phase::ended; };
  if (timeout) return changed_.wait_for(lock, *timeout, has_ended);
  changed_.wait(lock, has_ended);
  return true;
}

void JobControl::begin(JobInfo info, const std::string& actors) {
  KnownJobs& known = KnownJobs::instance();
  const std::lock_guard lock(known.mutex);
  known.jobs[info.id] = this;
  const std::lock_guard of_this(mutex_);
  info_ = std::move(info);
  actors_ = actors;
}

void JobControl::runs() {
  const std::lock_guard lock(mutex_);
  if (phase_ == Job::Phase::starting) phase_ = Job::Phase::running;
}

void JobControl::reported(const Metrics& metrics) {
  const std::lock_guard lock(mutex_);
  latest_ = metrics;
}

void JobControl::ended() {
  {
    const std::lock_guard lock(mutex_);
    phase_ = Job::Phase::ended;
    ended_.wake();
  }
  changed_.notify_all();
}

}  // namespace weft
