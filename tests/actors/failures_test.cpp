/// Tests failures of actors and of their processes.

#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/actors/actors.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/memory/segment.hpp"

namespace weft::failures_test {
namespace {

using testing::Echo;
using testing::echo;
using testing::expect_error;
using testing::TemporaryFolder;
using testing::Worker;
using testing::worker;

TEST(ActorFailures, OfAConstructorEndTheSpawn) {
  for (const int processes : {0, 2}) {
    ActorSystem system;
    expect_error(Errc::actor_failed, {"its constructor threw: no memory for a worker"}, [&] {
      system.spawn(worker,
                   {.count = 2, .place = {.processes = processes}, .config = {{"fails", true}}});
    });
    const auto workers = system.spawn(worker, {.count = 2, .place = {.processes = processes}});
    EXPECT_EQ(workers.size(), 2) << "the name is free again";
  }
}

TEST(ActorFailures, OfWorkMakeTheActorAnew) {
  for (const int processes : {0, 1}) {
    ActorSystem system;
    const auto workers = system.spawn(worker, {.place = {.processes = processes},
                                               .supervision = {.max_restarts = 1, .backoff_s = 0}});
    // The mesh survives the first failure, but not the second.
    Outcome<void> told;
    while (!system.failure()) told = workers[0].call<&Worker::fail_in_work>().outcome();
    expect_error(Errc::actor_failed, {"test.worker[0]", "work went wrong"},
                 [&] { workers[0].call<&Worker::count>().get(); });
    EXPECT_NE(std::string(system.failure()->what()).find("work went wrong"), std::string::npos);
    expect_error(Errc::actor_failed, {"the actor system has failed", "work went wrong"},
                 [&] { system.spawn(echo); });
  }
}

TEST(ActorFailures, OfATellEndTheMeshAlone) {
  ActorSystem system;
  const auto actors = system.spawn(echo, {.supervision = {.then = ActorGivesUp::stop}});
  const auto others = system.spawn(worker);
  actors[0].tell<&Echo::fail_with>("told to fail");
  while (actors[0].call<&Echo::add>(1, 1).outcome().ok()) {
  }
  expect_error(Errc::actor_failed, {"test.echo[0] has ended", "told to fail"},
               [&] { actors[0].call<&Echo::add>(1, 1).get(); });
  expect_error(Errc::actor_failed, {"told to fail"}, [&] { actors[0].tell<&Echo::append>("x"); });
  EXPECT_FALSE(system.failure());
  EXPECT_GE(others[0].call<&Worker::count>().get(), 0);
}

TEST(ActorFailures, OfAProcessAreToldToCallersAndMakeItsActorsAnew) {
  ActorSystem system;
  const auto actors = system.spawn(
      echo,
      {.count = 4, .place = processes(2), .supervision = {.max_restarts = 2, .backoff_s = 0}});
  const std::vector<int> before = actors.call<&Echo::pid>().get();
  EXPECT_EQ(before[0], before[1]);
  EXPECT_NE(before[0], before[2]);
  actors[2].call<&Echo::append>("kept").get();
  // append() isn't const, so the call isn't made again.
  expect_error(Errc::peer_lost, {"test.echo[0].append"}, [&] {
    actors[0].tell<&Echo::kill_process>();
    actors[0].call<&Echo::append>("lost").get();
  });
  EXPECT_EQ(actors.call<&Echo::incarnation>().get(), (std::vector<std::uint64_t>{2, 2, 1, 1}));
  EXPECT_EQ(actors[2].call<&Echo::log>().get(), "kept");
  EXPECT_NE(actors[0].call<&Echo::pid>().get(), before[0]);
}

TEST(ActorFailures, OfAProcessMakeCallsOfConstEndpointsAgain) {
  ActorSystem system;
  const TemporaryFolder folder;
  const auto actors = system.spawn(
      echo, {.place = processes(1), .supervision = {.max_restarts = 1, .backoff_s = 0}});
  EXPECT_EQ(actors[0].call<&Echo::kill_process_once>(folder.path() + "/killed").get(), 2);
}

TEST(ActorFailures, OfAProcessEndCallsThoughItDiesAgain) {
  ActorSystem system;
  const auto actors = system.spawn(
      echo, {.place = processes(1), .supervision = {.max_restarts = -1, .backoff_s = 0}});
  for (int i = 0; i < 30; ++i) {  // each call kills two incarnations, because it is made again
    expect_error(Errc::peer_lost, {"test.echo[0].kill_process"},
                 [&] { actors[0].call<&Echo::kill_process>().get(); });
  }
  EXPECT_GE(actors[0].call<&Echo::incarnation>().get(), 61U);
}

TEST(ActorFailures, OfAnActorCanMakeTheMeshAnew) {
  ActorSystem system;
  const auto actors = system.spawn(
      echo, {.count = 3,
             .place = processes(3),
             .supervision = {.max_restarts = 1, .backoff_s = 0, .restart = ActorRestart::mesh}});
  actors[1].tell<&Echo::fail_with>("once");
  while (actors[1].call<&Echo::incarnation>().get() == 1) {
  }
  EXPECT_EQ(actors.call<&Echo::incarnation>().get(), (std::vector<std::uint64_t>{2, 2, 2}));
}

TEST(ActorFailures, OfAnActorCanMakeItsProcessAnew) {
  ActorSystem system;
  const auto actors = system.spawn(echo, {.count = 4,
                                          .place = processes(2),
                                          .supervision = {.max_restarts = 1,
                                                          .backoff_s = 0,
                                                          .restart = ActorRestart::process,
                                                          .then = ActorGivesUp::stop}});
  const std::vector<int> before = actors.call<&Echo::pid>().get();
  actors[1].tell<&Echo::fail_with>("once");
  // A call of a const endpoint is made again. It ends with an error if the next process dies too.
  auto incarnation = actors[1].call<&Echo::incarnation>().outcome();
  while (!incarnation.ok() || incarnation.value() == 1) {
    incarnation = actors[1].call<&Echo::incarnation>().outcome();
  }
  EXPECT_EQ(actors.call<&Echo::incarnation>().get(), (std::vector<std::uint64_t>{2, 2, 1, 1}));
  const std::vector<int> after = actors.call<&Echo::pid>().get();
  EXPECT_NE(after[0], before[0]);
  EXPECT_EQ(after[0], after[1]);
  EXPECT_EQ(after[2], before[2]);
  actors[1].tell<&Echo::fail_with>("twice");
  auto outcome = actors[3].call<&Echo::add>(1, 1).outcome();
  while (outcome.ok()) outcome = actors[3].call<&Echo::add>(1, 1).outcome();
  EXPECT_NE(std::string(outcome.error().what())
                .find("was ended, because one of them has failed: "
                      "test.echo[1].fail_with: twice"),
            std::string::npos)
      << outcome.error().what();
}

TEST(ActorFailures, CanLeaveTheOtherActorsOfTheMesh) {
  ActorSystem system;
  const auto actors = system.spawn(
      echo, {.count = 4, .place = processes(2), .supervision = {.restart = ActorRestart::none}});
  actors[0].tell<&Echo::fail_with>("first");
  auto outcome = actors[0].call<&Echo::add>(1, 1).outcome();
  EXPECT_EQ(outcome.error().code(), Errc::actor_failed);
  EXPECT_NE(std::string(outcome.error().what()).find("fail_with: first"), std::string::npos);
  EXPECT_EQ(actors[1].call<&Echo::add>(1, 1).get(), 2) << "it shares the process";
  actors[2].tell<&Echo::kill_process>();
  EXPECT_FALSE(actors[2].call<&Echo::append>("x").outcome().ok());
  EXPECT_FALSE(actors[3].call<&Echo::append>("x").outcome().ok()) << "it shared the process";
  EXPECT_EQ(actors[3].call<&Echo::add>(1, 1).outcome().error().code(), Errc::actor_failed);
  EXPECT_EQ(actors[1].call<&Echo::incarnation>().get(), 1U);
  EXPECT_FALSE(system.failure());
  system.stop("test.echo");
}

TEST(ActorFailures, KeepTheMessagesOfOtherActors) {
  ActorSystem system;
  const auto actors =
      system.spawn(echo, {.count = 2, .supervision = {.max_restarts = -1, .backoff_s = 0}});
  for (int i = 0; i < 20; ++i) {
    actors[0].tell<&Echo::fail_with>("again");
    EXPECT_EQ(actors[0].call<&Echo::add>(i, 1).get(), i + 1);
    EXPECT_EQ(actors[1].call<&Echo::incarnation>().get(), 1U);
  }
  EXPECT_EQ(actors[0].call<&Echo::incarnation>().get(), 21U);
}

TEST(ActorFailures, OfAFunctionThatHangsEndItsProcess) {
  ActorSystem system;
  const auto actors = system.spawn(
      echo, {.place = processes(1), .supervision = {.max_restarts = 1, .hang_timeout_s = 0.2}});
  // wait_for_stop is const, so the call is made again, of the next incarnation. That hangs too.
  expect_error(Errc::peer_lost, {"test.echo[0].wait_for_stop", "may have run"},
               [&] { actors[0].call<&Echo::wait_for_stop>().get(); });
  expect_error(Errc::actor_failed, {"test.echo[0] was in one function for more than 0.2 s"},
               [&] { actors[0].call<&Echo::add>(1, 1).get(); });
  EXPECT_TRUE(system.failure());
}

TEST(ActorFailures, OfAProcessThatNeverJoinsEndTheSpawn) {
  // Tests of wrong options are in options_test.cpp.
  setenv("WEFT_TEST_ACTOR_PROCESS_EXITS", "1", 1);
  ActorSystem system;
  expect_error(Errc::unavailable, {"exited with code 3"},
               [&] { system.spawn(echo, {.place = processes(1)}); });
  unsetenv("WEFT_TEST_ACTOR_PROCESS_EXITS");
}

TEST(ActorFailures, LeaveNoMemoryAndNoActors) {
  std::string id;
  ActorRef<Echo> kept = [&] {
    ActorSystem system;
    id = system.id();
    const auto actors = system.spawn(
        echo,
        {.count = 4, .place = processes(2), .supervision = {.max_restarts = 5, .backoff_s = 0}});
    system.spawn(echo, {.name = "here", .count = 3});
    EXPECT_EQ(Echo::made.load(), 3);
    actors[0].tell<&Echo::kill_process>();
    actors[3].call<&Echo::add>(1, 1).get();
    return actors[0];
  }();
  EXPECT_EQ(Echo::made.load(), 0);
  EXPECT_TRUE(Segment::list("weft-" + id).empty());
  expect_error(Errc::cancelled, {"the actor system has ended"},
               [&] { kept.call<&Echo::add>(1, 1).get(); });
}

TEST(ActorFailures, OfAStoppedMeshAreCancelled) {
  ActorSystem system;
  const auto actors = system.spawn(echo, {.name = "short", .place = processes(1)});
  system.stop("short");
  expect_error(Errc::cancelled, {"short[0] was stopped"},
               [&] { actors[0].call<&Echo::add>(1, 1).get(); });
  expect_error(Errc::not_found, {"no mesh \"short\""}, [&] { system.stop("short"); });
  EXPECT_EQ(system.spawn(echo, {.name = "short"})[0].call<&Echo::add>(1, 1).get(), 2);
}

}  // namespace
}  // namespace weft::failures_test
