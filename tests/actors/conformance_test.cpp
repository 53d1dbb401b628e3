/// Tests that actors behave in ActorTest as in ActorSystem, so that what a user tests with
/// ActorTest also holds in ActorSystem.

#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/actor_test.hpp>

#include "actors/table/actor_protocol.hpp"

#include "tests/actors/actors.hpp"
#include "tests/actors/probe.hpp"
#include "tests/actors/systems.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::conformance_test {
namespace {

using testing::Echo;
using testing::echo;
using testing::expect_error;
using testing::Probe;
using testing::probe;
using testing::Real;
using testing::Simulated;
using testing::SystemNames;
using testing::waiter;
using testing::Waiter;
using testing::Worker;
using testing::worker;

template <typename S>
class ActorSemantics : public ::testing::Test {
 protected:
  SpawnOptions options(int count = 1, bool own_thread = false) {
    return {.name = "p",
            .count = count,
            .place = {.processes = std::min(S::kPlace.processes, count)},
            .own_thread = own_thread};
  }
  /// Spawns probes that are made again at once, as often as needed.
  ActorMesh<Probe> spawn_restarting(int count = 1, bool own_thread = false) {
    SpawnOptions its = options(count, own_thread);
    its.supervision = {.max_restarts = -1, .backoff_s = 0};
    return s_.spawn(probe, its);
  }

  /// Spawns two probes with threads of their own, and lets the first one wait for the second.
  std::pair<ActorMesh<Probe>, Future<int>> spawn_blocked() {
    ActorMesh<Probe> probes = s_.spawn(probe, options(2, true));
    Future<int> waits = probes[0].call<&Probe::ask>(probes[1]);
    s_.until([&] { return probes[1].call<&Probe::held>().get() == 1; });
    return {probes, std::move(waits)};
  }

  S s_;
};
using Systems = ::testing::Types<Real<0>, Real<2>, Simulated<0, 1>, Simulated<2, 1>,
                                 Simulated<2, 2>, Simulated<2, 3>, Simulated<2, 4>>;
TYPED_TEST_SUITE(ActorSemantics, Systems, SystemNames);

// --- Calls ---

TYPED_TEST(ActorSemantics, MessagesOfASenderArriveInOrder) {
  const auto probes = this->s_.spawn(probe, this->options(2));
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    const std::string text = fmt::format("{},", i);
    expected += text;
    probes[0].template tell<&Probe::append>(text);
    if (i % 3 == 0) probes[0].template call<&Probe::append>("");
  }
  EXPECT_EQ(probes[0].template call<&Probe::log>().get(), expected);
}

