#include "inspect/why/explain.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include <nlohmann/json.hpp>

#include "tests/unit/inspect/made_job.hpp"

namespace weft::explain_test {
namespace {

using testing::MadeJob;

Why explain(const MadeJob& job) { return weft::explain(job.snapshot, job.snapshot); }

void expect_answer(const Why& why, int code, const std::string& text) {
  EXPECT_EQ(to_text(why), text);
  EXPECT_EQ(exit_code(why.verdict), code);
}

TEST(Why, NamesAStoppedWorker) {
  MadeJob job(4, 4);
  job.pass("fc1.weight.grad");
  job.wait_for(2, "fc2.weight.grad");
  job.process(2).state = 'T';
  expect_answer(explain(job), 10,
                "STOPPED  worker 2 (pid 4713), 41 s\n"
                "  after  all_reduce #1 'fc1.weight.grad' over {data}, step 5; never came to #2\n"
                "  waits  12 chips of workers 0, 1, 3 in all_reduce #2 'fc2.weight.grad' over "
                "{data}, step 5\n"
                "  mend   kill -CONT 4713\n");
}

TEST(Why, NamesAStoppedWorkerBeforeAnyoneWaits) {
  MadeJob before(2, 1);
  MadeJob now(2, 1);
  now.chip(0).step++;
  now.process(1).state = 'T';
  const Why why = weft::explain(before.snapshot, now.snapshot);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].cause, Cause::stopped);
  EXPECT_EQ(why.roots[0].workers, std::vector{1});
}

TEST(Why, AWorkerInADebuggerIsHeldAndNotHung) {
  MadeJob job(2, 1);
  job.process(1).state = 't';
  job.process(1).tracer = 812;
  job.process(1).tracer_name = "gdb";
  expect_answer(explain(job), 12,
                "HELD     worker 1 (pid 4712), in gdb (pid 812), 41 s\n"
                "  mend   continue or detach it in gdb\n");
}

TEST(Why, AWorkerThatWaitsForADiskIsNamed) {
  MadeJob job(2, 1);
  job.process(1).state = 'D';
  job.process(1).wchan = "folio_wait_bit";
  expect_answer(
      explain(job), 10,
      "DEVICE   worker 1 (pid 4712), waits for a disk or a device in folio_wait_bit, 41 s\n");
}

TEST(Why, NamesTheWorkerThatIsInItsOwnCodeAndTheUsersPartOfItsStack) {
  MadeJob before(2, 1);
  MadeJob now(2, 1);
  now.pass("a");
  now.wait_for(1, "b");
  before.snapshot = now.snapshot;
  before.snapshot.at_ns -= MadeJob::kSecond / 20;
  now.process(1).threads[0].state = 'R';
  now.process(1).threads[0].core_ns = MadeJob::kSecond / 20;
  now.look_at(1, {{.function = "memcpy", .object = "libc.so.6"},
                  {.function = "(anonymous namespace)::load_batch(int)",
                   .file = "train.cpp",
                   .line = 9,
                   .object = "app"},
                  {.function = "train", .file = "train.cpp", .line = 12, .object = "app"},
                  {.function = "weft::run_worker()", .object = "app"}});
  const Why why = weft::explain(before.snapshot, now.snapshot);
  expect_answer(why, 10,
                "BUSY     worker 1 (pid 4712), in its own code for 41 s, 100 % of a core\n"
                "  at     load_batch(int) train.cpp:9 < train train.cpp:12\n"
                "  after  all_reduce #1 'a' over {data}, step 5; never came to #2\n"
                "  waits  1 chip of worker 0 in all_reduce #2 'b' over {data}, step 5\n");
}

TEST(Why, ABusyWorkerIsNoHangBeforeThePatienceIsOver) {
  MadeJob job(2, 1);
  job.wait_for(1, "a");
  const Why why = weft::explain(job.snapshot, job.snapshot, {.patience_s = 60});
  EXPECT_EQ(why.verdict, Verdict::waits);
  EXPECT_EQ(exit_code(why.verdict), 0);
  EXPECT_EQ(why.summary, "nothing has moved for 41 s, a hang would be 60 s");
}

TEST(Why, SaysWhatABusyWorkerDoesForWeft) {
  MadeJob job(2, 1);
  job.worker(1).state = ActorState::compiling;
  job.wait_for(1, "a");
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].headline, "worker 1 (pid 4712), compiles for 41 s");
}

