/// The part of JobState that handles several hosts.

#include <gtest/gtest.h>

#include "actors/supervision/job_state.hpp"
#include "tests/support/action_text.hpp"

namespace weft::job_hosts_test {
namespace {

using testing::words;

/// Returns a job of two hosts with two workers each, of which all but the last have joined.
JobState almost_joined() {
  JobState job({.num_workers = 4, .num_hosts = 2, .timeout_s = 5});
  job.hosts().joined(1, "node7");
  for (int w = 0; w < 3; ++w) {
    job.started(w, 100 + w);
    EXPECT_TRUE(job.joined(w, 100 + w, 0).empty());
  }
  job.started(3, 103);
  return job;
}

TEST(JobHosts, StartOnlyWhenAllArePrepared) {
  JobState job = almost_joined();
  EXPECT_EQ(words(job.joined(3, 103, 0)), "prepare at 0");
  EXPECT_EQ(job.phase(), JobPhase::preparing);
  EXPECT_TRUE(job.prepared(1, 7).empty()) << "the answer to another order";
  EXPECT_EQ(words(job.prepared(1, 1)), "start at 0, grant 64");
  EXPECT_TRUE(job.prepared(1, 1).empty());
  EXPECT_EQ(job.phase(), JobPhase::running);
}

TEST(JobHosts, GatherAgainIfAWorkerIsLostWhileTheyArePrepared) {
  JobState job({.num_workers = 2,
                .num_hosts = 2,
                .recovery = {.max_failures = 1, .restart = Restart::worker},
                .timeout_s = 5});
  job.hosts().joined(1, "node7");
  for (int w = 0; w < 2; ++w) {
    job.started(w, 100 + w);
    job.joined(w, 100 + w, 0);
  }
  EXPECT_EQ(job.phase(), JobPhase::preparing);
  job.link_down(1);
  const auto lost = job.process_ended({.worker = 1, .pid = 101, .signal = 9}, {}, 0);
  EXPECT_EQ(words(lost), "launch 1");
  EXPECT_EQ(job.phase(), JobPhase::gathering);
  EXPECT_TRUE(job.prepared(1, 1).empty()) << "the workers gather";
  job.started(1, 201);
  EXPECT_EQ(words(job.joined(1, 201, 0)), "prepare at 0");
  EXPECT_EQ(words(job.prepared(1, 2)), "start at 0, grant 64");
}

TEST(JobHosts, RefuseHostsThatContradict) {
  JobState job({.num_workers = 4, .num_hosts = 2, .timeout_s = 5});
  EXPECT_NE(job.hosts().refuse(1, 3)->find("host 1 has WEFT_HOSTS = 3, but host 0 has 2"),
            std::string::npos);
  EXPECT_NE(job.hosts().refuse(2, 2)->find("WEFT_HOST_INDEX = 2: expected 1 to 1"),
            std::string::npos);
  EXPECT_NE(job.hosts().refuse(0, 2)->find("WEFT_HOST_INDEX = 0"), std::string::npos);
  EXPECT_FALSE(job.hosts().refuse(1, 2));
  job.hosts().joined(1, "node7");
  EXPECT_NE(job.hosts().refuse(1, 2)->find("two hosts have WEFT_HOST_INDEX = 1: node7"),
            std::string::npos);
}

TEST(JobHosts, NameThoseThatHaveNotJoined) {
  JobState job({.num_workers = 4, .num_hosts = 2, .timeout_s = 5});
  job.started(0, 100);
  job.joined(0, 100, 0);
  job.started(1, 101);
  EXPECT_EQ(words(job.gather_deadline(1)), "cancel");
  EXPECT_NE(job.failure()->message.find(
                "host 1 (workers 2 to 3) has not joined, worker 1 (pid 101) has not joined"),
            std::string::npos)
      << job.failure()->message;
}

TEST(JobHosts, NameThoseThatAreNotPrepared) {
  JobState job = almost_joined();
  job.joined(3, 103, 0);
  EXPECT_EQ(words(job.gather_deadline(1)), "cancel");
  EXPECT_EQ(job.failure()->message,
            "the memory of host 1 (node7, workers 2 to 3) was not ready within backend.timeout_s = "
            "5: the log of that host in its run folder may say why");
}

TEST(JobHosts, EndTheJobWhenOneIsLost) {
  JobState job = almost_joined();
  EXPECT_EQ(words(job.host_lost(1, "its link has ended")), "cancel");
  EXPECT_EQ(job.failure()->code, Errc::peer_lost);
  EXPECT_EQ(job.failure()->message, "host 1 (node7, workers 2 to 3) is lost: its link has ended");
  EXPECT_TRUE(job.host_lost(1, "again").empty());
}

}  // namespace
}  // namespace weft::job_hosts_test
