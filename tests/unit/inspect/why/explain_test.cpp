#include "inspect/why/explain.hpp"
#include "inspect/why/hang.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <limits>

#include <nlohmann/json.hpp>

#include "inspect/why/fixes.hpp"
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
                "  after  all_reduce #1 'fc1.weight.grad' over {data}, step 5; never reached #2\n"
                "  waits  12 chips of workers 0, 1, 3 in all_reduce #2 'fc2.weight.grad' over "
                "{data}, step 5\n"
                "  fix:   kill -CONT 4713\n");
}

TEST(Why, NamesAStoppedWorkerBeforeAnyoneWaits) {
  MadeJob before(2, 1);
  MadeJob now(2, 1);
  now.chip(0).step++;
  before.process(1).state = now.process(1).state = 'T';
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
                "HELD     worker 1 (pid 4712), in gdb (pid 812) for 41 s\n"
                "  fix:   continue or detach the process in gdb\n");
}

TEST(Why, AWorkerThatWaitsForADiskIsNamed) {
  MadeJob job(2, 1);
  job.process(1).state = 'D';
  job.process(1).wchan = "folio_wait_bit";
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].cause, Cause::device);
  EXPECT_EQ(why.roots[0].headline,
            "worker 1 (pid 4712), waits for a disk or a device in folio_wait_bit for 41 s");
  EXPECT_EQ(why.verdict, Verdict::hung);
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
                "  after  all_reduce #1 'a' over {data}, step 5; never reached #2\n"
                "  waits  1 chip of worker 0 in all_reduce #2 'b' over {data}, step 5\n"
                "  fix:   end the loop or shorten the work at the named line; if a step may take "
                "this long, use --patience S\n");
}

TEST(Why, ABusyWorkerIsNoHangBeforeThePatienceIsOver) {
  MadeJob job(2, 1);
  job.wait_for(1, "a");
  const Why why = weft::explain(job.snapshot, job.snapshot, {.patience_s = 60});
  EXPECT_EQ(why.verdict, Verdict::waits);
  EXPECT_EQ(exit_code(why.verdict), 0);
  EXPECT_EQ(why.summary, "nothing has moved for 41 s; the job counts as hung after 60 s");
}

TEST(Why, SaysWhatABusyWorkerDoesForWeft) {
  MadeJob job(2, 1);
  job.worker(1).state = ActorState::compiling;
  job.wait_for(1, "a");
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].cause, Cause::compiling);
  EXPECT_EQ(why.roots[0].headline, "worker 1 (pid 4712), compiles a program for 41 s");
}

TEST(Why, WorkersThatAllWaitForTheirOwnMutexesAreOneDeadlock) {
  MadeJob job(4, 1);
  for (int w = 0; w < 4; ++w) {
    job.look_at(w, {{.function = "take_lock()", .file = "train.cpp", .line = 13, .object = "app"}},
                {.mutex_owner = 4711 + w});
  }
  expect_answer(
      explain(job), 10,
      "DEADLOCK workers 0-3, each in its own code for 41 s: waits for a mutex that its own thread "
      "holds\n"
      "  at     take_lock() train.cpp:13\n"
      "  fix:   release the lock before the named wait, or always take locks in the same order\n");
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
  job.enter(1, {"model"}, "d");  // chip 0 waits for 2, 2 for 3, 1 for 0, and 3 for none
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
                "LOST     trainer (pid 4700), gone before the job ended, last seen 41 s ago\n"
                "  kept   step 7, complete on 2 chips\n"
                "  fix:   weft rescue 0123456789abcdef0123456789abcdef\n");
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
  expect_answer(
      ended_with({.code = "peer_lost",
                  .message = "worker 3 was killed",
                  .worker = 3,
                  .pid = 4714,
                  .signal = SIGKILL,
                  .step = 2852,
                  .collective = "all_reduce #9 'x'"}),
      10,
      "KILLED   worker 3 (pid 4714) by SIGKILL, step 2852\n"
      "  says   worker 3 was killed\n"
      "  in     all_reduce #9 'x'\n"
      "  fix:   find out who sent the signal (the kernel if memory ran out: see dmesg); to survive "
      "such a loss, use run.failure.max_failures or weft launch --max-failures 3\n");
  expect_answer(ended_with({.code = "loop_failed", .message = "boom", .worker = 1, .step = 3}), 10,
                "FAILED   worker 1, step 3\n"
                "  says   boom\n"
                "  fix:   fix the reported error at the named line, and start the job again\n");
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
  expect_answer(weft::explain(before.snapshot, now.snapshot), 0, "well     step 14\n");
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
  EXPECT_EQ(why.roots.at(0).headline,
            "worker 1 (pid 4712) is the only worker that others wait for in 20 of 20 samples");

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
  EXPECT_EQ(json["schema"], "weft.why/2");
  EXPECT_EQ(json["verdict"], "hung");
  EXPECT_EQ(json["roots"][0]["class"], "STOPPED");
  EXPECT_EQ(json["roots"][0]["pid"], 4712);
  EXPECT_EQ(json["roots"][0]["waiters"], std::vector{0});
  bool told = false;
  for (const auto& wait : json["waits"])
    told |= wait["from"] == "chip 0" && wait["to"] == "worker 1";
  EXPECT_TRUE(told);
}

