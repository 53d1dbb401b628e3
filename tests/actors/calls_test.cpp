/// Tests calls of actors in this process and in others: values, order, futures, limits.

#include <gtest/gtest.h>

#include <future>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "tests/actors/actors.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::calls_test {
namespace {

using testing::caller;
using testing::Caller;
using testing::Echo;
using testing::echo;
using testing::expect_error;
using testing::Named;

/// Runs each test with actors in this process and in processes of their own.
class ActorCalls : public ::testing::TestWithParam<int> {
 protected:
  ActorMesh<Echo> spawn(int count = 2, bool own_thread = false) {
    return system_.spawn(echo, {.name = "echo",
                                .count = count,
                                .place = {.processes = std::min(GetParam(), count)},
                                .own_thread = own_thread});
  }

  ActorSystem system_{{.name = "calls"}};
};
INSTANTIATE_TEST_SUITE_P(Places, ActorCalls, ::testing::Values(0, 1, 2),
                         [](const auto& place) { return fmt::format("Processes{}", place.param); });

TEST_P(ActorCalls, ReturnWhatTheEndpointReturns) {
  const auto actors = spawn();
  EXPECT_EQ(actors[0].call<&Echo::add>(2, 3).get(), 5);
  const Named sent{.name = "a", .values = {{"x", {1, 2.5}}, {"empty", {}}}, .extra = 7};
  const Named got = actors[1].call<&Echo::same>(sent).get();
  EXPECT_EQ(got.name, sent.name);
  EXPECT_EQ(got.values, sent.values);
  EXPECT_EQ(got.extra, sent.extra);
}

TEST_P(ActorCalls, GatherAnswersInTheOrderOfTheMesh) {
  const auto actors = spawn(5);
  EXPECT_EQ(actors.call<&Echo::add>(1, 1).get(), std::vector<int>(5, 2));
  std::vector<std::string> texts{"a", "b", "c", "d", "e"};
  actors.scatter<&Echo::append>(texts).get();
  EXPECT_EQ(actors.call<&Echo::log>().get(), texts);
  EXPECT_EQ(actors.slice(1, 3).call<&Echo::log>().get(), (std::vector<std::string>{"b", "c"}));
  expect_error(Errc::invalid_argument, {"1 arguments for 5 actors"},
               [&] { actors.scatter<&Echo::append>(std::vector<std::string>{"a"}); });
  expect_error(Errc::invalid_argument, {"slice(3, 6) of 5 actors"}, [&] { actors.slice(3, 6); });
}

TEST_P(ActorCalls, ArriveInTheOrderInWhichAThreadSentThem) {
  const auto actors = spawn(1);
  std::string expected;
  std::vector<Future<void>> calls;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = fmt::format("{},", i);
    expected += text;
    if (i % 2 == 0) {
      actors[0].tell<&Echo::append>(text);
    } else {
      calls.push_back(actors[0].call<&Echo::append>(text));
    }
  }
  EXPECT_EQ(actors[0].call<&Echo::log>().get(), expected);
}

TEST_P(ActorCalls, AreAnsweredToManyThreadsAtOnce) {
  const auto actors = spawn(3);
  std::vector<std::jthread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        right += actors[(t + i) % 3].call<&Echo::add>(t, i).get() == t + i ? 1 : 0;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(right.load(), 6 * 300);
}

TEST_P(ActorCalls, PassTheTextOfAnException) {
  const auto actors = spawn();
  expect_error(Errc::endpoint_failed, {"echo[0].fail_with: out of cheese"},
               [&] { actors[0].call<&Echo::fail_with>("out of cheese").get(); });
  EXPECT_EQ(actors[0].call<&Echo::add>(1, 2).get(), 3) << "the actor lives";
}

