#pragma once
/// JobControl: controls a running job from other threads, and shows its state.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <weft/job/job.hpp>

#include "actors/commands/command_posts.hpp"
#include "actors/process/wake_queue.hpp"

namespace weft {

/// Thread-safe.
class JobControl {
 public:
  enum class Kind : std::uint8_t { stop, cancel };
  struct Request {
    Kind kind = Kind::stop;
    std::string why;
  };

  JobControl() = default;
  ~JobControl();
  JobControl(const JobControl&) = delete;
  JobControl& operator=(const JobControl&) = delete;

  /// Cancels the job with this id, if this process has it.
  static void cancel_job(const std::string& id, const std::string& why);

  /// Returns the id of the actor system that the workers of a job of this process join; "": none.
  static std::string actors_of(const std::string& id);

  // Only the owner of the Job calls the following functions.
  void stop(std::string why);
  void cancel(std::string why);
  Job::Phase phase() const;
  Metrics latest() const;
  JobInfo info() const;
  CommandPosts& posts() { return posts_; }
  /// Waits until the job has ended. Returns false if `timeout` passed first.
  bool wait_ended(std::optional<std::chrono::nanoseconds> timeout) const;
  int ended_fd() const { return ended_.fd(); }

  // Only the thread that runs the job calls the following functions.
  WakeQueue<Request>& requests() { return requests_; }
  void begin(JobInfo info, const std::string& actors);
  void runs();
  void reported(const Metrics& metrics);
  void ended();

 private:
  CommandPosts posts_;
  WakeQueue<Request> requests_;
  WakeFd ended_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Job::Phase phase_ = Job::Phase::starting;
  Metrics latest_;
  JobInfo info_;
  std::string actors_;  ///< the result of actors_of() for this job
};

}  // namespace weft