/// Every process writes to disks, so a short wait for a disk proves nothing.
TEST(Why, AMomentOfAWaitForADiskIsNoCause) {
  MadeJob job(2, 1);
  job.wait_for(1, "a");
  job.process(1).state = job.process(1).threads[0].state = 'D';
  job.process(1).wchan = "folio_wait_bit";
  const Why why = weft::explain(job.snapshot, job.snapshot, {.patience_s = 60});
  EXPECT_EQ(why.verdict, Verdict::waits);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].cause, Cause::busy);
  EXPECT_TRUE(to_text(why).starts_with("waits ")) << to_text(why);
}

TEST(Why, ATracerThatLetsItRunIsARemark) {
  MadeJob before(2, 1);
  MadeJob now(2, 1);
  before.snapshot.at_ns -= MadeJob::kSecond / 10;
  now.worker(0).step = now.worker(1).step = 14;
  now.process(1).tracer = 812;
  now.process(1).tracer_name = "strace";
  const Why why = weft::explain(before.snapshot, now.snapshot);
  EXPECT_EQ(why.verdict, Verdict::well);
  ASSERT_EQ(why.remarks.size(), 1U);
  EXPECT_EQ(why.remarks[0], "strace (pid 812) traces pid 4712, but lets it run");
}

/// strace, and tools that limit CPU time by SIGSTOP, stop a process only for moments.
TEST(Why, AProcessThatHasRunBetweenTheLooksIsNotStopped) {
  MadeJob before(2, 1);
  MadeJob now(2, 1);
  for (MadeJob* job : {&before, &now}) job->process(1).state = 'T';
  now.process(1).core_ns = 5;
  const Why why = weft::explain(before.snapshot, now.snapshot);
  for (const Root& root : why.roots) EXPECT_NE(root.cause, Cause::stopped);
}

TEST(Why, AFrozenCgroupIsNamedWithWhatThawsIt) {
  MadeJob job(2, 1);
  job.process(1).state = 'D';
  job.process(1).frozen_by = "/sys/fs/cgroup/jobs";
  expect_answer(explain(job), 10,
                "FROZEN   worker 1 (pid 4712), frozen by the cgroup /sys/fs/cgroup/jobs for 41 s\n"
                "  fix:   echo 0 > /sys/fs/cgroup/jobs/cgroup.freeze\n");
}

TEST(Why, AWorkerThatWaitsForItsChildWaitsForNoDisk) {
  MadeJob job(2, 1);
  job.wait_for(1, "a");
  job.process(1).state = 'D';
  job.process(1).child = 99;
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].headline,
            "worker 1 (pid 4712), waits for its child for 41 s (pid 99), which has neither called "
            "exec nor ended");
}

TEST(Why, TheTrainerIsContinuedBeforeItsWorkers) {
  MadeJob job(3, 1);
  for (ProcessState& process : job.snapshot.processes) process.state = 'T';
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 2U);
  EXPECT_EQ(why.roots[0].actor, "trainer");
  EXPECT_EQ(why.roots[1].actor, "workers 0-2");
  for (const Root& root : why.roots) EXPECT_EQ(root.fix, "kill -CONT 4700 4711 4712 4713");
}

