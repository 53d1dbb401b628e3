/// Tests ActorTest as its users see it: equal seeds give equal histories, and some seeds show
/// faults that occur only in some orders.

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <weft/actor_test.hpp>
#include <weft/job.hpp>

#include "tests/actors/actors.hpp"
#include "tests/actors/probe.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::simulation_test {
namespace {

using testing::expect_error;
using testing::Probe;
using testing::probe;
using testing::Worker;
using testing::worker;

/// An actor that keeps a number.
struct Store {
  int get() const { return value; }
  void set(int to) { value = to; }
  void add(int more) { value += more; }
  using endpoints = Endpoints<&Store::get, &Store::set, &Store::add>;
  int value = 0;
};
const ActorType<Store> store{"test.store"};

/// An actor that adds to a store, in a right way and in two wrong ways.
struct Clerk {
  void add(const ActorRef<Store>& to, int n) const { to.call<&Store::add>(n).get(); }
  /// Is wrong: overwrites updates that other clerks make between the two calls.
  void read_and_write(const ActorRef<Store>& to, int n) const {
    to.call<&Store::set>(to.call<&Store::get>().get() + n).get();
  }
  /// Is wrong: adds twice if the answer of a call that has run is lost.
  void add_until_answered(const ActorRef<Store>& to, int n) const {
    while (!to.call<&Store::add>(n).outcome().ok()) {
    }
  }
  using endpoints = Endpoints<&Clerk::add, &Clerk::read_and_write, &Clerk::add_until_answered>;
};
const ActorType<Clerk> clerk{"test.clerk"};

/// An actor that passes a number on. Two relays of one sender may deliver their numbers in any
/// order.
struct Relay {
  void pass(const ActorRef<Store>& to, int n) const { to.tell<&Store::set>(n); }
  using endpoints = Endpoints<&Relay::pass>;
};
const ActorType<Relay> relay{"test.relay"};

template <auto Add>
void add_by_two_clerks(ActorTest& test) {
  const auto stores = test.spawn(store);
  const auto clerks = test.spawn(clerk, {.count = 2, .own_thread = true});
  clerks.template call<Add>(stores[0], 1).get();
  const int value = stores[0].template call<&Store::get>().get();
  test.require(value == 2, fmt::format("the store has {} rather than 2", value));
}

/// Removes the variable that replays a seed, and sets it while an object lives.
class GivenSeed {
 public:
  explicit GivenSeed(const std::string& seed) { ::setenv("WEFT_ACTOR_TEST_SEED", seed.c_str(), 1); }
  ~GivenSeed() { ::unsetenv("WEFT_ACTOR_TEST_SEED"); }
  GivenSeed(const GivenSeed&) = delete;
  GivenSeed& operator=(const GivenSeed&) = delete;
};

/// Returns the seed that an error of for_seeds() names.
std::string seed_of(const std::string& error) { return error.substr(5, error.find(':') - 5); }

/// Returns the history of a run with kills, drops, restarts, timeouts, callbacks, waits and work().
std::string busy_history(std::uint64_t seed) {
  std::string outcomes;  // callbacks write to it until the test has been destroyed
  ActorTest test({.seed = seed, .kills = 3, .drops = 2, .steps_between_faults = 15, .work_s = 0.5});
  const Supervision always{.max_restarts = -1, .backoff_s = 0.01};
  const auto stores = test.spawn(store, {.count = 3, .place = processes(2), .supervision = always});
  const auto clerks = test.spawn(
      clerk, {.count = 3, .place = processes(3), .own_thread = true, .supervision = always});
  const auto workers = test.spawn(worker, {.place = processes(1), .supervision = always});
  std::vector<Future<void>> calls;
  for (int i = 0; i < 12; ++i) {
    calls.push_back(clerks[i % 3].call<&Clerk::read_and_write>(stores[i % 2], 1));
    stores.any().call<&Store::get>().then(
        [&outcomes](const Outcome<int>& value) { outcomes += value.ok() ? "a" : "b"; });
  }
  test.kill(clerks[1]);
  for (Future<void>& call : calls) outcomes += call.outcome().ok() ? "+" : "-";
  test.advance(1);
  return outcomes + "\n" + test.history();
}

TEST(ActorTests, GiveEqualHistoriesForEqualSeeds) {
  std::set<std::string> histories;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const std::string history = busy_history(seed);
    ASSERT_EQ(history, busy_history(seed)) << "seed " << seed;
    histories.insert(history);
  }
  EXPECT_EQ(histories.size(), 200U) << "different seeds give different orders";
}

TEST(ActorTests, TryAllOrdersOfAnswersOfDifferentActors) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    ActorTest test({.seed = seed});
    const auto probes = test.spawn(probe, {.count = 3});
    std::string text;
    for (int i = 0; i < 3; ++i) {
      probes[i].call<&Probe::incarnation>().then(
          [&text, i](const Outcome<std::uint32_t>&) { text += std::to_string(i); });
    }
    test.run();
    orders.insert(text);
  }
  EXPECT_EQ(orders, (std::set<std::string>{"012", "021", "102", "120", "201", "210"}));
}

