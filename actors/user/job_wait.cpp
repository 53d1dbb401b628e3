#include "actors/user/job_wait.hpp"

#include <atomic>
#include <cstdint>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/user/waits.hpp"
#include "transport/job/job_folder.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/segment.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

JobWait::JobWait(std::string what, std::string_view job, double timeout_s, std::stop_token stop)
    : what_(std::move(what)), job_(job), timeout_s_(timeout_s), stop_(std::move(stop)) {
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
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_s_));
}

bool JobWait::is_late(Clock::time_point deadline) const {
  if (stop_.stop_requested()) fail(Errc::cancelled, "{}: the wait was cancelled", what_);
  return Clock::now() >= deadline;
}

void JobWait::require_running() const {
  if (Segment::list(fmt::format("weft-{}-", job_)).empty()) {
    fail(Errc::not_found,
         "{}: this user has no running job {} on this host, or it has ended; `weft ps` lists the "
         "jobs",
         what_, job_);
  }
  const std::string root = JobMemory::control_root_of(job_);
  if (root.empty() || JobLock::is_held(root, job_)) return;
  fail(Errc::unavailable, "{}: job {} has ended without making it", what_, job_);
}

void JobWait::let_stop_come() const {
  if (!stop_.stop_possible()) return;
  constexpr std::chrono::seconds kPatience{2};
  for (const auto until = Clock::now() + kPatience; !is_late(until);) sleep();
}

void JobWait::sleep() {
  const std::atomic<std::uint32_t> nothing = 0;
  sleep_on(nothing, 0, kSleepSlice);
}

}  // namespace weft