TEST(Why, EqualBlocksAreOne) {
  MadeJob job(256, 1);
  job.wait_for(0, "a");
  for (int w = 1; w < 256; ++w) job.leave(w);
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].actor, "workers 0-255");
  EXPECT_EQ(why.roots[0].pids.size(), 256U);
}

/// The worker's state changes all the time, also just now, but the worker makes no progress.
TEST(Why, AWorkerThatOnlyReportsWhileOthersWaitIsAccused) {
  MadeJob before(2, 1);
  before.pass("a");
  before.wait_for(1, "b");
  for (int w = 0; w < 2; ++w) before.worker(w).moved_ns = 59 * MadeJob::kSecond;
  before.worker(1).since_ns = before.snapshot.at_ns;
  MadeJob now = before;
  now.worker(1).state = ActorState::reporting;
  const Why why = weft::explain(before.snapshot, now.snapshot);
  EXPECT_EQ(why.verdict, Verdict::hung);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].headline.substr(0, 53),
            "worker 1 (pid 4712), reports again and again for 41 s");
}

TEST(Why, ALoopThatOnlyReportsWhileNobodyWaitsIsWell) {
  MadeJob before(2, 1);
  for (int w = 0; w < 2; ++w) before.worker(w).moved_ns = 9 * MadeJob::kSecond;
  MadeJob now = before;
  now.worker(1).state = ActorState::reporting;
  now.worker(1).since_ns = now.snapshot.at_ns;
  EXPECT_EQ(weft::explain(before.snapshot, now.snapshot).verdict, Verdict::well);
}

TEST(Why, AJobWhoseLoopsAllWaitForCommandsIsWell) {
  MadeJob job(2, 1);
  for (int w = 0; w < 2; ++w) job.worker(w).state = ActorState::commands;
  const Why why = weft::explain(job.snapshot, job.snapshot);
  EXPECT_EQ(why.verdict, Verdict::well) << to_text(why);
  EXPECT_NE(why.summary.find("all loops have waited for a command for "), std::string::npos)
      << why.summary;
  EXPECT_FALSE(is_hung(job.snapshot, 1));
  job.worker(0).state = ActorState::ended;
  EXPECT_FALSE(is_hung(job.snapshot, 1));
}

TEST(Why, ALoopThatIsBusyWhileAnotherWaitsForCommandsIsAccused) {
  MadeJob job(2, 1);
  job.worker(1).state = ActorState::commands;
  EXPECT_TRUE(is_hung(job.snapshot, 1));
  const Why why = weft::explain(job.snapshot, job.snapshot, {.patience_s = 1});
  EXPECT_EQ(why.verdict, Verdict::hung) << to_text(why);
  ASSERT_EQ(why.roots.size(), 1U) << to_text(why);
  EXPECT_EQ(why.roots[0].workers, (std::vector<int>{0}));
}

/// Returns a job whose chips load a plan in threads of this state.
MadeJob loading_job(char state = 'S') {
  MadeJob job(2, 1);
  for (int w = 0; w < 2; ++w) job.worker(w).state = ActorState::running;
  for (int c = 0; c < 2; ++c) {
    job.chip(c).state = ActorState::compiling;
    job.chip(c).source = "the sync at train.cpp:41";
    job.chip(c).tid = 5000 + c;
    job.process(c).threads.push_back({.tid = 5000 + c, .state = state});
  }
  return job;
}

TEST(Why, APlanThatIsLoadedIsNamedWithItsProgram) {
  expect_answer(explain(loading_job()), 10,
                "LOADING  chips 0, 1 of workers 0, 1, each loads the plan of a program for 41 s\n"
                "  for    the sync at train.cpp:41\n"
                "  fix:   wait until it is done; WEFT_COMPILE_CACHE keeps plans, and a program "
                "with fewer ops compiles faster\n");
}

TEST(Why, APlanWhoseLoadGetsOnIsNoHang) {
  MadeJob before = loading_job();
  before.snapshot.at_ns -= MadeJob::kSecond / 10;
  MadeJob now = loading_job();
  // The compiler of a plug-in uses threads of its own.
  for (int c = 0; c < 2; ++c) now.process(c).core_ns = MadeJob::kSecond / 10;
  EXPECT_EQ(weft::explain(before.snapshot, now.snapshot).verdict, Verdict::waits);
}

