/// Tests references to actors in messages, and answers that are sent later.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/actors/actors.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::references_test {
namespace {

using testing::Desk;
using testing::desk;
using testing::Echo;
using testing::echo;
using testing::expect_error;

class ActorReferences : public ::testing::TestWithParam<int> {
 protected:
  ActorMesh<Desk> spawn_desk() {
    return system_.spawn(desk, {.name = "desk", .place = place_, .own_thread = true});
  }
  ActorPlace place_{.processes = GetParam()};
  ActorSystem system_{{.name = "references"}};
  ActorMesh<Echo> echoes_ =
      system_.spawn(echo, {.name = "echo", .count = 3, .place = {.processes = 2 * GetParam()}});
};
INSTANTIATE_TEST_SUITE_P(Places, ActorReferences, ::testing::Values(0, 1),
                         [](const auto& place) { return fmt::format("Processes{}", place.param); });

TEST_P(ActorReferences, AreCalledByWhoeverGetsThem) {
  const auto desks = spawn_desk();
  for (int i = 0; i < echoes_.size(); ++i) {
    EXPECT_EQ(desks[0].call<&Desk::ask>(echoes_[i], i, 40).get(), i + 40);
  }
  const std::vector<ActorRef<Echo>> all = desks[0].call<&Desk::echoes>().get();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].name(), "echo[2]");
  EXPECT_EQ(all[2].call<&Echo::add>(1, 1).get(), 2);
  EXPECT_EQ(desks[0].call<&Desk::self>().get().name(), "desk[0]");
}

TEST_P(ActorReferences, ToNoActorAreSentButNotCalled) {
  const auto desks = spawn_desk();
  const ActorRef<Echo> none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.name(), "");
  expect_error(Errc::invalid_argument, {"refers to no actor"},
               [&] { none.call<&Echo::add>(1, 1); });
  expect_error(Errc::endpoint_failed, {"desk[0].ask", "refers to no actor"},
               [&] { desks[0].call<&Desk::ask>(none, 1, 1).get(); });
}

TEST_P(ActorReferences, StayInTheirSystem) {
  const auto desks = spawn_desk();
  ActorSystem other({.name = "other"});
  const auto foreign = other.spawn(echo, {.name = "echo"});
  expect_error(Errc::endpoint_failed, {"desk[0].ask", "an actor of another system"},
               [&] { desks[0].call<&Desk::ask>(foreign[0], 1, 1).get(); });
}

TEST_P(ActorReferences, ThatLeadBackToTheCallerAreRefusedAtOnce) {
  const auto desks = system_.spawn(
      desk,
      {.name = "desk", .count = 3, .place = {.processes = 3 * GetParam()}, .own_thread = true});
  const std::vector<ActorRef<Desk>> line{desks[2], desks[1]};
  EXPECT_EQ(desks[0].call<&Desk::ask_along>(line).get(), 2);
  // No call here has a timeout that the test would reach.
  const std::vector<ActorRef<Desk>> circle{desks[0], desks[2], desks[1]};
  expect_error(Errc::endpoint_failed,
               // The error begins with the desk that began to wait last, which may be any of them.
               {"desk[0].ask_along > desk[1].ask_along", "desk[1].ask_along > desk[2].ask_along",
                "desk[2].ask_along > desk[0].ask_along", "each waits for the answer of the next"},
               [&] { desks[0].with({.timeout_s = 1e6}).call<&Desk::ask_along>(circle).get(); });
  expect_error(Errc::endpoint_failed, {"desk[0].ask_along > desk[0].ask_along"}, [&] {
    desks[0].with({.timeout_s = 1e6}).call<&Desk::ask_along>(std::vector{desks[0]}).get();
  });
  EXPECT_EQ(desks[0].call<&Desk::ask_along>(line).get(), 2);
}

/// Several threads let the desks wait for each other all the time, but never in a circle.
TEST_P(ActorReferences, ThatLeadNotBackAreNeverRefused) {
  const auto desks = system_.spawn(
      desk,
      {.name = "desk", .count = 4, .place = {.processes = 2 * GetParam()}, .own_thread = true});
  std::vector<std::jthread> threads;
  std::atomic<int> answers = 0;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 200; ++i) {
        const int first = (i + thread) % 3;
        std::vector<ActorRef<Desk>> line;
        for (int next = 3; next > first; --next) line.push_back(desks[next]);
        answers += desks[first].call<&Desk::ask_along>(line).get() == 3 - first ? 1 : 0;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(answers, 600);
}

using ActorReplies = ActorReferences;
INSTANTIATE_TEST_SUITE_P(Places, ActorReplies, ::testing::Values(0, 1),
                         [](const auto& place) { return fmt::format("Processes{}", place.param); });

TEST_P(ActorReplies, AreSentLaterOrAtOnce) {
  const auto desks = spawn_desk();
  EXPECT_EQ(desks[0].call<&Desk::at_once>(7).get(), 7);
  std::vector<Future<int>> answers;
  for (int i = 0; i < 5; ++i) answers.push_back(desks[0].call<&Desk::later>(i));
  EXPECT_EQ(desks[0].call<&Desk::awaited>().get(), 5);
  answers[3].cancel();
  EXPECT_EQ(desks[0].call<&Desk::awaited>().get(), 4);
  EXPECT_FALSE(answers[0].wait_for(std::chrono::milliseconds(0)));
  desks[0].call<&Desk::answer_all>().get();
  for (const int i : {0, 1, 2, 4}) {
    EXPECT_EQ(answers[static_cast<std::size_t>(i)].get(), 2 * i);
  }
}

TEST_P(ActorReplies, AreErrorsIfTheActorSaysSoOrGivesUp) {
  const auto desks = spawn_desk();
  expect_error(Errc::endpoint_failed, {"desk[0].never: closed on Sundays"},
               [&] { desks[0].call<&Desk::never>().get(); });
  expect_error(Errc::endpoint_failed, {"desk[0].throws: no ink"},
               [&] { desks[0].call<&Desk::throws>().get(); });
  auto dropped = desks[0].call<&Desk::later>(1);
  desks[0].call<&Desk::drop_all>().get();
  expect_error(Errc::endpoint_failed, {"desk[0].later", "destroyed without an answer"},
               [&] { dropped.get(); });
  auto expired = desks[0].with({.timeout_s = 0.05}).call<&Desk::later>(2);
  expect_error(Errc::timeout, {"desk[0].later", "its Reply wasn't sent"}, [&] { expired.get(); });
}

TEST_P(ActorReplies, EndWithTheirActor) {
  const auto desks = spawn_desk();
  auto open = desks[0].call<&Desk::later>(1);
  EXPECT_EQ(desks[0].call<&Desk::awaited>().get(), 1);
  system_.stop("desk");
  expect_error(Errc::endpoint_failed, {"desk[0].later", "destroyed without an answer"},
               [&] { open.get(); });
}

TEST_P(ActorReplies, ToATellAreNotSent) {
  const auto desks = spawn_desk();
  desks[0].tell<&Desk::later>(1);
  EXPECT_EQ(desks[0].call<&Desk::awaited>().get(), 0);
  desks[0].call<&Desk::answer_all>().get();
}

}  // namespace
}  // namespace weft::references_test
