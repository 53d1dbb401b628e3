// Simulates jobs whose workers die at random moments. Each job must end like an undisturbed job, or
// for a valid reason. WEFT_TEST_SEED=<seed> simulates one job again; WEFT_TEST_FAILURES=<count>
// runs jobs until this number of workers have died.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "tests/support/recovery_sim.hpp"

namespace weft::recovery_sim_test {
namespace {

using testing::BrokenRule;
using testing::SimResult;
using testing::simulate_recovery;

TEST(RecoverySim, NoLossIsSeenInWhatAJobLeaves) {
  if (const char* seed = std::getenv("WEFT_TEST_SEED")) {
    const SimResult result = simulate_recovery(std::stoull(seed));
    EXPECT_TRUE(result.violation.empty()) << result.violation;
    return;
  }
  const char* count = std::getenv("WEFT_TEST_FAILURES");
  const std::uint64_t least = count != nullptr ? std::stoull(count) : 20'000;
  std::uint64_t failures = 0, jobs = 0, succeeded = 0, preempted = 0, events = 0, largest = 0;
  for (std::uint64_t seed = 0; failures < least; ++seed) {
    const SimResult result = simulate_recovery(seed);
    ASSERT_TRUE(result.violation.empty()) << result.violation;
    failures += result.failures;
    events += result.events;
    succeeded += result.succeeded ? 1U : 0U;
    preempted += result.preempted ? 1U : 0U;
    largest += result.workers == 64 ? 1U : 0U;
    ++jobs;
  }
  RecordProperty("failures", std::to_string(failures));
  RecordProperty("jobs", std::to_string(jobs));
  RecordProperty("succeeded", std::to_string(succeeded));
  RecordProperty("preempted", std::to_string(preempted));
  RecordProperty("jobs_of_64_workers", std::to_string(largest));
  RecordProperty("events", std::to_string(events));
  EXPECT_GT(largest, 0U);
  EXPECT_GT(preempted, jobs / 20);
  EXPECT_GT(succeeded, jobs * 11 / 25);
}

/// Simulates jobs that break `rule` until the checks notice it. Returns the number of these jobs,
/// or 0 if no check notices it.
std::uint64_t jobs_to_find(BrokenRule rule) {
  constexpr std::uint64_t kMost = 3000;
  for (std::uint64_t seed = 0; seed < kMost; ++seed) {
    if (!simulate_recovery(seed, rule).violation.empty()) return seed + 1;
  }
  return 0;
}

TEST(RecoverySim, FindsEveryRuleThatIsBroken) {
  constexpr std::pair<const char*, BrokenRule> kRules[] = {
      {"update_waits", BrokenRule::update_waits},
      {"resume_at_least", BrokenRule::resume_at_least},
      {"commit_on_chip", BrokenRule::commit_on_chip},
      {"one_commit_per_step", BrokenRule::one_commit_per_step},
      {"age_of_blocks", BrokenRule::age_of_blocks},
      {"reset_of_commits", BrokenRule::reset_of_commits},
      {"filter", BrokenRule::filter},
      {"members_only", BrokenRule::members_only},
      {"wait_for_unwound", BrokenRule::wait_for_unwound},
      {"common_end", BrokenRule::common_end},
      {"one_keeps", BrokenRule::one_keeps},
      {"copy_of_kept", BrokenRule::copy_of_kept},
  };
  for (const auto& [name, rule] : kRules) {
    const std::uint64_t jobs = jobs_to_find(rule);
    EXPECT_NE(jobs, 0U) << name;
    RecordProperty(name, std::to_string(jobs));
  }
}

}  // namespace
}  // namespace weft::recovery_sim_test