/// On a loaded machine a thread may wait for a core for longer than the time between two snapshots.
TEST(Why, APlanWhoseLoadWaitsForACoreIsNoHang) {
  const MadeJob job = loading_job('R');
  EXPECT_FALSE(is_hung(job.snapshot, 1));
  EXPECT_EQ(explain(job).verdict, Verdict::waits);
}

TEST(Why, AProgramThatDoesNotEndIsNamedWithItsCompiler) {
  MadeJob job(2, 1);
  job.wait_for(1, "a");  // chip 0 waits for chip 1
  job.worker(1).state = ActorState::running;
  job.chip(1).state = ActorState::running;
  job.chip(1).source = "the sync at train.cpp:41, by XLA (plugin.so)";
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U) << to_text(why);
  EXPECT_EQ(why.roots[0].cause, Cause::busy);
  EXPECT_EQ(why.roots[0].headline, "chip 1 of worker 1 (pid 4712), runs a program for 41 s");
  ASSERT_FALSE(why.roots[0].notes.empty());
  EXPECT_EQ(why.roots[0].notes[0].text, "the sync at train.cpp:41, by XLA (plugin.so)");
}

MadeJob calling_back(const std::string& callback) {
  MadeJob job(2, 1);
  ActorRow& trainer = job.snapshot.rows[0];
  trainer.inside = callback;
  trainer.inside_tid = 4700;
  trainer.inside_since_ns = 90 * MadeJob::kSecond;
  return job;
}

TEST(Why, ATrainerThatIsInACallbackAfterTheLoopsIsBlocked) {
  MadeJob job = calling_back("Plotter::on_report");
  for (int w = 0; w < 2; ++w) job.worker(w).state = ActorState::ended;
  for (int c = 0; c < 2; ++c) job.chip(c).state = ActorState::ended;
  job.snapshot.status = JobStatus::succeeded;
  expect_answer(explain(job), 10,
                "BLOCKED  trainer (pid 4700), in Plotter::on_report for 10 s\n"
                "  fix:   make the callback return, because it runs on the trainer's own thread\n");
}

TEST(Why, WorkersThatWaitForTheTrainersFirstCallbackAreNotAccused) {
  MadeJob job = calling_back("Plotter::on_start");
  for (int w = 0; w < 2; ++w) job.worker(w).state = ActorState::absent;
  for (int c = 0; c < 2; ++c) job.chip(c).state = ActorState::absent;
  job.snapshot.status = JobStatus::starting;
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].cause, Cause::blocked);
}

TEST(Why, ALoopWhoseTrainerCallsBackMeanwhileIsWell) {
  MadeJob before = calling_back("Plotter::on_report");
  MadeJob now = before;
  now.worker(0).step = now.worker(1).step = 14;
  EXPECT_EQ(weft::explain(before.snapshot, now.snapshot).verdict, Verdict::well);
}

TEST(Why, AJobWithoutAResultHasNotSucceeded) {
  MadeJob job = calling_back("Plotter::on_report");
  job.snapshot.live = job.snapshot.held = false;
  job.snapshot.status = JobStatus::succeeded;
  const Why why = explain(job);
  EXPECT_EQ(why.verdict, Verdict::failed);
  EXPECT_EQ(why.roots.at(0).cause, Cause::lost);
  EXPECT_NE(to_text(why).find("the trainer in Plotter::on_report"), std::string::npos);
}

TEST(Why, ProcessesThatCannotBeSeenAreNotLost) {
  MadeJob job(2, 1);
  job.wait_for(1, "a");
  job.snapshot.processes.clear();
  job.snapshot.hidden = "they are in another pid namespace";
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].cause, Cause::busy);
  ASSERT_FALSE(why.remarks.empty());
  EXPECT_NE(why.remarks[0].find("can't be seen from here"), std::string::npos);
}

TEST(Why, TheItemThatIsReadIsNamedWithItsReader) {
  MadeJob job(2, 1);
  job.wait_for(1, "a");
  ActorRow& loop = job.worker(1);
  loop.state = ActorState::loading;
  loop.inside = "images";
  loop.inside_number = 17;
  loop.inside_tid = 99;
  loop.inside_since_ns = loop.since_ns;
  job.snapshot.sights.push_back(
      {.pid = 4712,
       .threads = {{.stack = {.tid = 99, .frames = {{.function = "decode()", .object = "app"}}}}}});
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].headline, "worker 1 (pid 4712), waits for item 17 of images for 41 s");
  EXPECT_EQ(why.roots[0].notes.at(0).text, "decode()");
}

