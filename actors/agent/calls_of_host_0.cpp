#include "actors/agent/calls_of_host_0.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// The longest interval of the attempts to reach host 0.
constexpr std::chrono::milliseconds kTryIntervalMax{2000};
/// The longest time to wait for host 0's next job with one connection. It is long, because host 0's
/// kernel also keeps each connection that the agent has given up.
constexpr std::chrono::hours kIdlePatience{24};
/// If another process still has this host's place, an agent waits for the time after which the
/// trainer counts a silent host as lost, and for kTakenPatience more. It asks every kTakenInterval.
constexpr std::chrono::seconds kTakenPatience{3};
constexpr std::chrono::milliseconds kTakenInterval{200};
/// An agent gives up when it hasn't reached host 0 for this time. A shorter failure may be due to a
/// trainer that has just ended with its job.
constexpr std::chrono::seconds kFailingPatience{60};

/// Connects for the agent's call. An agent that reached host 0 in an earlier call waits for
/// kFailingPatience at most, because host 0 has begun this call, and accepts connections until its
/// call ends.
std::unique_ptr<AgentLink> connect_to_host_0(const AgentJob& job,
                                             const AgentLink::OnEvent& on_event) {
  const std::chrono::milliseconds timeout = job.spec.timeout();
  if (job.fit_number == 1 || timeout <= kFailingPatience) {
    return AgentLink::connect(job.spec.place, timeout, on_event);
  }
  try {
    return AgentLink::connect(job.spec.place, kFailingPatience, on_event);
  } catch (const Error& error) {
    if (error.code() != Errc::timeout) throw;
    fail(Errc::peer_lost,
         "host {} is at fit() #{}, but host 0 hasn't been reached for {} s since fit() #{}, so it "
         "has ended, or has given up this call; its own output says why",
         job.spec.place.index, job.fit_number, kFailingPatience.count(), job.fit_number - 1);
  }
}

}  // namespace

std::string outcome_on_host_0(const FitCalls& calls, const AgentJob& job) {
  const std::string& outcome = calls.outcomes.at(static_cast<std::size_t>(job.fit_number - 1));
  if (!outcome.empty()) return outcome;
  fail(Errc::mesh_mismatch,
       "host {} is at fit() #{}, but host 0 is at #{}, and doesn't know how #{} has ended there: "
       "all hosts must make the same calls in the same order, each after the end of the one before",
       job.spec.place.index, job.fit_number, calls.number, job.fit_number);
}

std::unique_ptr<AgentLink> connect_for(const AgentJob& job, FitCalls& calls,
                                       const AgentLink::OnEvent& on_event) {
  const Clock::time_point deadline = Clock::now() + job.spec.timeout();
  for (;;) {
    auto link = connect_to_host_0(job, on_event);
    try {
      calls = link->join({}).calls;
      if (calls.number >= job.fit_number) return link;
    } catch (const Error& error) {
      // The trainer of the call before may end while it is asked.
      if (error.code() != Errc::peer_lost || Clock::now() >= deadline) throw;
    }
    if (Clock::now() >= deadline) {
      fail(Errc::timeout,
           "host {} is at fit() #{}, but host 0 is still at #{} after backend.timeout_s = {}: all "
           "hosts must make the same calls in the same order",
           job.spec.place.index, job.fit_number, calls.number, job.spec.timeout_s);
    }
    std::this_thread::sleep_for(kTryInterval);
  }
}

HostWelcome join_job(AgentLink& link, const HostJoin& join, std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout + kTakenPatience;
  bool is_told = false;
  for (;;) {
    HostWelcome welcome = link.join(join);
    if (welcome.taken.empty()) return welcome;
    if (Clock::now() >= deadline) {
      fail(Errc::mesh_mismatch, "host {} can't join the job: {}", join.host, welcome.taken);
    }
    if (!std::exchange(is_told, true)) {
      logger("weft.trainer")
          ->warn("{}; this process waits, because that one may be lost", welcome.taken);
    }
    std::this_thread::sleep_for(kTakenInterval);
  }
}

std::optional<std::string> wait_for_next_job(const AgentJob& job, const std::string& process) {
  std::optional<Clock::time_point> failing_since;
  FitCalls calls{.process = process, .number = job.fit_number};
  // While host 0's trainer of the old job runs validations, it answers each time at once.
  std::chrono::milliseconds interval = kTryInterval;
  while (calls.process == process && calls.number <= job.fit_number) {
    std::this_thread::sleep_for(interval);
    interval = std::min(2 * interval, kTryIntervalMax);
    try {
      const auto link =
          AgentLink::connect_once(job.spec.place, kIdlePatience, [](const AgentEvent&) {});
      calls = link->join({}).calls;  // the trainer may still be that of the old job
      failing_since.reset();
    } catch (const Error& error) {
      if (error.code() == Errc::unavailable) return {};
      const Clock::time_point now = Clock::now();
      failing_since = failing_since.value_or(now);
      if (error.code() == Errc::timeout) failing_since.reset();  // host 0's kernel still answers
      if (failing_since && now - *failing_since > kFailingPatience) return {};
    }
  }
  if (calls.process != process) return {};
  return outcome_on_host_0(calls, job);
}

}  // namespace weft