TYPED_TEST(ActorSemantics, AnswersAreGatheredInTheOrderOfTheMesh) {
  const auto probes = this->s_.spawn(probe, this->options(4));
  const std::vector<std::string> texts{"a", "b", "c", "d"};
  probes.template scatter<&Probe::append>(texts).get();
  EXPECT_EQ(probes.template call<&Probe::log>().get(), texts);
  EXPECT_EQ(probes.slice(1, 3).template call<&Probe::log>().get(),
            (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(probes[3].name(), "p[3]");
}

TYPED_TEST(ActorSemantics, AnExceptionOfACallGoesToItsCaller) {
  const auto probes = this->s_.spawn(probe, this->options());
  try {
    probes[0].template call<&Probe::fail_with>("out of cheese").get();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::endpoint_failed);
    EXPECT_STREQ(error.what(), "p[0].fail_with: out of cheese");
  }
  EXPECT_EQ(probes[0].template call<&Probe::incarnation>().get(), 1U) << "the actor lives";
}

TYPED_TEST(ActorSemantics, LongMessagesAreRefused) {
  const auto probes = this->s_.spawn(probe, this->options());
  expect_error(Errc::invalid_argument, {"p[0]: its answer: ", "HostTensor"},
               [&] { probes[0].template call<&Probe::too_long>().get(); });
  expect_error(Errc::invalid_argument, {"100004 bytes", "HostTensor"},
               [&] { probes[0].template call<&Probe::append>(std::string(100'000, 'x')).get(); });
}

TYPED_TEST(ActorSemantics, CallsEndAtTheirTimeoutOrWhenTheyAreCancelled) {
  const auto probes = this->s_.spawn(probe, this->options());
  const auto quick = probes[0].with({.timeout_s = 0.05});
  expect_error(Errc::timeout,
               {"p[0].hold: no answer within 0.05 s: it hasn't begun, or its Reply wasn't sent"},
               [&] { quick.template call<&Probe::hold>().get(); });
  auto held = probes[0].template call<&Probe::hold>();
  EXPECT_EQ(probes[0].template call<&Probe::awaited>().get(), 1);
  std::stop_source stop;
  auto stopped = probes[0].with({.stop = stop.get_token()}).template call<&Probe::hold>();
  EXPECT_FALSE(stopped.wait_for(std::chrono::milliseconds(1)));
  EXPECT_EQ(probes[0].template call<&Probe::awaited>().get(), 2);
  stop.request_stop();
  held.cancel();
  expect_error(Errc::cancelled, {"the call was cancelled"}, [&] { stopped.get(); });
  expect_error(Errc::cancelled, {"the call was cancelled"}, [&] { held.get(); });
  EXPECT_EQ(probes[0].template call<&Probe::awaited>().get(), 0);
  EXPECT_EQ(probes[0].template call<&Probe::held>().get(), 3);
}

TYPED_TEST(ActorSemantics, ATimeoutNamesTheFunctionThatOccupiesTheThread) {
  const auto held = this->s_.spawn(probe, {.name = "held", .own_thread = true});
  // The process has three actors and two threads, so two actors share a thread.
  SpawnOptions its = this->options(3 * std::max(1, TypeParam::kPlace.processes));
  const auto waiters = this->s_.spawn(waiter, its);
  waiters.template tell<&Waiter::wait>();
  const int threads = 2 * std::max(1, TypeParam::kPlace.processes);
  this->s_.until([&] { return held[0].template call<&Probe::held>().get() == threads; });
  int beside = 0;
  for (int i = 0; i < waiters.size(); ++i) {
    try {
      waiters[i].with({.timeout_s = 0.02}).template call<&Waiter::hello>().get();
      FAIL() << waiters[i].name();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::timeout);
      const std::string text = error.what();
      const bool is_beside = text.find("which runs the actor, has run p[") != text.npos;
      if (is_beside) ++beside;
      EXPECT_NE(text.find(is_beside ? "].work for " : "].work has run for "), text.npos) << text;
    }
  }
  EXPECT_EQ(beside, waiters.size() - threads);
}

TYPED_TEST(ActorSemantics, ACallThatIsCancelledBeforeItBeginsIsSkipped) {
  auto [probes, waits] = this->spawn_blocked();
  auto skipped = probes[0].template call<&Probe::append>("skipped");
  auto kept = probes[0].template call<&Probe::append>("kept");
  skipped.cancel();
  probes[1].template call<&Probe::release>(5).get();
  EXPECT_EQ(waits.get(), 5);
  kept.get();
  EXPECT_EQ(probes[0].template call<&Probe::log>().get(), "kept");
}

TYPED_TEST(ActorSemantics, SixtyFourMessagesWaitForAThread) {
  auto [probes, waits] = this->spawn_blocked();
  const auto eager = probes[0].with({.wait_if_full = false});
  for (int i = 0; i < 64; ++i) eager.template tell<&Probe::append>("x");
  const std::string full = "p[0]: 64 messages of this process wait for its thread already";
  expect_error(Errc::overloaded, {full}, [&] { eager.template tell<&Probe::append>("y"); });
  expect_error(Errc::overloaded, {full}, [&] { eager.template call<&Probe::append>("y").get(); });
  expect_error(Errc::timeout,
               {"p[0]: 64 messages of this process waited for its thread all the time"},
               [&] { probes[0].with({.timeout_s = 0.05}).template tell<&Probe::append>("y"); });
  probes[1].template call<&Probe::release>(5).get();
  EXPECT_EQ(waits.get(), 5);
  EXPECT_EQ(probes[0].template call<&Probe::log>().get(), std::string(64, 'x'));
}

TYPED_TEST(ActorSemantics, ActorsThatShareAThreadMayNotWait) {
  const auto probes = this->s_.spawn(probe, this->options(2));
  expect_error(Errc::endpoint_failed,
               {"p[0].ask: p[1].hold: p[0] may not wait for an answer, because other actors need "
                "its thread; use then(), or spawn the mesh with .own_thread = true"},
               [&] { probes[0].template call<&Probe::ask>(probes[1]).get(); });
  std::string refused;
  std::atomic<bool> is_refused = false;
  probes[1].template call<&Probe::log>().then([&](const Outcome<std::string>&) {
    try {
      probes[0].template call<&Probe::log>().get();
      refused = "not refused";
    } catch (const Error& error) {
      refused = error.what();
    }
    is_refused = true;
  });
  this->s_.until([&] { return is_refused.load(); });
  EXPECT_NE(refused.find("p[0].log: a callback of then() may not wait"), std::string::npos);
}

TYPED_TEST(ActorSemantics, ActorsWaitForEachOtherButNotInACircle) {
  const auto probes = this->s_.spawn(probe, this->options(3, true));
  const std::vector<ActorRef<Probe>> line{probes[2], probes[1]};
  EXPECT_EQ(probes[0].template call<&Probe::ask_along>(line).get(), 2);
  const std::vector<ActorRef<Probe>> circle{probes[0], probes[2], probes[1]};
  expect_error(Errc::endpoint_failed,
               {"p[0].ask_along > p[1].ask_along", "p[1].ask_along > p[2].ask_along",
                "p[2].ask_along > p[0].ask_along",
                "each waits for the answer of the next, and the last for itself"},
               [&] { probes[0].template call<&Probe::ask_along>(circle).get(); });
  EXPECT_EQ(probes[0].template call<&Probe::ask_along>(line).get(), 2);
}

TYPED_TEST(ActorSemantics, CallbacksOfThenRun) {
  const auto probes = this->s_.spawn(probe, this->options(2));
  probes[1].template call<&Probe::append>("text").get();
  EXPECT_EQ(probes[0].template call<&Probe::copy_log>(probes[1]).get(), "copy of text");
}

TYPED_TEST(ActorSemantics, RepliesEndCalls) {
  const auto probes = this->s_.spawn(probe, this->options());
  auto held = probes[0].template call<&Probe::hold>();
  probes[0].template tell<&Probe::hold>();
  EXPECT_EQ(probes[0].template call<&Probe::awaited>().get(), 1);
  probes[0].template call<&Probe::release>(3).get();
  EXPECT_EQ(held.get(), 3);
  auto dropped = probes[0].template call<&Probe::hold>();
  probes[0].template call<&Probe::drop>().get();
  expect_error(Errc::endpoint_failed, {"p[0].hold: its Reply was destroyed without an answer"},
               [&] { dropped.get(); });
  expect_error(Errc::endpoint_failed, {"p[0].throws: no ink"},
               [&] { probes[0].template call<&Probe::throws>().get(); });
  auto open = probes[0].template call<&Probe::hold>();
  EXPECT_EQ(probes[0].template call<&Probe::awaited>().get(), 1);
  this->s_.system->stop("p");
  expect_error(Errc::endpoint_failed, {"p[0].hold: its Reply was destroyed without an answer"},
               [&] { open.get(); });
}

TYPED_TEST(ActorSemantics, ReferencesAreSentInMessages) {
  const auto probes = this->s_.spawn(probe, this->options(3));
  const auto echoes = this->s_.spawn(echo);
  const auto found = probes[1].template call<&Probe::others>("p").get();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[2].name(), "p[2]");
  EXPECT_EQ(found[2].template call<&Probe::incarnation>().get(), 1U);
  expect_error(Errc::endpoint_failed,
               {"there is no mesh of actors \"q\"; the system has: p, test.echo"},
               [&] { probes[1].template call<&Probe::others>("q").get(); });
  expect_error(Errc::endpoint_failed,
               {"mesh \"test.echo\" has actors of type \"test.echo\", and not \"test.probe\""},
               [&] { probes[1].template call<&Probe::others>("test.echo").get(); });
  TypeParam other;
  const auto foreign = other.spawn(probe, {.name = "foreign"});
  expect_error(Errc::endpoint_failed, {"a reference to an actor of another system"}, [&] {
    probes[0].template call<&Probe::ask_along>(std::vector<ActorRef<Probe>>{foreign[0]}).get();
  });
}

TYPED_TEST(ActorSemantics, LoanedTensorsAreNotCopied) {
  const auto probes = this->s_.spawn(probe, this->options());
  LoanedTensor loaned = this->s_.system->loan({DType::f32, {4}});
  std::ranges::fill(loaned.template get<float>(), 2.5F);
  const HostTensor once = probes[0].template call<&Probe::pass>(std::move(loaned).finish()).get();
  EXPECT_EQ(probes[0].template call<&Probe::pass>(once).get().template get<float>()[3], 2.5F);
  EXPECT_EQ(this->s_.system->counts().copied_tensors, 0U);
  probes[0].template call<&Probe::pass>(HostTensor(std::vector<float>{1}, Shape{1})).get();
  EXPECT_EQ(this->s_.system->counts().copied_tensors, 1U);
}

TYPED_TEST(ActorSemantics, SeedsDependOnTheSystemsSeedAndTheActor) {
  const auto probes = this->spawn_restarting(2);
  const auto seeds = probes.template call<&Probe::seed>().get();
  EXPECT_EQ(seeds, (std::vector<std::uint64_t>{actor_seed(TypeParam::kSeed, 0, 0, 1),
                                               actor_seed(TypeParam::kSeed, 0, 1, 1)}));
  probes[0].template tell<&Probe::fail_with>("once");
  this->s_.until([&] { return probes[0].template call<&Probe::incarnation>().get() == 2; });
  EXPECT_NE(probes[0].template call<&Probe::seed>().get(), seeds[0]);
}

TYPED_TEST(ActorSemantics, WorkIsCalledWhileNoMessageWaits) {
  const auto workers =
      this->s_.spawn(worker, {.name = "w", .supervision = {.max_restarts = 1, .backoff_s = 0}});
  this->s_.until([&] { return workers[0].template call<&Worker::count>().get() > 3; });
  // The mesh survives the first failure, but not the second.
  this->s_.until([&] {
    workers[0].template call<&Worker::fail_in_work>().outcome();
    return this->s_.system->failure().has_value();
  });
  EXPECT_STREQ(this->s_.system->failure()->what(), "w[0].work: work went wrong");
}

// --- Failures ---

TYPED_TEST(ActorSemantics, AFailedActorIsMadeAgainWithoutItsState) {
  const auto probes = this->spawn_restarting(2);
  for (std::uint32_t i = 1; i <= 5; ++i) {
    probes[0].template tell<&Probe::append>("lost");
    probes[0].template tell<&Probe::fail_with>("again");
    probes[1].template call<&Probe::append>("x").get();
    this->s_.until([&] { return probes[0].template call<&Probe::incarnation>().get() > i; });
    EXPECT_EQ(probes[0].template call<&Probe::log>().get(), "");
  }
  EXPECT_EQ(probes[1].template call<&Probe::log>().get(), "xxxxx");
  EXPECT_FALSE(this->s_.system->failure());
}

TYPED_TEST(ActorSemantics, AMailboxSurvivesItsActor) {
  const auto probes = this->spawn_restarting(1);
  probes[0].template tell<&Probe::fail_with>("once");
  for (int i = 0; i < 20; ++i) probes[0].template tell<&Probe::append>("x");
  this->s_.until([&] { return probes[0].template call<&Probe::log>().get().size() == 20; });
  EXPECT_EQ(probes[0].template call<&Probe::incarnation>().get(), 2U);
  EXPECT_EQ(this->s_.system->counts().lost_tells, 0U);
}

TYPED_TEST(ActorSemantics, AMeshThatGivesUpEndsAlone) {
  SpawnOptions options = this->options();
  options.supervision = {.max_restarts = 1, .backoff_s = 0, .then = ActorGivesUp::stop};
  const auto probes = this->s_.spawn(probe, options);
  const auto others = this->s_.spawn(probe, {.name = "others"});
  probes[0].template tell<&Probe::fail_with>("first");
  this->s_.until([&] { return probes[0].template call<&Probe::incarnation>().get() == 2; });
  probes[0].template tell<&Probe::fail_with>("second");
  this->s_.until([&] { return !probes[0].template call<&Probe::log>().outcome().ok(); });
  const std::string ended = "p[0] has ended: p[0].fail_with: second";
  expect_error(Errc::actor_failed, {ended}, [&] { probes[0].template call<&Probe::log>().get(); });
  expect_error(Errc::actor_failed, {ended}, [&] { probes[0].template tell<&Probe::append>("x"); });
  EXPECT_FALSE(this->s_.system->failure());
  EXPECT_EQ(others[0].template call<&Probe::log>().get(), "");
  this->s_.spawn(probe, options);
}

TYPED_TEST(ActorSemantics, AMeshThatEscalatesFailsTheSystem) {
  const auto probes = this->s_.spawn(probe, this->options());
  const auto others = this->s_.spawn(probe, {.name = "others"});
  probes[0].template tell<&Probe::fail_with>("the first cause");
  this->s_.until([&] { return this->s_.system->failure().has_value(); });
  EXPECT_STREQ(this->s_.system->failure()->what(), "p[0].fail_with: the first cause");
  this->s_.until([&] { return !others[0].template call<&Probe::log>().outcome().ok(); });
  expect_error(Errc::actor_failed, {"others[0] has ended: p[0].fail_with: the first cause"},
               [&] { others[0].template call<&Probe::log>().get(); });
  expect_error(Errc::actor_failed, {"the actor system has failed: p[0].fail_with: the first cause"},
               [&] { this->s_.spawn(echo); });
}

TYPED_TEST(ActorSemantics, AMeshCanBeMadeAgainAsAWhole) {
  SpawnOptions options = this->options(4);
  options.supervision = {.max_restarts = 1, .backoff_s = 0, .restart = ActorRestart::mesh};
  const auto probes = this->s_.spawn(probe, options);
  probes[1].template tell<&Probe::fail_with>("once");
  this->s_.until([&] {
    return probes.template call<&Probe::incarnation>().get() == std::vector<std::uint32_t>(4, 2);
  });
}

TYPED_TEST(ActorSemantics, AFailedActorCanBeLeft) {
  SpawnOptions options = this->options(2);
  options.supervision = {.restart = ActorRestart::none};
  const auto probes = this->s_.spawn(probe, options);
  probes[0].template tell<&Probe::fail_with>("left");
  const auto ended = [&] {
    const auto outcome = probes[0].template call<&Probe::log>().outcome();
    return !outcome.ok() && outcome.error().code() == Errc::actor_failed;
  };
  this->s_.until(ended);
  expect_error(Errc::actor_failed, {"p[0] has ended: ", "p[0].fail_with: left"},
               [&] { probes[0].template call<&Probe::log>().get(); });
  EXPECT_EQ(probes[1].template call<&Probe::incarnation>().get(), 1U);
  EXPECT_FALSE(this->s_.system->failure());
}

TYPED_TEST(ActorSemantics, AConstructorThatThrowsEndsTheSpawn) {
  SpawnOptions options = this->options(2);
  options.config = Config{{"fails_from", 1}};
  expect_error(Errc::actor_failed, {"its constructor threw: no memory for a probe"},
               [&] { this->s_.spawn(probe, options); });
  options.config = Config{{"fails_from", 2}};
  const auto probes = this->s_.spawn(probe, options);  // the name is free again
  probes[1].template tell<&Probe::fail_with>("once");
  this->s_.until([&] { return this->s_.system->failure().has_value(); });
}

TYPED_TEST(ActorSemantics, AStoppedMeshIsCancelled) {
  auto [probes, waits] = this->spawn_blocked();
  probes[1].template call<&Probe::release>(0).get();
  this->s_.system->stop("p");
  expect_error(Errc::cancelled, {"p[0] was stopped"},
               [&] { probes[0].template call<&Probe::log>().get(); });
  expect_error(Errc::not_found, {"stop: there is no mesh \"p\""},
               [&] { this->s_.system->stop("p"); });
  this->s_.spawn(probe, this->options());
  expect_error(Errc::invalid_argument, {"the system has a mesh \"p\" already"},
               [&] { this->s_.spawn(probe, this->options()); });
}

TYPED_TEST(ActorSemantics, ActorsEndWithTheirSystem) {
  const auto probes = this->s_.spawn(probe, this->options(2));
  auto open = probes[0].template call<&Probe::hold>();
  probes[0].template call<&Probe::held>().get();
  this->s_.system.reset();
  EXPECT_EQ(Probe::made.load(), 0);
  EXPECT_FALSE(open.outcome().ok());
  expect_error(Errc::cancelled, {"the actor system has ended"},
               [&] { probes[0].template call<&Probe::log>().get(); });
  expect_error(Errc::cancelled, {"the actor system has ended"},
               [&] { probes[0].template tell<&Probe::append>("x"); });
}

// --- Deaths of processes ---

using SystemsOfProcesses =
    ::testing::Types<Real<2>, Simulated<2, 1>, Simulated<2, 2>, Simulated<2, 3>, Simulated<2, 4>>;
template <typename S>
class ActorDeaths : public ActorSemantics<S> {};
TYPED_TEST_SUITE(ActorDeaths, SystemsOfProcesses, SystemNames);

TYPED_TEST(ActorDeaths, EndCallsThatWereTakenAsPeerLost) {
  const auto probes = this->spawn_restarting(4);
  const auto kill = this->s_.killer(probes[0]);
  probes[2].template call<&Probe::append>("kept").get();
  auto held = probes[0].template call<&Probe::hold>();
  EXPECT_EQ(probes[0].template call<&Probe::held>().get(), 1);
  kill();
  expect_error(Errc::peer_lost,
               {"p[0].hold: its process died before it answered; the call may have run"},
               [&] { held.get(); });
  // Handles follow: calls wait for the next incarnation of both actors of the process.
  EXPECT_EQ(probes.template call<&Probe::incarnation>().get(),
            (std::vector<std::uint32_t>{2, 2, 1, 1}));
  EXPECT_EQ(probes[2].template call<&Probe::log>().get(), "kept");
}

TYPED_TEST(ActorDeaths, AskConstEndpointsOnceMore) {
  const auto probes = this->spawn_restarting(2);
  const auto kill = this->s_.killer(probes[0]);
  auto asked = probes[0].template call<&Probe::hold_first>();
  probes[0].template call<&Probe::incarnation>().get();
  kill();
  EXPECT_EQ(asked.get(), 2);
}

TYPED_TEST(ActorDeaths, LoseMessagesThatWereToldAndCountThem) {
  SpawnOptions options = this->options(2, true);
  options.supervision = {.max_restarts = -1, .backoff_s = 0};
  const auto probes = this->s_.spawn(probe, options);
  const auto kill = this->s_.killer(probes[0]);
  auto waits = probes[0].template call<&Probe::ask>(probes[1]);
  this->s_.until([&] { return probes[1].template call<&Probe::held>().get() == 1; });
  for (int i = 0; i < 20; ++i) probes[0].template tell<&Probe::append>("lost");
  waits.cancel();  // otherwise the next incarnation would be asked too
  kill();
  EXPECT_EQ(probes[0].template call<&Probe::log>().get(), "");
  this->s_.until([&] { return this->s_.system->counts().lost_tells >= 20; });
  EXPECT_EQ(this->s_.system->counts().lost_tells, 20U);
}

TYPED_TEST(ActorDeaths, EndAMeshThatMayNotBeMadeAgain) {
  const auto probes = this->s_.spawn(probe, this->options(2));
  const auto kill = this->s_.killer(probes[1]);
  auto held = probes[1].template call<&Probe::hold>();
  probes[1].template call<&Probe::held>().get();
  kill();
  this->s_.until([&] { return this->s_.system->failure().has_value(); });
  EXPECT_NE(std::string(this->s_.system->failure()->what()).find("of actors 1 to 1 was killed"),
            std::string::npos)
      << this->s_.system->failure()->what();
  expect_error(Errc::peer_lost, {"p[1].hold"}, [&] { held.get(); });
  // The process of p[0] ends after the failure is known.
  this->s_.until([&] { return !probes[0].template call<&Probe::log>().outcome().ok(); });
  expect_error(Errc::actor_failed, {"p[0] has ended: mesh \"p\": process "},
               [&] { probes[0].template call<&Probe::log>().get(); });
}

TYPED_TEST(ActorDeaths, CanMakeAllActorsOfAProcessAgain) {
  SpawnOptions options = this->options(4);
  options.supervision = {.max_restarts = -1, .backoff_s = 0, .restart = ActorRestart::process};
  const auto probes = this->s_.spawn(probe, options);
  probes[1].template tell<&Probe::fail_with>("once");
  const auto is_made_again = [&] {
    const auto incarnation = probes[1].template call<&Probe::incarnation>().outcome();
    return incarnation.ok() && incarnation.value() == 2;
  };
  this->s_.until(is_made_again);
  EXPECT_EQ(probes.template call<&Probe::incarnation>().get(),
            (std::vector<std::uint32_t>{2, 2, 1, 1}));
}

/// The second failure comes before the process that replaces the first failed process has joined.
TYPED_TEST(ActorDeaths, AndAFailureMeanwhileMakeTheMeshAgain) {
  SpawnOptions options = this->options(2);
  options.supervision = {.max_restarts = -1, .backoff_s = 0, .restart = ActorRestart::mesh};
  options.config = {{"fails_at", {1, 2}}};
  const auto probes = this->s_.spawn(probe, options);
  const auto kill = this->s_.killer(probes[0]);
  kill();
  this->s_.until([&] { return probes[1].template call<&Probe::incarnation>().get() == 3; });
  EXPECT_GE(probes[0].template call<&Probe::incarnation>().get(), 2U);
  EXPECT_FALSE(this->s_.system->failure());
}

TYPED_TEST(ActorDeaths, OfAnActorThatHangsIsTheKeepers) {
  SpawnOptions options = this->options(2, true);
  options.supervision = {
      .max_restarts = 1, .backoff_s = 0, .hang_timeout_s = 0.2, .then = ActorGivesUp::stop};
  const auto probes = this->s_.spawn(probe, options);
  // ask() is const, so the next incarnation is asked too, and hangs.
  auto waits = probes[0].template call<&Probe::ask>(probes[1]);
  expect_error(Errc::peer_lost, {"p[0].ask"}, [&] { waits.get(); });
  expect_error(Errc::actor_failed, {"p[0] was in one function for more than 0.2 s"},
               [&] { probes[0].template call<&Probe::log>().get(); });
}

}  // namespace
}  // namespace weft::conformance_test
