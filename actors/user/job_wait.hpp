#pragma once
/// JobWait: a process of the user waits for a job. Parameters and ExperienceWriter use it. JobHost:
/// how the process finds the job, and how its threads wait.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weft/tensor/error.hpp>

#include "transport/published/row_sink.hpp"
#include "transport/published/version_source.hpp"

namespace weft {

class JobWait;

/// Finds jobs in the shared memory of this host. In a simulation of actors, finds its job instead.
class JobHost {
 public:
  using Clock = std::chrono::steady_clock;
  /// Waits at most so long, and returns whether the awaited thing has come.
  using WaitFor = std::function<bool(std::chrono::nanoseconds at_most)>;

  virtual ~JobHost() = default;
  virtual Clock::time_point now() const { return Clock::now(); }
  /// In a program, calls `wait_for` once, which waits a moment. In a simulation, waits until
  /// `wait_for` returns true, the actor of this thread is to stop, or `deadline` has come. Returns
  /// the last result of `wait_for`.
  virtual bool await(const WaitFor& wait_for, Clock::time_point deadline);
  /// Waits a moment for a job that hasn't made its memory yet. Throws not_found or unavailable if
  /// there is no such job any more.
  virtual void await_job(const JobWait& wait, Clock::time_point deadline);
  /// Throws not_found or unavailable if there is no such job any more.
  virtual void require_running(const JobWait& wait) const;
  /// Return null if the loop hasn't begun to publish, or to take rows, under this name.
  virtual std::shared_ptr<VersionSource> open_versions(const std::string& job,
                                                       const std::string& name);
  virtual std::shared_ptr<RowSink> open_rows(const std::string& job, const std::string& name);
  /// Returns the names under which the job publishes.
  virtual std::vector<std::string> published_names(const std::string& job) const;
};

/// A wait for a job of this user. `what` is for errors, such as 'Parameters "policy"'.
class JobWait {
 public:
  /// Throws invalid_argument if `job` is no job id.
  JobWait(std::string what, std::string_view job, double timeout_s, std::stop_token stop,
          std::shared_ptr<JobHost> host);

  using Clock = JobHost::Clock;

  const std::string& what() const { return what_; }
  const std::string& job() const { return job_; }
  double timeout_s() const { return timeout_s_; }
  JobHost& host() const { return *host_; }

  /// Returns the time at which a wait that begins now ends. Throws invalid_argument on a thread
  /// that several actors share.
  Clock::time_point begin() const;
  /// Returns whether the wait must end. Throws cancelled if a stop was requested.
  bool is_late(Clock::time_point deadline) const;
  /// Throws not_found or unavailable if there is no such job any more.
  void require_running() const { host_->require_running(*this); }
  /// Called when the job has ended. If this is the wait of an actor, whose mesh is about to be
  /// stopped too, waits a moment for that, and then throws cancelled.
  void let_stop_come() const;

 private:
  std::string what_;
  std::string job_;
  double timeout_s_;
  std::stop_token stop_;
  std::shared_ptr<JobHost> host_;
};

/// The error of a wait for a job that has ended before it made what is waited for.
Error job_never_made_error(const JobWait& wait);

/// Returns this process's T(job, name), which all users of the name share, so that the process
/// counts as one. Throws the errors of the constructor.
template <typename T>
std::shared_ptr<T> shared_in_process(const std::string& job, const std::string& name) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::weak_ptr<T>> known;
  const std::lock_guard lock(mutex);
  std::weak_ptr<T>& entry = known[{job, name}];
  std::shared_ptr<T> object = entry.lock();
  if (object == nullptr) entry = object = std::make_shared<T>(job, name);
  return object;
}

}  // namespace weft