/// The trainer was killed before it had kept the hang.
TEST(Why, TheItemThatWasReadWhenTheTrainerDiedIsNamed) {
  MadeJob job(2, 1);
  job.snapshot.held = false;
  ActorRow& loop = job.worker(1);
  loop.inside = "stuck";
  loop.inside_number = 3;
  loop.inside_since_ns = loop.since_ns;
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].actor, "trainer");
  const bool is_named = std::ranges::any_of(why.roots[0].notes, [](const Note& note) {
    return note.label == "was" && note.text.starts_with("worker 1 at item 3 of stuck");
  });
  EXPECT_TRUE(is_named) << to_text(why);
}

TEST(Why, ALoopThatWaitsForRowsIsNamedWithTheirWriters) {
  MadeJob job(1, 1);
  ActorRow& loop = job.worker(0);
  loop.state = ActorState::loading;
  loop.step = 204;
  loop.inside = "experience(steps)";
  loop.inside_number = 1117;
  loop.inside_tid = 99;
  JobStreams& streams = job.snapshot.streams;
  streams.at_ns = 50 * MadeJob::kSecond;
  streams.rows = {{.name = "steps",
                   .rows = 1117,
                   .batch_rows = 512,
                   .used = {1000},
                   .writers = {{.pid = ::getpid(), .sent_ns = 42 * MadeJob::kSecond},
                               {.pid = ::getpid()},
                               {.pid = std::numeric_limits<int>::max()}}}};
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U) << to_text(why);
  const Root& root = why.roots[0];
  EXPECT_EQ(root.headline,
            "worker 0 (pid 4711), waits for item 1117 of experience(steps) for 41 s");
  ASSERT_GE(root.notes.size(), 2U) << to_text(why);
  EXPECT_EQ(root.notes[0].text, "117 of 512 rows of step 204 have come");
  EXPECT_EQ(root.notes[1].text,
            fmt::format("pid {0}, silent for 8.0 s; pid {0} has sent no rows yet; pid {1} is gone",
                        ::getpid(), std::numeric_limits<int>::max()));

  streams.rows[0].writers.clear();
  streams.rows[0].batch_rows = 0;
  const Root alone = explain(job).roots.at(0);
  EXPECT_EQ(alone.notes[0].text, "117 rows of step 204 have come");
  EXPECT_EQ(alone.notes[1].text, "no process has opened ExperienceWriter \"steps\"");
}

TEST(Why, WhoHoldsALockIsToBlameAndNotWhoWaitsForIt) {
  MadeJob job(2, 1);
  job.wait_for(0, "a");  // chip 1 waits for chip 0, whose loop waits for a lock
  job.worker(1).state = ActorState::running;
  job.look_at(0, {});
  job.snapshot.sights[0].threads[0].file_lock = {.file = "/data/lock", .holder = 4712};
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].cause, Cause::deadlock);
  EXPECT_EQ(why.roots[0].workers, std::vector{1});
  EXPECT_EQ(why.roots[0].headline,
            "worker 1 (pid 4712) holds the lock of /data/lock, for which worker 0 waits, and both "
            "are in a circle of waits");
}

/// The states of actors are read one after another, so waits that followed each other may look like
/// a cycle for a moment.
TEST(Why, ACircleOfWaitsOfAMomentIsNoDeadlock) {
  for (const double seconds : {0.0, 0.9, 1.1}) {
    MadeJob job(2, 1);
    job.wait_for(0, "a");
    job.worker(1).state = ActorState::running;
    job.look_at(0, {});
    job.snapshot.sights[0].threads[0].file_lock = {.file = "/data/lock", .holder = 4712};
    for (ActorRow& row : job.snapshot.rows) {
      row.since_ns = job.snapshot.at_ns - static_cast<std::int64_t>(seconds * 1e9);
      row.moved_ns = row.since_ns;
    }
    const Why why = explain(job);
    EXPECT_EQ(why.roots.size(), seconds > 1 ? 1U : 0U) << seconds;
    EXPECT_NE(why.verdict, Verdict::hung) << "less than the patience";
  }
}

