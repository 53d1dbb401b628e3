#pragma once
/// JobWait: makes Parameters and ExperienceWriter wait for a job. JobHost: finds the job and blocks
/// the threads that wait.

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

namespace detail {
class ActorHost;
}  // namespace detail
class JobWait;

/// Finds jobs in the shared memory of this host, or the simulated job in a simulation of actors.
class JobHost {
 public:
  using Clock = std::chrono::steady_clock;
  /// Waits at most `at_most`. Returns whether the awaited thing has come.
  using WaitFor = std::function<bool(std::chrono::nanoseconds at_most)>;

  virtual ~JobHost() = default;
  virtual Clock::time_point now() const { return Clock::now(); }
  /// In a program, calls `wait_for` once, which waits a moment. In a simulation, waits until
  /// `wait_for` returns true, the thread's actor must stop, or `deadline` has come. Returns the
  /// last result of `wait_for`.
  virtual bool await(const WaitFor& wait_for, Clock::time_point deadline);
  /// Waits a moment for a job that hasn't made its memory yet. Throws not_found or unavailable if
  /// the job doesn't exist any more.
  virtual void await_job(const JobWait& wait, Clock::time_point deadline);
  /// Throws not_found or unavailable if the job doesn't exist any more.
  virtual void require_running(const JobWait& wait) const;
  /// Open what the job publishes, or its receiver of rows, under this name. Return null if the loop
  /// hasn't made it yet.
  virtual std::shared_ptr<VersionSource> open_versions(const std::string& job,
                                                       const std::string& name);
  virtual std::shared_ptr<RowSink> open_rows(const std::string& job, const std::string& name);
  /// Returns the names under which the job publishes.
  virtual std::vector<std::string> published_names(const std::string& job) const;
};

/// A wait for a job of this user. `what` names the waiting object in errors, such as 'Parameters
/// "policy"'.
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
  /// that several actors share, because they must not wait.
  Clock::time_point begin() const;
  /// Returns whether the deadline has passed. Throws cancelled if a stop was requested.
  bool is_late(Clock::time_point deadline) const;
  /// Throws not_found or unavailable if the job doesn't exist any more.
  void require_running() const { host_->require_running(*this); }
  /// Called when the job has ended. If an actor waits and its mesh is about to be stopped too,
  /// waits a moment for the stop and then throws cancelled.
  void let_stop_come() const;

 private:
  std::string what_;
  std::string job_;
  double timeout_s_;
  std::stop_token stop_;
  std::shared_ptr<JobHost> host_;
};

/// While it lives, the table of actors shows that the actor of this thread waits for something that
/// the job has under this name: for room for rows if it `writes`, otherwise for a version.
class ShownJobWait {
 public:
  ShownJobWait(const JobWait& wait, const std::string& name, bool writes);
  ~ShownJobWait();
  ShownJobWait(const ShownJobWait&) = delete;
  ShownJobWait& operator=(const ShownJobWait&) = delete;

 private:
  const detail::ActorHost* host_ = nullptr;  ///< null if the thread runs no actor
};

/// Returns the error of a wait if the job has ended before it made the awaited object.
Error job_never_made_error(const JobWait& wait);

/// Returns T(job, name). All users in this process share the object, so that the process counts as
/// one user. Throws the errors of T's constructor.
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