TEST(ActorTests, FindAnUpdateThatOnlySomeOrderLoses) {
  ActorTest::for_seeds(1, 200, add_by_two_clerks<&Clerk::add>);
  const std::string error = expect_error(
      Errc::loop_failed,
      {"the store has 1 rather than 2 (simulation_test.cpp:", "WEFT_ACTOR_TEST_SEED=",
       " replays it. The last ", "test.clerk[0].read_and_write begins", "test.store[0].set"},
      [] { ActorTest::for_seeds(1, 200, add_by_two_clerks<&Clerk::read_and_write>); });
  EXPECT_EQ(error.find("A second run"), std::string::npos) << error;
  const GivenSeed seed(seed_of(error));
  EXPECT_EQ(
      expect_error(Errc::loop_failed, {},
                   [] { ActorTest::for_seeds(1, 200, add_by_two_clerks<&Clerk::read_and_write>); }),
      error);
}

/// Adds 1 while an answer is lost at a moment that the seed chooses. Requires that at most 1 was
/// added.
template <auto Add>
void add_while_an_answer_is_lost(ActorTest& test) {
  const auto stores = test.spawn(store);
  const auto clerks = test.spawn(clerk, {.own_thread = true});
  clerks[0].template call<Add>(stores[0], 1).outcome();
  test.end_faults();
  const int value = stores[0].template call<&Store::get>().get();
  test.require(value <= 1, fmt::format("added {} times", value));
}

TEST(ActorTests, FindWhatIsDoneTwiceIfAnAnswerIsLost) {
  const ActorTestOptions faults{.drops = 1, .steps_between_faults = 3};
  ActorTest::for_seeds(1, 200, faults, add_while_an_answer_is_lost<&Clerk::add>);
  const std::string error =
      expect_error(Errc::loop_failed, {"added 2 times", "is lost", "no answer within 30 s"}, [&] {
        ActorTest::for_seeds(1, 200, faults,
                             add_while_an_answer_is_lost<&Clerk::add_until_answered>);
      });
  const GivenSeed seed(seed_of(error));
  expect_error(Errc::loop_failed, {"added 2 times"}, [&] {
    ActorTest::for_seeds(1, 1, faults, add_while_an_answer_is_lost<&Clerk::add_until_answered>);
  });
}

TEST(ActorTests, RunTheExampleOfTheirDocs) {
  std::set<std::string> histories;
  ActorTest::for_seeds(1, 100, {.kills = 2}, [&](ActorTest& test) {
    const auto stores =
        test.spawn(store, {.count = 4, .place = processes(2), .supervision = {.max_restarts = -1}});
    auto added = stores[0].call<&Store::add>(5);
    test.kill(stores[2]);
    test.run();
    test.advance(1);
    test.end_faults();
    test.require(stores[0].call<&Store::get>().get() <= 5, "added twice");
    histories.insert(test.history());
  });
  EXPECT_GT(histories.size(), 50U);
}

TEST(ActorTests, FindThatAnOrderAcrossSendersIsNotKept) {
  expect_error(Errc::loop_failed, {"the store has 1"}, [] {
    ActorTest::for_seeds(1, 50, [](ActorTest& test) {
      const auto stores = test.spawn(store);
      const auto relays = test.spawn(relay, {.count = 2});
      relays[0].tell<&Relay::pass>(stores[0], 1);
      relays[1].tell<&Relay::pass>(stores[0], 2);
      test.run();
      const int value = stores[0].call<&Store::get>().get();
      test.require(value == 2, fmt::format("the store has {}", value));
    });
  });
}

TEST(ActorTests, KillProcessesBetweenAnyTwoMessages) {
  std::set<std::string> outcomes;
  ActorTest::for_seeds(1, 300, {.kills = 1, .steps_between_faults = 4}, [&](ActorTest& test) {
    const auto stores = test.spawn(
        store, {.place = processes(1), .supervision = {.max_restarts = -1, .backoff_s = 0}});
    std::string outcome = stores[0].call<&Store::add>(1).outcome().ok() ? "answered " : "lost ";
    test.end_faults();
    outcome += std::to_string(stores[0].call<&Store::get>().get());
    outcomes.insert(outcome);
  });
  // A lost call may have added 1, but the new store begins at 0. An answered call may also give 0,
  // if the store died after the answer.
  EXPECT_EQ(outcomes, (std::set<std::string>{"answered 0", "answered 1", "lost 0"}));
}

TEST(ActorTests, SayIfATestDependsOnMoreThanItsSeed) {
  int runs = 0;
  expect_error(
      Errc::loop_failed,
      {"A second run of this seed didn't fail, so something in the test depends on more"}, [&] {
        ActorTest::for_seeds(
            1, 1, [&](ActorTest& test) { test.require(runs++ > 0, "the first run fails"); });
      });
  expect_error(Errc::loop_failed, {"A second run of this seed differs from event "}, [&] {
    ActorTest::for_seeds(1, 1, [&](ActorTest& test) {
      test.spawn(store, {.name = fmt::format("store-{}", runs++)});
      test.require(false, "each run fails");
    });
  });
  std::thread other;
  ActorTest test;
  const auto stores = test.spawn(store);
  other = std::thread([&] {
    expect_error(Errc::invalid_argument,
                 {"ActorTest: it is used by a thread that isn't the test's"},
                 [&] { stores[0].call<&Store::get>(); });
  });
  other.join();
}

