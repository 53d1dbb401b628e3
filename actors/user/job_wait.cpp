#include "actors/user/job_wait.hpp"

#include <atomic>
#include <cstdint>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/user/actor_host.hpp"
#include "actors/user/waits.hpp"
#include "transport/blackbox/box_clock.hpp"
#include "transport/job/job_folder.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/segment.hpp"
#include "transport/memory/wait.hpp"
#include "transport/published/row_sender.hpp"
#include "transport/published/version_reader.hpp"

namespace weft {
namespace {

void sleep_for(std::chrono::nanoseconds time) {
  const std::atomic<std::uint32_t> nothing = 0;
  sleep_on(nothing, 0, time);
}

/// Opens the job's T of this name for this process. Returns null if the job hasn't made its memory
/// yet.
template <typename T>
std::shared_ptr<T> open_shared(const std::string& job, const std::string& name) {
  try {
    return shared_in_process<T>(job, name);
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
    return nullptr;
  }
}

}  // namespace

bool JobHost::await(const WaitFor& wait_for, Clock::time_point /*deadline*/) {
  return wait_for(kSleepSlice);
}

void JobHost::await_job(const JobWait& wait, Clock::time_point /*deadline*/) {
  require_running(wait);
  sleep_for(kSleepSlice);
}

void JobHost::require_running(const JobWait& wait) const {
  if (Segment::list(fmt::format("weft-{}-", wait.job())).empty()) {
    fail(Errc::not_found,
         "{}: this user has no running job {} on this host, or it has ended; `weft ps` lists the "
         "jobs",
         wait.what(), wait.job());
  }
  const std::string root = JobMemory::control_root_of(wait.job());
  if (root.empty() || JobLock::is_held(root, wait.job())) return;
  throw job_never_made_error(wait);
}

std::shared_ptr<VersionSource> JobHost::open_versions(const std::string& job,
                                                      const std::string& name) {
  return open_shared<VersionReader>(job, name);
}

std::shared_ptr<RowSink> JobHost::open_rows(const std::string& job, const std::string& name) {
  return open_shared<RowSender>(job, name);
}

std::vector<std::string> JobHost::published_names(const std::string& job) const {
  return PublishedMemory::names(job);
}

JobWait::JobWait(std::string what, std::string_view job, double timeout_s, std::stop_token stop,
                 std::shared_ptr<JobHost> host)
    : what_(std::move(what)),
      job_(job),
      timeout_s_(timeout_s),
      stop_(std::move(stop)),
      host_(std::move(host)) {
  if (is_job_id(job)) return;
  fail(Errc::invalid_argument, "{}: job = \"{}\": expected the {} hex digits of JobInfo::id", what_,
       job, kJobIdLength);
}

JobWait::Clock::time_point JobWait::begin() const {
  if (!ThreadRole::current().may_block) {
    fail(Errc::invalid_argument,
         "{}: it must wait for the job, and an actor that shares its thread with others may not: "
         "spawn its mesh with own_thread = true",
         what_);
  }
  return host_->now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_s_));
}

bool JobWait::is_late(Clock::time_point deadline) const {
  if (stop_.stop_requested()) fail(Errc::cancelled, "{}: the wait was cancelled", what_);
  return host_->now() >= deadline;
}

ShownJobWait::ShownJobWait(const JobWait& wait, const std::string& name, bool writes) {
  const ThreadRole& role = ThreadRole::current();
  if (!role.actor) return;
  host_ = role.host;
  host_->show_wait(AwaitedJob{.writes = writes,
                              .source = host_->job_source(wait.job(), name),
                              .since_ns = clock_ns(CLOCK_MONOTONIC)}
                       .word());
}

ShownJobWait::~ShownJobWait() {
  if (host_ != nullptr) host_->show_wait(0);
}

Error job_never_made_error(const JobWait& wait) {
  return {Errc::unavailable,
          fmt::format("{}: job {} has ended without making it", wait.what(), wait.job())};
}

void JobWait::let_stop_come() const {
  if (!stop_.stop_possible()) return;
  constexpr std::chrono::seconds kPatience{2};
  const auto sleep = [](std::chrono::nanoseconds at_most) {
    sleep_for(at_most);
    return false;
  };
  for (const auto until = host_->now() + kPatience; !is_late(until);) host_->await(sleep, until);
}

}  // namespace weft