TEST(Why, WorkersThatAllWaitForTheirOwnMutexesAreOneDeadlock) {
  MadeJob job(4, 1);
  for (int w = 0; w < 4; ++w) {
    job.look_at(w, {{.function = "take_lock()", .file = "train.cpp", .line = 13, .object = "app"}},
                {.mutex_owner = 4711 + w});
  }
  expect_answer(explain(job), 10,
                "DEADLOCK workers 0-3, in their own code for 41 s: each waits for a mutex that its "
                "own threads hold\n"
                "  at     take_lock() train.cpp:13\n");
}

TEST(Why, ALoopThatWaitsForAThreadThatWaitsForItsMutexIsADeadlock) {
  MadeJob job(2, 1);
  job.look_at(1, {}, {.joins = 99});
  ThreadSight other{.stack = {.tid = 99}, .futex = {.mutex_owner = 4712}};
  job.snapshot.sights[0].threads.push_back(other);
  const Why why = explain(job);
  ASSERT_FALSE(why.roots.empty());
  EXPECT_EQ(why.roots[0].cause, Cause::deadlock);
  EXPECT_EQ(why.roots[0].mutex_owner, 4712);
}

TEST(Why, ChipsThatWaitForEachOtherInDifferentCollectivesDiverge) {
  MadeJob job(2, 2);
  job.enter(0, {"data"}, "a");
  job.enter(1, {"data"}, "a");
  job.enter(2, {"model"}, "b");
  job.enter(3, {"data"}, "c");
  job.enter(1, {"model"}, "d");  // 0 waits for 2, 2 for 3, 3 for nobody, 1 for 0
  job.snapshot.control->chips[3].announced[job.mesh().axis_atoms(0).mask() >> 1U] +=
      std::uint64_t{1} << 32;
  const Why why = explain(job);
  ASSERT_FALSE(why.roots.empty());
  EXPECT_EQ(why.roots[0].cause, Cause::diverged);
  EXPECT_EQ(exit_code(why.verdict), 10);
}

TEST(Why, AWorkerThatIsGoneComesBeforeOneThatIsStopped) {
  MadeJob job(3, 1);
  job.process(1).state = 'T';
  job.process(2).state = 0;
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 2U);
  EXPECT_EQ(why.roots[0].headline, "worker 2 (pid 4713), its process is gone, 41 s");
  EXPECT_EQ(why.roots[1].cause, Cause::stopped);
  EXPECT_EQ(why.verdict, Verdict::failed);
}

TEST(Why, AnErrorOfALoopIsTold) {
  MadeJob job(2, 1);
  job.worker(1).state = ActorState::failed;
  job.worker(1).last_error = "std::out_of_range: map::at";
  const Why why = explain(job);
  ASSERT_FALSE(why.roots.empty());
  EXPECT_EQ(why.roots[0].cause, Cause::failed);
  EXPECT_EQ(why.roots[0].headline, "worker 1 (pid 4712), step 4: std::out_of_range: map::at");
}

TEST(Why, ATrainerThatIsGoneIsLostAndSaysWhatIsKept) {
  MadeJob job(2, 1);
  job.snapshot.held = false;
  job.snapshot.arenas_named = true;
  for (ChipControl& chip : job.snapshot.control->chips) chip.committed = 7;
  expect_answer(explain(job), 10,
                "LOST     trainer (pid 4700), gone without an end of the job, last seen 41 s ago\n"
                "  kept   step 7, complete on 2 chips\n"
                "  mend   weft rescue 0123456789abcdef0123456789abcdef\n");
  EXPECT_EQ(explain(job).kept_step, 7U);
}

Why ended_with(const JobFailure& failure) {
  MadeJob job(4, 1);
  job.snapshot.live = job.snapshot.held = false;
  job.snapshot.status = JobStatus::failed;
  job.snapshot.end = JobEnd{.job = job.snapshot.job, .error = failure};
  return explain(job);
}

TEST(Why, OfAJobThatHasEndedItIsTheFirstCause) {
  expect_answer(ended_with({.code = "peer_lost",
                            .message = "worker 3 was killed",
                            .worker = 3,
                            .pid = 4714,
                            .signal = SIGKILL,
                            .step = 2852,
                            .collective = "all_reduce #9 'x'"}),
                10,
                "KILLED   worker 3 (pid 4714) by SIGKILL, step 2852\n"
                "  says   worker 3 was killed\n"
                "  in     all_reduce #9 'x'\n");
  expect_answer(ended_with({.code = "loop_failed", .message = "boom", .worker = 1, .step = 3}), 10,
                "FAILED   worker 1, step 3\n  says   boom\n");
}

