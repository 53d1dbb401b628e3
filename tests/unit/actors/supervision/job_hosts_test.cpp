/// Tests JobState in jobs on several hosts.

#include <gtest/gtest.h>

#include "actors/supervision/job_state.hpp"
#include "tests/support/action_text.hpp"

namespace weft::job_hosts_test {
namespace {

using testing::words;

/// Returns a job of two hosts with two workers each. All workers but the last have joined.
JobState almost_joined() {
  JobState job({.num_workers = 4, .num_hosts = 2, .timeout_s = 5});
  job.host_joined({.host = 1, .memory_id = "7", .machine = "node7"});
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
  job.host_joined({.host = 1, .memory_id = "7", .machine = "node7"});
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
  job.host_joined({.host = 1, .memory_id = "7", .machine = "node7"});
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

TEST(JobHosts, EndAJobThatSurvivesNoLoss) {
  JobState job = almost_joined();
  EXPECT_EQ(words(job.host_lost(1, "its link has ended", true, 0)), "cancel");
  EXPECT_EQ(job.failure()->code, Errc::peer_lost);
  EXPECT_EQ(job.failure()->message, "host 1 (node7, workers 2 to 3) is lost: its link has ended");
  EXPECT_TRUE(job.host_lost(1, "again", true, 0).empty());
}

/// A job of three hosts with one worker each, which survives losses.
class LostHosts : public ::testing::Test {
 protected:
  LostHosts() {
    for (int host = 1; host < 3; ++host) join_host(host, fmt::format("1{}", host));
    job_.started(0, 100);
    for (int worker = 0; worker < 3; ++worker) join(worker);
  }

  void join_host(int host, const std::string& memory_id, bool was_here = false) {
    job_.host_joined(
        {.host = host, .memory_id = memory_id, .machine = "node", .was_here = was_here});
    job_.started(host, 100 + host);
  }
  /// Lets a worker join. If it is the last to join, the loops begin; returns the action that starts
  /// them.
  Start join(int worker, std::uint64_t committed = 0) {
    job_.joined(worker, 100 + worker, committed);
    if (job_.phase() != JobPhase::preparing) return {};
    ++preparations_;
    job_.prepared(1, preparations_);
    const Actions actions = job_.prepared(2, preparations_);
    return std::get<Start>(actions.at(0));
  }
  /// Lets a living worker leave its loop.
  void unwind(int worker, std::uint64_t committed) {
    job_.unwound(worker, job_.generation(), committed);
  }
  Actions lose(int host, std::uint64_t committed, bool is_copied = true) {
    return job_.host_lost(host, "its agent has ended", is_copied, committed);
  }

  JobState job_{{.num_workers = 3,
                 .num_hosts = 3,
                 .recovery = {.max_failures = 9, .restart = Restart::worker},
                 .timeout_s = 5}};
  std::uint64_t preparations_ = 0;
};

TEST_F(LostHosts, AreReplacedByHostsThatGetTheState) {
  EXPECT_EQ(words(lose(2, 8)), "unwind, gather, warn");
  EXPECT_TRUE(job_.refuse_join(2, 102)) << "it is a process of the lost host";
  unwind(0, 8);
  unwind(1, 8);
  EXPECT_EQ(job_.phase(), JobPhase::gathering);
  join_host(2, "22");
  const Start start = join(2, 8);
  EXPECT_EQ(start.step, 8U);
  EXPECT_EQ(start.donors, (std::vector<std::int32_t>{-1, -1, 0}));
}

TEST_F(LostHosts, ComeBackWithTheirMemory) {
  lose(2, 8);
  unwind(0, 8);
  unwind(1, 8);
  join_host(2, "12", true);
  EXPECT_TRUE(join(2, 8).donors.empty()) << "the host that was cut off has the state";
}

TEST_F(LostHosts, ThatAreReplacedByAnotherMachineHaveNoState) {
  lose(2, 8);
  unwind(0, 8);
  unwind(1, 8);
  join_host(2, "99", true);
  EXPECT_EQ(join(2, 8).donors, (std::vector<std::int32_t>{-1, -1, 0}));
}

TEST_F(LostHosts, GetTheStateAgainUntilAllHaveMadeAStep) {
  lose(2, 8);
  unwind(0, 8);
  unwind(1, 8);
  join_host(2, "22");
  join(2, 8);
  // Host 2 may not have got all of the state before host 1 was lost.
  lose(1, 8);
  unwind(0, 8);
  unwind(2, 8);
  join_host(1, "21");
  EXPECT_EQ(join(1, 8).donors, (std::vector<std::int32_t>{-1, 0, 0}));
  // All chips have taken a step since, so every host has the state.
  lose(1, 9);
  unwind(0, 9);
  unwind(2, 9);
  join_host(1, "31");
  const Start start = join(1, 9);
  EXPECT_EQ(start.step, 9U);
  EXPECT_EQ(start.donors, (std::vector<std::int32_t>{-1, 0, -1}));
}

TEST_F(LostHosts, DivideTheirDonors) {
  lose(1, 8);
  lose(2, 8);
  unwind(0, 8);
  join_host(1, "21");
  join(1, 8);
  join_host(2, "22");
  EXPECT_EQ(join(2, 8).donors, (std::vector<std::int32_t>{-1, 0, 0}));
}

TEST_F(LostHosts, LeaveTheLastCheckpointIfTheyHadStateOfTheirOwn) {
  job_.checkpoints().save_ended({.step = 5, .path = "/saved"});
  lose(2, 8, false);
  unwind(0, 8);
  unwind(1, 8);
  join_host(2, "22");
  const Start start = join(2, 8);
  EXPECT_EQ(start.step, 5U);
  EXPECT_EQ(start.resume, "/saved");
  EXPECT_TRUE(start.donors.empty());
}

TEST_F(LostHosts, AreOneIncident) {
  lose(2, 8);
  EXPECT_TRUE(job_.link_down(2).empty() || job_.recovery().incidents() == 1);
  job_.link_grace_over(2, 1, {}, 8);
  job_.process_ended({.worker = 1, .pid = 101, .signal = 9}, {}, 8);
  EXPECT_EQ(job_.recovery().incidents(), 1);
  EXPECT_TRUE(lose(2, 8).empty()) << "it is lost already";
}

TEST_F(LostHosts, AreAwaitedByName) {
  lose(2, 8);
  unwind(0, 8);
  unwind(1, 8);
  EXPECT_EQ(words(job_.gather_deadline(2)), "cancel");
  EXPECT_NE(job_.failure()->message.find("host 2 (worker 2) has not joined"), std::string::npos)
      << job_.failure()->message;
}

TEST_F(LostHosts, AreABetterReasonThanABrokenWire) {
  const WireLost lost{.worker = 0, .generation = 1, .chip = 0, .peer = 2, .why = "reset"};
  EXPECT_EQ(words(job_.wire_lost(lost)), "wire grace 1");
  EXPECT_TRUE(job_.wire_lost(lost).empty()) << "the first one is enough";
  lose(2, 8);
  EXPECT_TRUE(job_.wire_grace_over(1, 8).empty());
}

TEST_F(LostHosts, AreNotNeededToBeginAgainAfterABrokenWire) {
  job_.wire_lost({.worker = 0, .generation = 1, .chip = 0, .peer = 2, .why = "reset"});
  EXPECT_EQ(words(job_.wire_grace_over(1, 8)), "unwind, gather") << "no process is killed";
  EXPECT_EQ(job_.recovery().incidents(), 1);
  unwind(0, 8);
  unwind(1, 8);
  unwind(2, 8);
  EXPECT_EQ(job_.phase(), JobPhase::preparing);
}

TEST_F(LostHosts, AreTheirsWhoseProcessHeldThePlaceLast) {
  EXPECT_TRUE(job_.hosts().holds(2, "12"));
  EXPECT_FALSE(job_.hosts().holds(2, "22"));
  lose(2, 8);
  EXPECT_FALSE(job_.hosts().holds(2, "12"));
}

}  // namespace
}  // namespace weft::job_hosts_test
