#pragma once
/// JobWait: a process of the user waits for a job. Parameters and ExperienceWriter use it.

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace weft {

/// A wait for a job of this user. `what` is for errors, such as 'Parameters "policy"'.
class JobWait {
 public:
  /// Throws invalid_argument if `job` is no job id.
  JobWait(std::string what, std::string_view job, double timeout_s, std::stop_token stop);

  using Clock = std::chrono::steady_clock;

  const std::string& what() const { return what_; }
  const std::string& job() const { return job_; }
  double timeout_s() const { return timeout_s_; }

  /// Returns the time at which a wait that begins now ends. Throws invalid_argument on a thread
  /// that several actors share.
  Clock::time_point begin() const;
  /// Returns whether the wait must end. Throws cancelled if a stop was requested.
  bool is_late(Clock::time_point deadline) const;
  /// Throws not_found or unavailable if there is no such job any more.
  void require_running() const;
  /// Called when the job has ended. If this is the wait of an actor, whose mesh is about to be
  /// stopped too, waits a moment for that, and then throws cancelled.
  void let_stop_come() const;
  /// Sleeps for a moment, for a job that hasn't made its memory yet.
  static void sleep();

 private:
  std::string what_;
  std::string job_;
  double timeout_s_;
  std::stop_token stop_;
};

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
