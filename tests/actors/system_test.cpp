/// Tests an actor system as its program sees it: callbacks in an event loop, counts, warnings.

#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/actors/actors.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::system_test {
namespace {

using testing::Desk;
using testing::desk;
using testing::Echo;
using testing::echo;
using testing::expect_error;

TEST(ActorSystems, RunCallbacksInTheEventLoopOfTheProgram) {
  ActorSystem system;
  const auto actors = system.spawn(echo, {.count = 2, .place = processes(1)});
  pollfd loop{.fd = system.fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&loop, 1, 0), 0);
  EXPECT_EQ(system.run_ready(), 0);
  int sum = 0;
  std::thread::id thread;
  for (int i = 0; i < 10; ++i) {
    actors[i % 2].call<&Echo::add>(i, 1).then([&](const Outcome<int>& outcome) {
      sum += outcome.value();
      thread = std::this_thread::get_id();
    });
  }
  for (int ran = 0; ran < 10;) {
    ASSERT_EQ(::poll(&loop, 1, 60'000), 1);
    ran += system.run_ready();
  }
  EXPECT_EQ(sum, 55);
  EXPECT_EQ(thread, std::this_thread::get_id());
  EXPECT_EQ(::poll(&loop, 1, 0), 0);
}

TEST(ActorSystems, RunTheLastCallbacksWhenTheyEnd) {
  int ran = 0;
  {
    ActorSystem system;
    const auto actors = system.spawn(echo, {.own_thread = true});
    EXPECT_GE(system.fd(), 0);
    actors[0].call<&Echo::wait_for_stop>().then([&](const Outcome<int>&) { ++ran; });
  }
  EXPECT_EQ(ran, 1);
}

TEST(ActorSystems, CountCopiesOfTensors) {
  ActorSystem system;
  const auto actors = system.spawn(echo, {.count = 2, .place = processes(2)});
  LoanedTensor loaned = system.loan({DType::f32, {4}});
  for (float& value : loaned.get<float>()) value = 1;
  const HostTensor there = actors[0].call<&Echo::doubled>(std::move(loaned).finish()).get();
  EXPECT_EQ(actors[1].call<&Echo::pass>(there).get().get<float>()[3], 2.0F);
  EXPECT_EQ(system.counts().copied_tensors, 0U);
  actors[1].call<&Echo::pass>(HostTensor(std::vector<float>{1}, Shape{1})).get();
  EXPECT_EQ(system.counts().copied_tensors, 1U);
}

/// Stops a process, and waits until all its threads have stopped.
void stop_process(int pid) {
  ::kill(pid, SIGSTOP);
  for (char state = 0; state != 'T';) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string text((std::istreambuf_iterator<char>(file)), {});
    state = text.at(text.rfind(')') + 2);
  }
}

TEST(ActorSystems, CountTellsThatAreLostWithAProcess) {
  ActorSystem system;
  const auto actors = system.spawn(
      echo, {.place = processes(1), .supervision = {.max_restarts = 1, .backoff_s = 0}});
  const int pid = actors[0].call<&Echo::pid>().get();
  stop_process(pid);
  for (int i = 0; i < 20; ++i) actors[0].tell<&Echo::append>("lost");
  ::kill(pid, SIGKILL);
  EXPECT_NE(actors[0].call<&Echo::pid>().get(), pid);
  while (system.counts().lost_tells < 20) std::this_thread::yield();  // each thread sees the death
  EXPECT_EQ(system.counts().lost_tells, 20U);
}

TEST(ActorSystems, WarnOfFunctionsThatDelayOtherActors) {
  ::testing::internal::CaptureStderr();
  {
    ActorSystem system({.threads = 1});
    const auto actors = system.spawn(desk, {.name = "desk", .count = 3});
    actors[1].call<&Desk::spin>(3).get();
    actors[2].call<&Desk::spin>(3).get();
    const auto alone = system.spawn(desk, {.name = "alone", .own_thread = true});
    alone[0].call<&Desk::spin>(3).get();
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("desk[1].spin took "), std::string::npos) << log;
  EXPECT_NE(log.find("2 other actors that share its thread waited"), std::string::npos) << log;
  EXPECT_EQ(log.find("desk[2].spin"), std::string::npos) << log;
  EXPECT_EQ(log.find("alone"), std::string::npos) << log;
}

/// The two actors have equal row numbers, but in different systems, so their waits must not be
/// confused.
TEST(ActorSystems, MayWaitForEachOthersActors) {
  ActorSystem first;
  ActorSystem second;
  const auto asked = second.spawn(echo, {.place = processes(1)});
  static std::optional<ActorRef<Echo>> other;  // references can't be sent to another system
  other = asked[0];
  struct Asking {
    int ask() const { return other->call<&Echo::add>(1, 2).get(); }
    using endpoints = Endpoints<&Asking::ask>;
  };
  static const ActorType<Asking> asking{"test.asking"};
  const auto actors = first.spawn(asking, {.own_thread = true});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(actors[0].call<&Asking::ask>().get(), 3);
  other.reset();
}

/// An actor that makes or stops meshes in its functions.
class Manager {
 public:
  static inline ActorSystem* system = nullptr;
  void spawn(const std::string& name) const { system->spawn(echo, {.name = name}); }
  void stop(const std::string& name) const { system->stop(name); }
  using endpoints = Endpoints<&Manager::spawn, &Manager::stop>;
};
const ActorType<Manager> manager{"test.manager"};

TEST(ActorSystems, AreManagedByActorsThatNobodyWaitsFor) {
  ActorSystem system;
  Manager::system = &system;
  const auto own = system.spawn(manager, {.name = "own", .own_thread = true});
  own[0].call<&Manager::spawn>("made").get();
  own[0].call<&Manager::stop>("made").get();
  expect_error(Errc::endpoint_failed, {"own[0]", "stop()"},
               [&] { own[0].call<&Manager::stop>("own").get(); });
  const auto shared = system.spawn(manager, {.name = "shared"});
  expect_error(Errc::endpoint_failed, {"spawn()", "shared[0]", "own_thread = true"},
               [&] { shared[0].call<&Manager::spawn>("made").get(); });
  std::promise<std::string> refused;
  own[0].call<&Manager::spawn>("again").then([&](const Outcome<void>&) {
    try {
      system.stop("again");
      refused.set_value("");
    } catch (const Error& error) {
      refused.set_value(error.what());
    }
  });
  EXPECT_NE(refused.get_future().get().find("a callback of then()"), std::string::npos);
}

TEST(ActorSystems, RefuseConfigThatIsNoText) {
  ActorSystem system;
  expect_error(Errc::invalid_argument, {"\"test.echo\"", "SpawnOptions::config", "UTF-8"}, [&] {
    system.spawn(echo, {.place = processes(1), .config = {{"file", "caf\xe9"}}});
  });
  EXPECT_EQ(system.spawn(echo)[0].call<&Echo::add>(1, 2).get(), 3);
}

/// A system may make any number of meshes, because it reuses the rows of stopped meshes.
TEST(ActorSystems, MakeMoreMeshesThanTheyHaveRoomFor) {
  ActorSystem system;
  const auto lasting = system.spawn(echo, {.name = "lasting"});
  std::optional<ActorRef<Echo>> first;
  std::optional<ActorRef<Echo>> big;
  for (int i = 0; i < 1500; ++i) {  // there is room for 1,024 meshes
    const int count = 1 + i % 3;
    const auto actors = system.spawn(echo, {.name = "passing", .count = count});
    ASSERT_EQ(actors.call<&Echo::add>(i, 1).get(), std::vector<int>(actors.size(), i + 1));
    ASSERT_EQ(actors[actors.size() - 1].name(), fmt::format("passing[{}]", count - 1));
    if (i == 0) first = actors[0];
    if (i == 1) big = actors[1];
    system.stop("passing");
    if (i % 100 == 0) {
      // The rows of these two actors may belong to other actors by now.
      for (const auto& ended : {first, big}) {
        if (!ended) continue;
        expect_error(Errc::cancelled, {"was stopped"},
                     [&] { ended->call<&Echo::add>(1, 1).get(); });
        expect_error(Errc::cancelled, {"was stopped"}, [&] { ended->tell<&Echo::append>("text"); });
      }
    }
  }
  EXPECT_EQ(first->name(), "an actor of an earlier mesh");
  const auto asking = system.spawn(desk, {.name = "asking", .own_thread = true});
  expect_error(Errc::endpoint_failed, {"an actor of an earlier mesh was stopped"},
               [&] { asking[0].call<&Desk::ask>(*first, 1, 2).get(); });
  EXPECT_EQ(asking[0].call<&Desk::ask>(lasting[0], 1, 2).get(), 3);
}

}  // namespace
}  // namespace weft::system_test
