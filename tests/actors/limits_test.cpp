/// Tests the limits of an actor system's messages: full lanes where the sender may not wait,
/// messages to actors that are being made again, and open calls. See conformance_test.cpp.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include "tests/actors/probe.hpp"
#include "tests/actors/systems.hpp"
#include "tests/support/expect_error.hpp"
#include "transport/lanes/lane_format.hpp"

namespace weft::limits_test {
namespace {

using testing::expect_error;
using testing::Probe;
using testing::probe;
using testing::Real;
using testing::Simulated;
using testing::SystemNames;

/// Tells the probe one message more than fit its lane.
void flood(const ActorRef<Probe>& whom) {
  for (std::uint64_t i = 0; i <= kLaneEntryCount; ++i) whom.tell<&Probe::append>("x");
}

class Teller {
 public:
  void flood(const ActorRef<Probe>& whom) const { limits_test::flood(whom); }
  using endpoints = Endpoints<&Teller::flood>;
};
const ActorType<Teller> teller{"test.teller"};

template <typename S>
class ActorLimits : public ::testing::Test {
 protected:
  SpawnOptions options(int count, bool own_thread) {
    return {.name = "p",
            .count = count,
            .place = {.processes = std::min(S::kPlace.processes, count)},
            .own_thread = own_thread};
  }
  S s_;
};
using Systems = ::testing::Types<Real<0>, Real<2>, Simulated<2, 1>>;
TYPED_TEST_SUITE(ActorLimits, Systems, SystemNames);

TYPED_TEST(ActorLimits, AFullLaneIsAnErrorWhereTheThreadMayNotWait) {
  constexpr std::string_view kFull =
      "p[0]: 64 messages of this process wait for its thread already, and this thread may not wait";
  const auto probes = this->s_.spawn(probe, this->options(2, true));
  const auto waits = probes[0].template call<&Probe::ask>(probes[1]);
  this->s_.until([&] { return probes[1].template call<&Probe::held>().get() == 1; });

  const auto tellers = this->s_.spawn(
      teller, {.name = "t", .place = {.processes = this->options(1, false).place.processes}});
  expect_error(Errc::endpoint_failed, {"t[0].flood", kFull},
               [&] { tellers[0].template call<&Teller::flood>(probes[0]).get(); });

  std::string said;
  std::atomic<bool> has_run = false;
  probes[1].template call<&Probe::log>().then([&](const Outcome<std::string>&) {
    try {
      flood(probes[0]);
    } catch (const Error& error) {
      said = error.what();
    }
    has_run = true;
  });
  this->s_.until([&] { return has_run.load(); });
  EXPECT_NE(said.find(kFull), std::string::npos) << said;
  probes[1].template call<&Probe::release>(0).get();
}

TYPED_TEST(ActorLimits, AnActorThatIsMadeAgainTakesNoToldMessageOfASenderThatMayNotWait) {
  SpawnOptions its = this->options(1, false);
  its.supervision = {.max_restarts = -1, .backoff_s = 3600};
  const auto probes = this->s_.spawn(probe, its);
  probes[0].template tell<&Probe::fail_with>("out of cheese");
  const auto eager = probes[0].with({.wait_if_full = false});
  const auto said = [&]() -> std::string {
    try {
      eager.template tell<&Probe::append>("x");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::overloaded);
      return error.what();
    }
    return "";
  };
  this->s_.until([&] {
    return said() ==
           "p[0] is being made again, and the sender may not wait for it; send the message later";
  });
  expect_error(Errc::timeout, {"p[0] is being made again, and wasn't there in time"},
               [&] { probes[0].with({.timeout_s = 0.02}).template tell<&Probe::append>("x"); });
}

TYPED_TEST(ActorLimits, AProcessHasSoManyOpenCalls) {
  const auto probes = this->s_.spawn(probe, this->options(1, true));
  const auto patient = probes[0].with({.timeout_s = 1e6});
  std::vector<Future<int>> calls;
  for (std::uint32_t i = 0; i < kCallCountMax; ++i) {
    calls.push_back(patient.template call<&Probe::hold>());
  }
  expect_error(Errc::overloaded,
               {"16384 calls of this process wait for answers, the most that may: get() some"},
               [&] { patient.template call<&Probe::log>().get(); });
  patient.template tell<&Probe::release>(7);  // a call would be one too many
  for (Future<int>& call : calls) ASSERT_EQ(call.get(), 7);
  EXPECT_EQ(patient.template call<&Probe::log>().get(), "");
}

/// A callback occupies the thread that takes the news of the failure, so the actor isn't made again
/// before all messages are there.
TEST(ActorLimitsOf, MessagesThatAreKeptForAnActor) {
  constexpr int kKept = 4096;
  ActorSystem system;
  const auto probes =
      system.spawn(probe, {.name = "p", .supervision = {.max_restarts = 1, .backoff_s = 0}});
  std::promise<void> occupied;
  std::promise<void> release;
  probes[0].call<&Probe::log>().then([&](const Outcome<std::string>&) {
    occupied.set_value();
    release.get_future().wait();
  });
  occupied.get_future().wait();
  probes[0].tell<&Probe::fail_with>("out of cheese");
  for (int i = 0; i < kKept; ++i) probes[0].tell<&Probe::append>("x");
  auto refused = probes[0].call<&Probe::log>();
  release.set_value();
  expect_error(Errc::overloaded, {"p[0] is being made again, and 4096 messages wait for that"},
               [&] { refused.get(); });
  Outcome<std::string> log = probes[0].call<&Probe::log>().outcome();
  while (!log.ok() && log.error().code() == Errc::overloaded) {
    log = probes[0].call<&Probe::log>().outcome();  // the order to make it again isn't there yet
  }
  EXPECT_EQ(log.value(), std::string(kKept, 'x'));
  EXPECT_EQ(system.counts().lost_tells, 0U);
}

}  // namespace
}  // namespace weft::limits_test