TEST(Why, TellsCausesOfEndedJobsApart) {
  const auto cause = [](const JobFailure& failure) { return ended_with(failure).roots[0].cause; };
  EXPECT_EQ(cause({.code = "no_space"}), Cause::no_space);
  EXPECT_EQ(cause({.code = "program_divergence", .message = "chip 1 called"}), Cause::diverged);
  EXPECT_EQ(cause({.code = "uneven_loops"}), Cause::uneven);
  EXPECT_EQ(cause({.code = "peer_lost", .worker = 1, .pid = 5, .exit_code = 3}), Cause::lost);
}

TEST(Why, AJobThatWasCancelledIsWell) {
  const Why why = ended_with({.code = "cancelled"});
  EXPECT_EQ(why.verdict, Verdict::well);
  EXPECT_TRUE(why.roots.empty());
}

TEST(Why, AJobThatMovesIsWell) {
  MadeJob before(2, 1);
  MadeJob now(2, 1);
  before.snapshot.at_ns -= MadeJob::kSecond / 10;
  now.worker(0).step = now.worker(1).step = 14;
  expect_answer(weft::explain(before.snapshot, now.snapshot), 0, "well     step 14, 100 steps/s\n");
}

TEST(Why, AChipThatComesLastByItsEventsIsSlow) {
  MadeJob job(2, 1);
  EventRing ring{.kind = RingKind::chip, .worker = 0, .chip = 0};
  for (int i = 0; i < 100; ++i) {
    ring.events.push_back(
        {.at_ns = i * 1000, .kind = EventKind::leave, .peer = i % 10 == 0 ? -1 : 1, .value = 500});
  }
  job.snapshot.rings.push_back(ring);
  Why why{.verdict = Verdict::well};
  find_slow(why, std::span(&job.snapshot, 1));
  EXPECT_EQ(why.verdict, Verdict::slow);
  const Root& slow = why.roots.at(0);
  EXPECT_EQ(slow.headline, "chip 1 (worker 1) comes last in 90 % of 100 collectives");
  EXPECT_EQ(slow.notes.at(0).text, "45 % of the others' time");
}

TEST(Why, AWorkerForWhichTheOthersWaitInMostLooksIsSlow) {
  MadeJob job(3, 1);
  job.wait_for(1, "x");
  job.chip(0).waiting_for = 1;
  std::vector<Snapshot> looks(20, job.snapshot);
  Why why{.verdict = Verdict::well};
  find_slow(why, looks);
  EXPECT_EQ(why.verdict, Verdict::slow);
  EXPECT_EQ(why.roots.at(0).headline, "worker 1 (pid 4712) is alone awaited in 20 of 20 looks");

  looks.assign(20, MadeJob(3, 1).snapshot);
  Why well{.verdict = Verdict::well};
  find_slow(well, looks);
  EXPECT_EQ(well.verdict, Verdict::well);
  EXPECT_TRUE(well.roots.empty());
}

TEST(Why, JsonHasTheRootsAndWhoWaitsForWhom) {
  MadeJob job(2, 1);
  job.wait_for(1, "x");
  job.process(1).state = 'T';
  const auto json = nlohmann::json::parse(to_json(explain(job)));
  EXPECT_EQ(json["schema"], "weft.why/1");
  EXPECT_EQ(json["verdict"], "hung");
  EXPECT_EQ(json["roots"][0]["class"], "STOPPED");
  EXPECT_EQ(json["roots"][0]["pid"], 4712);
  EXPECT_EQ(json["roots"][0]["waiters"], std::vector{0});
  bool told = false;
  for (const auto& wait : json["waits"])
    told |= wait["from"] == "chip 0" && wait["to"] == "worker 1";
  EXPECT_TRUE(told);
}

TEST(Why, WhatOthersWroteIsHarmless) {
  MadeJob job(2, 1);
  job.worker(1).state = ActorState::failed;
  job.worker(1).last_error = "boom\n\x1b[2J";
  EXPECT_EQ(to_text(explain(job)).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace weft::explain_test
