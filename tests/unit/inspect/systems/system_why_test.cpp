/// Tests that `why` names the cause for which an actor system doesn't continue.

#include "inspect/systems/system_why.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/inspect/systems/made_system.hpp"

namespace weft::system_why_test {
namespace {

using testing::MadeSystem;

std::string note_of(const Root& root, const std::string& label) {
  std::string text;
  for (const Note& note : root.notes) {
    if (note.label == label) text += (text.empty() ? "" : "; ") + note.text;
  }
  return text;
}

Why why_of(const MadeSystem& system) { return explain_system(system.snapshot, system.snapshot); }

TEST(SystemWhy, FindsNothingWhereAllAreIdle) {
  MadeSystem system(2);
  system.add("policy", {"act"}, {0, 1});
  const Why why = why_of(system);
  EXPECT_EQ(why.verdict, Verdict::well);
  EXPECT_TRUE(why.roots.empty());
  EXPECT_NE(why.summary.find("2 actors in 1 meshes"), std::string::npos) << why.summary;
}

TEST(SystemWhy, NamesTheFunctionForWhichOthersWait) {
  MadeSystem system(3);
  const auto policy = system.add("policy", {"act", "reset"}, {1});
  const auto rollouts = system.add("rollouts", {"length"}, {2, 2, 2});
  system.run(policy, 0, 0, 30);
  for (std::uint32_t i = 0; i < 2; ++i) {
    system.run(rollouts + i, 0, 0, 20);
    system.wait_for(rollouts + i, policy, 1);
  }
  const Why why = why_of(system);
  EXPECT_EQ(why.verdict, Verdict::hung);
  ASSERT_EQ(why.roots.size(), 1) << to_text(why);
  const Root& root = why.roots.front();
  EXPECT_EQ(root.cause, Cause::busy);
  EXPECT_EQ(root.headline, "policy[0] (pid 4701), in act() for 30 s");
  EXPECT_EQ(note_of(root, "waits"), "the program in policy.act; rollouts[0, 1] in policy.reset");
  EXPECT_FALSE(root.fix.empty());
}

TEST(SystemWhy, BlamesNobodyBeforeTheTimeIsUp) {
  MadeSystem system(2);
  const auto policy = system.add("policy", {"act"}, {1});
  system.run(policy, 0, 0, 3);
  const Why why = why_of(system);
  EXPECT_EQ(why.verdict, Verdict::waits);
  EXPECT_TRUE(why.roots.empty());
  EXPECT_EQ(explain_system(system.snapshot, system.snapshot, {.patience_s = 2}).verdict,
            Verdict::hung);
}

TEST(SystemWhy, LeavesAFunctionAloneForWhichNobodyWaits) {
  MadeSystem system(2);
  const auto policy = system.add("policy", {"act"}, {1});
  system.run(policy, 0, 0, 1000);
  system.actor(policy).is_awaited = false;
  const Why why = why_of(system);
  EXPECT_EQ(why.verdict, Verdict::well);
  EXPECT_NE(why.summary.find("policy[0].act for"), std::string::npos) << why.summary;
}

TEST(SystemWhy, LeavesAnActorAloneThatBeganAnotherFunction) {
  MadeSystem before(2);
  const auto policy = before.add("policy", {"act"}, {1});
  MadeSystem now = before;
  before.run(policy, 0, 0, 50);
  now.run(policy, 0, 0, 20);
  EXPECT_EQ(explain_system(before.snapshot, now.snapshot).verdict, Verdict::well);
}

TEST(SystemWhy, NamesACircleOfCalls) {
  MadeSystem system(3);
  const auto a = system.add("a", {"f", "h"}, {0});
  const auto b = system.add("b", {"g"}, {1});
  const auto c = system.add("c", {"k"}, {2});
  system.run(a, 0, 2, 1);
  system.run(b, 0, 0, 1);
  system.run(c, 0, 0, 0.5);
  system.wait_for(a, b, 0);
  system.wait_for(b, a, 1);
  system.wait_for(c, a, 1);
  const Why why = why_of(system);
  EXPECT_EQ(why.verdict, Verdict::hung);
  ASSERT_EQ(why.roots.size(), 1) << to_text(why);
  const Root& root = why.roots.front();
  EXPECT_EQ(root.cause, Cause::deadlock);
  EXPECT_EQ(root.headline, "a circle of calls: a[0].f > b[0].g > a[0].h, for 1.0 s");
  EXPECT_NE(note_of(root, "waits").find("c[0]"), std::string::npos) << to_text(why);
  EXPECT_EQ(root.pids, (std::vector{4700, 4701}));
}

PipeUser actor_of(std::uint32_t row) { return {.is_known = true, .slot = 0, .row = row}; }

TEST(SystemWhy, NamesACircleWithPipes) {
  MadeSystem system(3);
  const auto a = system.add("a", {"f"}, {1});
  const auto b = system.add("b", {"g"}, {2});
  system.run(a, 0, 0, 60);
  system.run(b, 0, 0, 60);
  system.actor(b).is_awaited = false;
  system.wait_at_pipe(a, true, actor_of(b), 8);
  system.wait_at_pipe(b, true, actor_of(a), 9);
  const Why why = why_of(system);
  EXPECT_EQ(why.verdict, Verdict::hung);
  ASSERT_EQ(why.roots.size(), 1) << to_text(why);
  const Root& root = why.roots.front();
  EXPECT_EQ(root.cause, Cause::deadlock);
  EXPECT_EQ(root.headline, "a circle of waits: a[0].f > b[0].g > a[0], for 8.0 s");
  EXPECT_EQ(note_of(root, "pipe"),
            "a[0] waits for room in a pipe that b[0] reads; b[0] waits for "
            "room in a pipe that a[0] reads");
  EXPECT_EQ(note_of(root, "waits"), "the program");
  EXPECT_EQ(root.pids, (std::vector{4701, 4702}));

  system.wait_at_pipe(a, true, actor_of(b), 2);
  EXPECT_EQ(why_of(system).verdict, Verdict::well) << "the wait is too short";
}

TEST(SystemWhy, NamesACircleOfACallAndAPipe) {
  MadeSystem system(3);
  const auto a = system.add("a", {"f"}, {1});
  const auto b = system.add("b", {"g"}, {2});
  system.run(a, 0, 0, 60);
  system.run(b, 0, 1, 60);
  system.wait_for(a, b, 0);
  system.wait_at_pipe(b, false, actor_of(a), 9);
  const Why why = why_of(system);
  ASSERT_EQ(why.roots.size(), 1) << to_text(why);
  EXPECT_EQ(why.roots.front().headline, "a circle of waits: a[0].f > b[0].g > a[0], for 9.0 s");
}

TEST(SystemWhy, NamesTheReaderOfAFullPipe) {
  MadeSystem system(3);
  const auto camera = system.add("camera", {"stream"}, {1});
  const auto viewer = system.add("viewer", {"show"}, {2});
  system.run(camera, 0, 0, 3600);
  system.run(viewer, 0, 0, 3600);
  system.actor(viewer).is_awaited = false;
  system.wait_at_pipe(camera, true, actor_of(viewer), 8);
  const Why why = why_of(system);
  ASSERT_EQ(why.roots.size(), 1) << to_text(why);
  EXPECT_EQ(why.roots[0].cause, Cause::busy);
  EXPECT_EQ(why.roots[0].headline, "viewer[0] (pid 4702), in show() for 60 min 0 s");
  EXPECT_EQ(note_of(why.roots[0], "waits"), "camera[0] for room in its pipe, for 8.0 s");

  system.wait_at_pipe(camera, true, actor_of(viewer), 0.01);
  EXPECT_EQ(why_of(system).verdict, Verdict::well) << "a stream isn't a hang";
}

TEST(SystemWhy, NamesWhoDoesntUseItsEndOfAPipe) {
  MadeSystem system(3);
  const auto camera = system.add("camera", {"stream"}, {1});
  const auto viewer = system.add("viewer", {"show"}, {2});
  system.run(camera, 0, 0, 60);
  system.wait_at_pipe(camera, true, actor_of(viewer), 8);
  Why why = why_of(system);
  ASSERT_EQ(why.roots.size(), 1) << to_text(why);
  EXPECT_EQ(why.roots[0].headline, "viewer[0] (pid 4702) has read nothing from its pipe for 8.0 s");

  system.wait_at_pipe(camera, true, {.is_known = true, .slot = 0}, 8);
  why = why_of(system);
  ASSERT_EQ(why.roots.size(), 1) << to_text(why);
  EXPECT_EQ(why.roots[0].headline,
            "the program (pid 4700) has read nothing from its pipe for 8.0 s");
  EXPECT_EQ(note_of(why.roots[0], "itself"), "waits for camera[0].stream");

  system.actor(camera).is_awaited = false;
  EXPECT_EQ(why_of(system).verdict, Verdict::well) << "nobody waits for the camera";
}

/// The loop of a job waits for rows of rollouts, which wait for a policy.
TEST(SystemWhy, FollowsALoopToTheActorForWhichItsRolloutsWait) {
  MadeSystem system(3);
  const auto policy = system.add("policy", {"act"}, {1});
  const auto rollouts = system.add("rollouts", {"length"}, {2, 2});
  const std::size_t job = system.add_job(1, {2});
  system.run(policy, 0, 2, 30);
  for (std::uint32_t i = 0; i < 2; ++i) {
    system.run(rollouts + i, 0, 0, 20);
    system.actor(rollouts + i).is_awaited = false;
    system.wait_for(rollouts + i, policy, 0);
  }
  system.wait_for_rows(job, 12);
  const Why why = why_of(system);
  ASSERT_EQ(why.roots.size(), 1U) << to_text(why);
  EXPECT_EQ(why.roots[0].headline, "policy[0] (pid 4701), in act() for 30 s");
  EXPECT_EQ(note_of(why.roots[0], "waits"),
            "rollouts[0, 1] in policy.act; job walk for rows of \"steps\" (117 of 512 rows of step "
            "204), for 12 s");
}

TEST(SystemWhy, NamesActorsThatTakeLongToWriteRows) {
  MadeSystem system(2);
  const auto rollouts = system.add("rollouts", {"length"}, {1, 1});
  const std::size_t job = system.add_job(0, {1});
  for (std::uint32_t i = 0; i < 2; ++i) {
    system.run(rollouts + i, 0, 0, 20);
    system.actor(rollouts + i).function.kind = ActorFunctionKind::work;
    system.actor(rollouts + i).is_awaited = false;
  }
  system.wait_for_rows(job, 12);
  const Why why = why_of(system);
  ASSERT_EQ(why.roots.size(), 1U) << to_text(why);
  EXPECT_EQ(why.roots[0].headline, "rollouts[0, 1] (longest pid 4701), in work() for 20 s");
  EXPECT_EQ(note_of(why.roots[0], "waits"),
            "job walk for rows of \"steps\" (117 of 512 rows of step 204), for 12 s");

  system.wait_for_rows(job, 1);
  EXPECT_EQ(why_of(system).verdict, Verdict::well) << "the loop hasn't waited for long";
}

TEST(SystemWhy, NamesActorsThatWriteNoRows) {
  MadeSystem system(3);
  system.add("rollouts", {"length"}, {1, 2});
  const std::size_t job = system.add_job(0, {1, 2});
  system.wait_for_rows(job, 12);
  const Why why = why_of(system);
  EXPECT_EQ(why.verdict, Verdict::hung);
  ASSERT_EQ(why.roots.size(), 1U) << to_text(why);
  EXPECT_EQ(why.roots[0].headline,
            "rollouts[0, 1] (pid 4701), without a function to run, while job walk waits for rows, "
            "for 12 s");
  EXPECT_EQ(why.roots[0].pids, (std::vector{4701, 4702}));
}

TEST(SystemWhy, NamesAJobThatDoesntContinue) {
  MadeSystem system(2);
  const auto rollouts = system.add("rollouts", {"length"}, {1, 1});
  const std::size_t job = system.add_job(0, {1});
  for (std::uint32_t i = 0; i < 2; ++i) {
    system.run(rollouts + i, 0, 0, 20);
    system.wait_for_job(rollouts + i, job, i == 0, 18);
  }
  EXPECT_TRUE(why_of(system).roots.empty()) << "the job runs";
  system.snapshot.jobs[job].state = "hung";
  const Why why = why_of(system);
  ASSERT_EQ(why.roots.size(), 1U) << to_text(why);
  EXPECT_EQ(why.roots[0].headline, "job walk (pid 4690) is hung at step 204, for 18 s");
  EXPECT_EQ(note_of(why.roots[0], "waits"),
            "rollouts[1] for a version of \"policy\", for 18 s; rollouts[0] for room for rows in "
            "\"steps\", for 18 s");
  EXPECT_EQ(why.roots[0].pids, std::vector{4690});
}

TEST(SystemWhy, NamesACircleOfALoopAndItsRollouts) {
  MadeSystem system(2);
  const auto rollouts = system.add("rollouts", {"length"}, {1});
  const std::size_t job = system.add_job(0, {1});
  system.run(rollouts, 0, 0, 20);
  system.wait_for_job(rollouts, job, false, 18);
  system.wait_for_rows(job, 17);
  const Why why = why_of(system);
  ASSERT_EQ(why.roots.size(), 1U) << to_text(why);
  EXPECT_EQ(why.roots[0].cause, Cause::deadlock);
  EXPECT_EQ(why.roots[0].headline,
            "a circle of waits: job walk > rollouts[0] > job walk, for 17 s");
  system.wait_for_rows(job, 0.01);
  EXPECT_TRUE(why_of(system).roots.empty()) << "rows have just come";
}

TEST(SystemWhy, NamesAnActorThatCallsItself) {
  MadeSystem system(1);
  const auto a = system.add("a", {"f", "h"}, {0});
  system.run(a, 0, 0, 1);
  system.wait_for(a, a, 1);
  const Why why = why_of(system);
  ASSERT_EQ(why.roots.size(), 1) << to_text(why);
  EXPECT_EQ(why.roots[0].headline, "a circle of calls: a[0].f > a[0].h, for 1.0 s");
}

/// b and c share a thread, which c occupies, so a call of b waits for c.
TEST(SystemWhy, FollowsAWaitToTheActorThatOccupiesTheThread) {
  MadeSystem system(2);
  const auto a = system.add("a", {"f"}, {0});
  const auto b = system.add("b", {"g"}, {1});
  const auto c = system.add("c", {"k"}, {1});
  system.actor(c).position.port = system.actor(b).position.port;
  system.run(a, 0, 0, 60);
  system.wait_for(a, b, 0);
  system.run(c, 0, 0, 50);
  system.actor(c).is_awaited = false;
  const Why why = why_of(system);
  ASSERT_EQ(why.roots.size(), 1) << to_text(why);
  EXPECT_EQ(why.roots[0].actor, "c[0]");
  EXPECT_EQ(note_of(why.roots[0], "waits"), "b[0], on the same thread");
}

TEST(SystemWhy, NamesAStoppedProcessInsteadOfItsActors) {
  MadeSystem system(2);
  const auto policy = system.add("policy", {"act"}, {1});
  system.run(policy, 0, 0, 30);
  system.snapshot.processes[1].process.state = 'T';
  const Why why = why_of(system);
  EXPECT_EQ(why.verdict, Verdict::hung);
  ASSERT_EQ(why.roots.size(), 1) << to_text(why);
  EXPECT_EQ(why.roots[0].cause, Cause::stopped);
  EXPECT_EQ(why.roots[0].fix, "kill -CONT 4701");
  EXPECT_EQ(note_of(why.roots[0], "has"), "policy[0]");
  MadeSystem before(2);
  before.add("policy", {"act"}, {1});
  EXPECT_TRUE(explain_system(before.snapshot, system.snapshot).roots.empty())
      << "the first look didn't see the stop";
}

TEST(SystemWhy, NamesADeadProcess) {
  MadeSystem system(2);
  system.add("policy", {"act"}, {1});
  system.snapshot.processes[1].process.state = 0;
  const Why why = why_of(system);
  EXPECT_EQ(why.verdict, Verdict::failed);
  ASSERT_EQ(why.roots.size(), 1);
  EXPECT_EQ(why.roots[0].cause, Cause::lost);
  system.snapshot.sees_processes = false;
  EXPECT_EQ(why_of(system).verdict, Verdict::well) << "its processes can't be seen";
}

TEST(SystemWhy, NamesMeshesThatFailedWithTheirFirstCause) {
  MadeSystem system(1);
  for (const char* name : {"a", "b", "c"}) system.add(name, {"f"}, {0});
  for (const int mesh : {0, 1}) {
    system.snapshot.meshes[static_cast<std::size_t>(mesh)].has_ended = true;
    system.snapshot.meshes[static_cast<std::size_t>(mesh)].cause = "a[0].f: no memory";
  }
  system.snapshot.meshes[2].has_ended = true;  // it was stopped, so it has no cause
  const Why why = why_of(system);
  EXPECT_EQ(why.verdict, Verdict::failed);
  ASSERT_EQ(why.roots.size(), 1) << to_text(why);
  EXPECT_EQ(why.roots[0].headline, "meshes a, b ended, with all their actors");
  EXPECT_EQ(note_of(why.roots[0], "says"), "a[0].f: no memory");
}

TEST(SystemWhy, SaysWhatADeadSystemDid) {
  MadeSystem system(2);
  const auto a = system.add("a", {"f"}, {0});
  const auto b = system.add("b", {"g"}, {1, 1});
  system.run(a, 0, 0, 1);
  system.run(b, 0, 0, 1);
  system.run(b + 1, 0, 0, 1);
  system.wait_for(a, b, 0);
  system.wait_for(b, a, 0);
  system.snapshot.is_held = false;
  for (SystemProcess& process : system.snapshot.processes) process.process.state = 0;
  const Why why = why_of(system);
  EXPECT_EQ(why.verdict, Verdict::failed);
  ASSERT_FALSE(why.roots.empty());
  EXPECT_EQ(why.roots[0].headline, "the program (pid 4700) is gone, and its actors with it");
  EXPECT_EQ(note_of(why.roots[0], "ran"), "a[0] in f(); b[0, 1] in g()");
}

}  // namespace
}  // namespace weft::system_why_test