TEST_P(ActorCalls, RefuseAnAnswerThatIsTooLong) {
  const auto actors = spawn();
  expect_error(Errc::invalid_argument, {"echo[0]", "HostTensor"},
               [&] { actors[0].call<&Echo::too_long>().get(); });
  expect_error(Errc::invalid_argument, {"100004 bytes", "HostTensor"},
               [&] { actors[0].call<&Echo::append>(std::string(100'000, 'x')).get(); });
}

TEST_P(ActorCalls, EndAtTheirTimeoutOrWhenTheyAreCancelled) {
  const auto actors = spawn(1, true);
  auto running = actors[0].call<&Echo::wait_for_stop>();
  expect_error(Errc::timeout,
               {"echo[0].append", "within 0.05 s", "echo[0].wait_for_stop has run for"},
               [&] { actors[0].with({.timeout_s = 0.05}).call<&Echo::append>("never").get(); });
  std::stop_source stop;
  auto stopped = actors[0].with({.stop = stop.get_token()}).call<&Echo::append>("never");
  auto cancelled = actors[0].call<&Echo::append>("never");
  EXPECT_FALSE(stopped.wait_for(std::chrono::milliseconds(1)));
  stop.request_stop();
  cancelled.cancel();
  expect_error(Errc::cancelled, {}, [&] { stopped.get(); });
  expect_error(Errc::cancelled, {}, [&] { cancelled.get(); });
  system_.stop("echo");
  EXPECT_TRUE(running.outcome().ok());
}

TEST_P(ActorCalls, CallBackOnTheThreadOfReplies) {
  const auto actors = spawn();
  std::promise<int> sum;
  actors[0].call<&Echo::add>(20, 22).then(
      [&](const Outcome<int>& outcome) { sum.set_value(outcome.value()); });
  EXPECT_EQ(sum.get_future().get(), 42);
  std::promise<std::string> refused;
  actors[0].call<&Echo::add>(1, 1).then([&](const Outcome<int>&) {
    try {
      actors[1].call<&Echo::add>(1, 1).get();
      refused.set_value("not refused");
    } catch (const Error& error) {
      refused.set_value(error.what());
    }
  });
  EXPECT_NE(refused.get_future().get().find("a callback of then()"), std::string::npos);
}

TEST_P(ActorCalls, OfOtherActorsNeedAThreadOfTheActor) {
  const auto echoes = spawn();
  const auto place = ActorPlace{.processes = std::min(GetParam(), 1)};
  const auto free = system_.spawn(caller, {.name = "free", .place = place, .own_thread = true});
  EXPECT_EQ(free[0].call<&Caller::add>(1, 30, 4).get(), 34);
  expect_error(Errc::endpoint_failed,
               {"free[0].add", "no mesh of actors \"echo\"; the system has: free, other"}, [&] {
                 system_.stop("echo");
                 system_.spawn(echo, {.name = "other"});
                 free[0].call<&Caller::add>(1, 30, 4).get();
               });
}

TEST_P(ActorCalls, AreRefusedWhereOtherActorsNeedTheThread) {
  const auto echoes = spawn();
  const auto place = ActorPlace{.processes = std::min(GetParam(), 1)};
  const auto shared = system_.spawn(caller, {.name = "shared", .place = place});
  expect_error(Errc::endpoint_failed,
               {"echo[0].add", "shared[0] may not wait for an answer", ".own_thread = true"},
               [&] { shared[0].call<&Caller::add>(0, 1, 1).get(); });
}

TEST_P(ActorCalls, AreRefusedIfTooManyWait) {
  const auto actors = spawn(1, true);
  auto running = actors[0].call<&Echo::wait_for_stop>();
  const auto eager = actors[0].with({.timeout_s = 60, .wait_if_full = false});
  std::vector<Future<void>> calls;
  for (int i = 0; i < 70; ++i) calls.push_back(eager.call<&Echo::append>("x"));
  expect_error(Errc::overloaded, {"echo[0]", "64 messages"}, [&] { calls.back().get(); });
  // The actor may begin its call at any time. After that, there is room for one more message, but
  // not for two.
  expect_error(Errc::overloaded, {"64 messages"}, [&] {
    for (int i = 0; i < 2; ++i) eager.tell<&Echo::append>("x");
  });
  const auto patient = actors[0].with({.timeout_s = 0.05});
  expect_error(Errc::timeout, {"echo[0]"}, [&] {
    for (int i = 0; i < 2; ++i) patient.tell<&Echo::append>("x");
  });
}

TEST_P(ActorCalls, TakeTheLeastBusyActor) {
  const auto actors = spawn(2, true);
  auto running = actors[0].call<&Echo::wait_for_stop>();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(actors.any().name(), "echo[1]");
}

}  // namespace
}  // namespace weft::calls_test