TEST(ActorTests, MoveTheClockWhenTheyAreTold) {
  ActorTest test;
  EXPECT_EQ(test.now(), 0);
  const auto probes = test.spawn(probe, {.supervision = {.max_restarts = 2, .backoff_s = 2}});
  auto held = probes[0].call<&Probe::hold>();
  probes[0].tell<&Probe::fail_with>("once");
  test.run();
  EXPECT_EQ(test.now(), 0) << "messages take no time";
  auto later = probes[0].call<&Probe::incarnation>();
  test.run();
  EXPECT_FALSE(later.wait_for(std::chrono::seconds(0)));
  test.advance(1.5);
  EXPECT_FALSE(later.wait_for(std::chrono::seconds(0)));
  test.advance(0.5);
  EXPECT_TRUE(later.wait_for(std::chrono::seconds(0)));
  EXPECT_EQ(later.get(), 2U);
  EXPECT_EQ(test.now(), 2);
  expect_error(Errc::endpoint_failed, {"destroyed without an answer"}, [&] { held.get(); });
  expect_error(Errc::timeout, {"no answer within 30 s"},
               [&] { probes[0].call<&Probe::hold>().get(); });
  EXPECT_EQ(test.now(), 32);
  probes[0].tell<&Probe::fail_with>("twice");
  EXPECT_EQ(probes[0].call<&Probe::incarnation>().get(), 3U);
  EXPECT_EQ(test.now(), 36) << "the second restart comes after twice the time";
}

TEST(ActorTests, CallWorkInTheirSteps) {
  ActorTest test({.work_s = 0.5});
  const auto workers = test.spawn(worker, {.count = 2});
  test.run();
  const double before = test.now();
  EXPECT_TRUE(test.step());
  EXPECT_EQ(test.now(), before + 0.5);
  test.advance(10);
  EXPECT_EQ(test.now(), before + 10.5);
  const std::vector<int> counts = workers.call<&Worker::count>().get();
  EXPECT_GE(counts[0] + counts[1], 21);
  EXPECT_GT(counts[0], 0);
  EXPECT_GT(counts[1], 0);
}

TEST(ActorTests, EndWithoutAStepIfNothingIsLeft) {
  ActorTest test;
  const auto stores = test.spawn(store);
  test.run();
  EXPECT_FALSE(test.step());
  stores[0].tell<&Store::add>(1);
  EXPECT_TRUE(test.step());
  EXPECT_FALSE(test.step());
}

TEST(ActorTests, RefuseWhatTheyDoNotHave) {
  ActorTest test;
  const auto here = test.spawn(store);
  expect_error(Errc::invalid_argument, {"kill: test.store[0] is in the test's process"},
               [&] { test.kill(here[0]); });
  const Job job;
  expect_error(Errc::invalid_argument,
               {"SpawnOptions::lives_with is another job", "test.job().handle()"},
               [&] { test.spawn(store, {.name = "tied", .lives_with = &job}); });
  expect_error(Errc::invalid_argument, {"SpawnOptions::count = 0"},
               [&] { test.spawn(store, {.name = "none", .count = 0}); });
  expect_error(Errc::invalid_argument, {"kills = -1"}, [] { ActorTest bad({.kills = -1}); });
  expect_error(Errc::invalid_argument, {"work_s = 0"}, [] { ActorTest bad({.work_s = 0}); });
  const GivenSeed seed("7x");
  expect_error(Errc::invalid_argument, {"WEFT_ACTOR_TEST_SEED is \"7x\": expected a whole number"},
               [] { ActorTest bad; });
}

TEST(ActorTests, StopActorsThatNeverStopSending) {
  struct PingPong {
    explicit PingPong(ActorContext& context) : ctx(context) {}
    void ping(const ActorRef<PingPong>& other, const ActorRef<PingPong>& self) const {
      other.tell<&PingPong::ping>(self, other);
    }
    using endpoints = Endpoints<&PingPong::ping>;
    ActorContext& ctx;
  };
  const ActorType<PingPong> type{"test.ping_pong"};
  ActorTest test({.max_steps = 1000});
  const auto both = test.spawn(type, {.count = 2});
  both[0].tell<&PingPong::ping>(both[1], both[0]);
  expect_error(Errc::timeout, {"ActorTest: 1000 steps were taken", "without an end?"},
               [&] { test.run(); });
}

TEST(ActorTests, WriteTheHistoryIfAnExceptionEndsThem) {
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(
      {
        ActorTest test({.seed = 9});
        test.spawn(store);
        test.require(false, "no");
      },
      Error);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("seed 9; WEFT_ACTOR_TEST_SEED=9 replays it"), std::string::npos) << text;
  EXPECT_NE(text.find("0.000000 test.store[0] is made in process 0: incarnation 1"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace weft::simulation_test
