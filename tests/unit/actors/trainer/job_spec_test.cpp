#include "actors/trainer/job_spec.hpp"

#include <gtest/gtest.h>

#include <weft/inspect/log.hpp>

#include "actors/process/log.hpp"

namespace weft::job_spec_test {
namespace {

/// Returns the warnings of say_resources() about a job of these workers and chips on 2 cores.
std::vector<std::string> warnings(int workers, int chips) {
  const LogScope scope(JobLog::open({.who = "trainer", .file = ""}));
  std::vector<std::string> texts;
  set_log_sink([&](const LogRecord& record) {
    if (record.level == LogLevel::warn) texts.emplace_back(record.text);
  });
  JobSpec spec;
  spec.num_workers = workers;
  spec.chips_per_worker = chips;
  say_resources(spec, 1, 2, 0);
  set_log_sink({});
  return texts;
}

TEST(SayResources, WarnsOnceOfChipsFarAboveTheCores) {
  const std::vector<std::string> texts = warnings(64, 1);
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_NE(texts[0].find("64 workers with 1 chips are 64 threads on 2 cores"), std::string::npos)
      << texts[0];
  EXPECT_NE(texts[0].find("use fewer workers or chips"), std::string::npos) << texts[0];
  EXPECT_EQ(warnings(8, 8).size(), 1U);
}

TEST(SayResources, DoesNotWarnOfSixteenChipsPerCore) {
  EXPECT_EQ(warnings(32, 1), std::vector<std::string>());
  EXPECT_EQ(warnings(33, 1).size(), 1U);
}

}  // namespace
}  // namespace weft::job_spec_test