TEST(Why, OfWorkersThatDivergedTheFewestAreNamedBesideTheOthers) {
  MadeJob job(3, 1);
  job.snapshot.live = job.snapshot.held = false;
  for (int w = 0; w < 3; ++w) job.worker(w).source = w == 1 ? "train.cpp:8" : "train.cpp:9";
  job.snapshot.end = JobEnd{
      .error = JobFailure{.code = "program_divergence", .message = "boom", .worker = 2, .pid = 1}};
  const Why why = explain(job);
  ASSERT_EQ(why.roots.size(), 1U);
  EXPECT_EQ(why.roots[0].actor, "worker 1");
  EXPECT_EQ(why.roots[0].step, 4U);
  EXPECT_EQ(why.roots[0].notes.at(1).text, "worker 1: train.cpp:8, step 4");
  EXPECT_EQ(why.roots[0].notes.at(2).label, "others");
  EXPECT_EQ(why.roots[0].notes.at(2).text, "workers 0, 2: train.cpp:9, step 4");
}

TEST(Why, ACrashIsToldWithItsPlaceAndWhatWasThrown) {
  MadeJob job(2, 1);
  job.snapshot.live = job.snapshot.held = false;
  job.worker(1).last_error = "std::runtime_error: boom";
  job.snapshot.end =
      JobEnd{.error = JobFailure{.code = "peer_lost", .worker = 1, .pid = 4712, .signal = SIGABRT}};
  job.snapshot.crash =
      Crash{.pid = 4712, .stack = {.frames = {{.function = "work()", .file = "a.cpp", .line = 7}}}};
  const Why why = explain(job);
  EXPECT_EQ(why.roots.at(0).cause, Cause::crashed);
  EXPECT_EQ(why.roots[0].notes.at(1).text, "std::runtime_error: boom");
  EXPECT_EQ(why.roots[0].notes.at(2).text, "work() a.cpp:7");
}

TEST(Why, AnEndThatOnlyTheBoardKnowsIsTold) {
  MadeJob job(2, 1);
  job.snapshot.live = job.snapshot.held = false;
  job.snapshot.status = JobStatus::failed;
  job.snapshot.rows[0].last_error = "can't write progress.csv";
  const Why why = explain(job);
  EXPECT_EQ(why.roots.at(0).cause, Cause::failed);
  EXPECT_EQ(why.roots[0].notes.at(0).text, "can't write progress.csv");
}

TEST(Why, EveryRootSaysWhatToDo) {
  for (int cause = 0; cause <= static_cast<int>(Cause::slow); ++cause) {
    std::vector<Root> roots{{.cause = static_cast<Cause>(cause), .pids = {7}, .pid = 7}};
    add_fixes(roots, MadeJob(1, 1).snapshot);
    EXPECT_FALSE(roots[0].fix.empty()) << to_string(static_cast<Cause>(cause));
  }
}

/// All actors have ended, but the job hasn't, and no actor waits for another one.
TEST(Why, AnUnknownCauseSaysWhatToDo) {
  MadeJob job(2, 1);
  for (int i = 0; i < 2; ++i) job.worker(i).state = job.chip(i).state = ActorState::ended;
  const Why why = explain(job);
  expect_answer(
      why, 13,
      "unknown  nothing has moved for 41 s, but no actor is known that others wait for\n"
      "  fix:   weft inspect actors 0123456789abcdef0123456789abcdef shows what every actor "
      "does; kill -QUIT 4711 4712 writes the stacks of the workers into their logs; "
      "kill -TERM 4700 ends the job\n");
  EXPECT_EQ(nlohmann::json::parse(to_json(why))["fix"], why.fix);
}

/// SIGQUIT would end a program whose own thread runs the loop.
TEST(Why, AnUnknownCauseInOneProcessGivesNoCommandThatEndsIt) {
  MadeJob job(1, 1);
  job.worker(0).state = job.chip(0).state = ActorState::ended;
  job.worker(0).pid = job.chip(0).pid = 4700;
  EXPECT_EQ(explain(job).verdict, Verdict::unknown);
  EXPECT_EQ(explain(job).fix.find("QUIT"), std::string::npos) << explain(job).fix;
}

TEST(Why, WhatOthersWroteIsHarmless) {
  MadeJob job(2, 1);
  job.worker(1).state = ActorState::failed;
  job.worker(1).last_error = "boom\n\x1b[2J";
  EXPECT_EQ(to_text(explain(job)).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace weft::explain_test
