#include "tools/weft/doctor/findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace weft::findings_test {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

/// Returns a machine about which the doctor finds nothing bad.
Machine good() {
  return {.shm = {.usable = true,
                  .total_bytes = 8 * kGiB,
                  .free_bytes = 7 * kGiB,
                  .huge_pages = "advise"},
          .limits = {.files = {.open = 10, .limit = 65536, .hard_limit = 65536}, .threads = 50},
          .cores = 4,
          .memory_available_bytes = 16 * kGiB,
          .numa_nodes = 1,
          .clock = {.has_tsc = true, .constant = true, .nonstop = true, .source = "tsc"}};
}

/// Returns the only bad finding about the machine good() after `change`.
Finding only(const std::function<void(Machine&)>& change) {
  Machine machine = good();
  change(machine);
  std::vector<Finding> found;
  for (const Finding& finding : examine(machine)) {
    EXPECT_EQ(finding.advice.empty(), finding.level == Level::good) << finding.what;
    if (finding.level != Level::good) found.push_back(finding);
  }
  EXPECT_EQ(found.size(), 1U);
  EXPECT_EQ(is_usable(found), found.empty() || found.front().level != Level::refusal);
  return found.empty() ? Finding{} : found.front();
}

void expect_words(const Finding& finding, std::initializer_list<const char*> words) {
  const std::string text = finding.what + " | " + finding.found + " | " + finding.advice;
  for (const char* word : words) EXPECT_NE(text.find(word), text.npos) << word << ": " << text;
}

TEST(Doctor, HasNoAdviceForAGoodMachine) {
  for (const Finding& finding : examine(good())) EXPECT_EQ(finding.advice, "") << finding.what;
  EXPECT_TRUE(is_usable(examine(good())));
}

TEST(Doctor, LooksAtSharedMemory) {
  const Finding none = only([](Machine& machine) { machine.shm.usable = false; });
  EXPECT_EQ(none.level, Level::refusal);
  expect_words(none, {"/dev/shm", "mount -t tmpfs"});
  const Finding small =
      only([](Machine& machine) { machine.shm.total_bytes = machine.shm.free_bytes = kGiB / 16; });
  EXPECT_EQ(small.level, Level::advice);
  expect_words(small, {"64 of 64 MiB free", "remount,size=1024m", "--shm-size=1024m"});
  expect_words(only([](Machine& machine) {
                 machine.shm.dead_jobs = 2;
                 machine.shm.dead_bytes = 412 << 20;
               }),
               {"dead jobs", "2 in /dev/shm, 412 MiB", "weft sweep"});
  expect_words(only([](Machine& machine) { machine.shm.huge_pages = "never"; }),
               {"huge pages", "remount,huge=advise"});
}

TEST(Doctor, ComparesCoresWithTheCgroupsQuota) {
  expect_words(only([](Machine& machine) { machine.quota_cores = 1.5; }),
               {"this cgroup may use the CPU time of 1.5 cores", "beyond 1 are throttled",
                "--cpus=4", "CPUQuota=400%"});
  Machine enough = good();
  enough.quota_cores = 4;
  EXPECT_TRUE(std::ranges::all_of(examine(enough), &std::string::empty, &Finding::advice));
}

TEST(Doctor, ComparesSharedMemoryWithTheCgroupsMemory) {
  expect_words(only([](Machine& machine) { machine.memory_quota_bytes = 2 * kGiB; }),
               {"2048 MiB for this cgroup", "--memory=8192m", "MemoryMax=8192M"});
}

TEST(Doctor, LooksAtLimits) {
  const Finding none = only([](Machine& machine) { machine.limits.files.limit = 16; });
  EXPECT_EQ(none.level, Level::refusal);
  expect_words(none, {"16 allowed, enough for 0 workers", "no job can run", "ulimit -n "});
  const Finding few = only([](Machine& machine) { machine.limits.files.limit = 50; });
  EXPECT_EQ(few.level, Level::advice);
  expect_words(few, {"50 allowed", "one worker for each core needs", "ulimit -n "});
  expect_words(only([](Machine& machine) { machine.limits.processes = 60; }),
               {"50 threads of this user, limit 60", "ulimit -u 98"});
  expect_words(
      only([](Machine& machine) { machine.limits.processes = machine.limits.processes_hard = 60; }),
      {"hard nproc 98", "limits.conf"});
  const Finding files = only([](Machine& machine) { machine.limits.file_bytes = kGiB; });
  EXPECT_EQ(files.level, Level::refusal);
  expect_words(files, {"at most 1024 MiB", "ulimit -f unlimited"});
}

TEST(Doctor, LooksAtTheClock) {
  expect_words(only([](Machine& machine) { machine.clock.source = "hpet"; }),
               {"the kernel uses hpet", "current_clocksource"});
  expect_words(only([](Machine& machine) { machine.clock.nonstop = false; }),
               {"not invariant", "+invtsc"});
  Machine other = good();
  other.clock = {};
  EXPECT_TRUE(std::ranges::all_of(examine(other), &std::string::empty, &Finding::advice));
}

TEST(Doctor, LooksAtNodesAndRights) {
  expect_words(only([](Machine& machine) { machine.numa_nodes = 2; }),
               {"NUMA nodes", "--bind cores"});
  expect_words(only([](Machine& machine) { machine.ptrace_scope = 1; }),
               {"ptrace_scope is 1", "kernel.yama.ptrace_scope=0", "SYS_PTRACE"});
}

TEST(Doctor, NamesAccelerators) {
  Machine machine = good();
  machine.accelerators = {"/dev/nvidia0", "/dev/nvidia1"};
  expect_words(examine(machine).back(), {"accelerators", "/dev/nvidia0, /dev/nvidia1"});
}

TEST(Doctor, ReadsAQuotaOfCores) {
  EXPECT_EQ(parse_cpu_max("200000 100000\n"), 2);
  EXPECT_EQ(parse_cpu_max("150000 100000"), 1.5);
  for (const char* text : {"max 100000", "-1 100000", "", "100000", "100000 0"}) {
    EXPECT_EQ(parse_cpu_max(text), 0) << text;
  }
}

}  // namespace
}  // namespace weft::findings_test
