/// Compares the errors of wrong uses of actors with tests/golden/errors/actor_*.txt. Numbers that
/// differ from run to run are masked.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include <weft/actor_test.hpp>

#include "tests/actors/actors.hpp"
#include "tests/actors/probe.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/golden.hpp"
#include "transport/lanes/lane_node.hpp"

namespace weft::actor_errors_test {
namespace {

using testing::Echo;
using testing::echo;
using testing::expect_golden;
using testing::Probe;
using testing::probe;
using testing::waiter;
using testing::Waiter;

/// Returns the code and the text of the error that `body` throws.
std::string said(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    std::string text = fmt::format("{}\n{}\n", to_string(error.code()), error.what());
    text = std::regex_replace(text, std::regex("pid \\d+"), "pid N");
    text = std::regex_replace(text, std::regex("\\.cpp:\\d+"), ".cpp:LINE");
    return std::regex_replace(text, std::regex("it has: [^;]*;"), "it has: TYPES;");
  }
  return "no error\n";
}

void expect_said(const std::string& name, const std::function<void()>& body) {
  expect_golden("errors/actor_" + name + ".txt", said(body));
}

/// Calls an endpoint as a program of another build might.
void call_wrongly(const ActorRef<Probe>& actor, std::uint32_t endpoint,
                  const std::vector<std::uint8_t>& bytes) {
  MessageWriter arguments;
  arguments.put(bytes.data(), bytes.size());
  Future<void>(detail::begin_call(actor.handle(), {.index = endpoint}, arguments, {})).get();
}

TEST(ActorErrors, OfTypesThatAreNotRegistered) {
  ActorSystem system;
  const ActorType<Echo> local{"test.in_a_function"};
  expect_said("type_that_is_not_registered", [&] { system.spawn(local, {.place = processes(1)}); });
  const ActorType<Echo> second{"test.echo"};
  expect_said("type_of_a_name_that_is_taken", [&] { system.spawn(second); });
  const ActorType<Echo> spaced{"my echo"};
  expect_said("type_of_a_wrong_name", [&] { system.spawn(spaced); });
}

TEST(ActorErrors, OfMessagesOfAnotherVersion) {
  ActorSystem system;
  const auto probes = system.spawn(probe, {.name = "probes"});
  expect_said("endpoint_of_another_version", [&] { call_wrongly(probes[0], 99, {}); });
  expect_said("message_that_is_too_short", [&] { call_wrongly(probes[0], 0, {1, 2}); });
  expect_said("message_that_is_too_long", [&] { call_wrongly(probes[0], 2, {1, 2}); });
  expect_said("message_over_64_kib",
              [&] { probes[0].call<&Probe::append>(std::string(100'000, 'x')).get(); });
  expect_said("answer_over_64_kib", [&] { probes[0].call<&Probe::too_long>().get(); });
}

TEST(ActorErrors, OfLanesThatLie) {
  const std::string system = testing::unique_job();
  PeerTable table = PeerTable::create(system);
  const auto join = [&] {
    const PeerId peer = table.add();
    auto node = std::make_unique<LaneNode>(table, peer, PeerMemoryOptions{.port_count = 2});
    table.mark(peer.slot, PeerState::alive);
    return node;
  };
  const auto liar = join();
  const auto taker = join();
  const auto lie = [&](const std::string& name, const std::function<void(Entry&)>& corrupt) {
    liar->sender(taker->self(), 0)->send({.heading = {}, .body = {}, .blocks = {}});
    Lane& lane = taker->peers().own().lane(0, liar->self().slot);
    corrupt(lane.entries[lane.head.load() % kLaneEntryCount]);
    expect_said("lane_that_lies_about_" + name, [&] { taker->port(0).take(); });
  };
  lie("bytes", [](Entry& entry) { entry.body_bytes = 89; });
  lie("blocks", [](Entry& entry) { entry.block_count = 3; });
  lie("a_block", [](Entry& entry) {
    entry.block_count = 1;
    entry.blocks[0] = BlockId::of(0, 5).word;
  });
  PeerTable::remove(system);
}

/// Makes a mesh of two probes with threads of their own. The first waits for the second.
ActorMesh<Probe> spawn_waiting(ActorSystem& system, std::optional<Future<int>>& waits) {
  ActorMesh<Probe> probes = system.spawn(probe, {.name = "probes", .count = 2, .own_thread = true});
  waits = probes[0].call<&Probe::ask>(probes[1]);
  while (probes[1].call<&Probe::held>().get() == 0) {
  }
  return probes;
}

TEST(ActorErrors, OfWaitsThatMayNotBe) {
  ActorSystem system;
  const auto shared = system.spawn(probe, {.name = "shared", .count = 2});
  expect_said("wait_on_a_shared_thread", [&] { shared[0].call<&Probe::ask>(shared[1]).get(); });
  const auto own = system.spawn(probe, {.name = "own", .own_thread = true});
  expect_said("wait_for_itself",
              [&] { own[0].call<&Probe::ask_along>(std::vector<ActorRef<Probe>>{own[0]}).get(); });
}

TEST(ActorErrors, OfMailboxesThatAreFull) {
  ActorSystem system;
  std::optional<Future<int>> waits;
  const auto probes = spawn_waiting(system, waits);
  const auto eager = probes[0].with({.wait_if_full = false});
  for (int i = 0; i < 64; ++i) eager.tell<&Probe::append>("x");
  expect_said("mailbox_that_is_full", [&] { eager.tell<&Probe::append>("x"); });
  expect_said("mailbox_that_stays_full",
              [&] { probes[0].with({.timeout_s = 0.01}).tell<&Probe::append>("x"); });
  probes[1].call<&Probe::release>(0).get();
}

TEST(ActorErrors, OfSpawnsThatCannotStart) {
  ActorSystem system;
  setenv("WEFT_TEST_ACTOR_PROCESS_EXITS", "1", 1);
  expect_said("process_that_ends_at_once", [&] { system.spawn(echo, {.place = processes(1)}); });
  unsetenv("WEFT_TEST_ACTOR_PROCESS_EXITS");
  expect_said("constructor_that_throws", [&] {
    system.spawn(probe, {.config = {{"fails_from", 1}}});
  });
  system.spawn(echo, {.name = "taken"});
  expect_said("mesh_of_a_name_that_is_taken", [&] { system.spawn(echo, {.name = "taken"}); });
  expect_said("mesh_of_too_many_processes",
              [&] { system.spawn(echo, {.count = 2, .place = processes(3)}); });
  system.spawn(echo, {.name = "many", .count = 40, .own_thread = true});
  expect_said("mesh_of_too_many_threads",
              [&] { system.spawn(echo, {.name = "more", .count = 40, .own_thread = true}); });
  expect_said("mesh_that_is_not_there", [&] { system.stop("nobody"); });
}

// The clock of an ActorTest gives these texts numbers that don't differ from run to run.

TEST(ActorErrors, OfCallsThatTakeTooLong) {
  ActorTest test;
  const auto probes = test.spawn(probe, {.name = "probes", .count = 2, .own_thread = true});
  expect_said("reply_that_is_not_sent", [&] { probes[0].call<&Probe::hold>().get(); });
  auto waits = probes[0].call<&Probe::ask>(probes[1]);
  test.advance(2);
  expect_said("actor_that_is_busy",
              [&] { probes[0].with({.timeout_s = 5}).call<&Probe::log>().get(); });
  test.spawn(probe, {.name = "held", .own_thread = true});
  const auto waiters = test.spawn(waiter, {.name = "waiters", .count = 3});
  waiters[0].call<&Waiter::wait>().get();
  test.advance(2);
  expect_said("thread_that_is_busy",
              [&] { waiters[2].with({.timeout_s = 5}).call<&Waiter::hello>().get(); });
  test.end_faults();
}

TEST(ActorErrors, OfActorsThatAreLost) {
  ActorTest test;
  const auto probes = test.spawn(probe, {.name = "probes", .place = processes(1)});
  auto held = probes[0].call<&Probe::hold>();
  test.run();
  test.kill(probes[0]);
  expect_said("process_that_died", [&] { held.get(); });
  test.run();
  expect_said("mesh_that_has_ended", [&] { probes[0].call<&Probe::log>().get(); });
  expect_said("system_that_has_failed", [&] { test.spawn(probe); });
  ActorTest hanging;
  const auto waiting = hanging.spawn(probe, {.name = "waiting",
                                             .count = 2,
                                             .place = processes(2),
                                             .own_thread = true,
                                             .supervision = {.hang_timeout_s = 10}});
  waiting[0].call<&Probe::ask>(waiting[1]).outcome();
  hanging.run();
  expect_said("function_that_hangs", [&] { waiting[0].call<&Probe::log>().get(); });
}

TEST(ActorErrors, OfReferencesToNobody) {
  const ActorRef<Probe> nobody;
  expect_said("reference_to_nobody", [&] { nobody.call<&Probe::log>(); });
  ActorSystem system;
  ActorSystem other;
  const auto probes = system.spawn(probe, {.name = "probes"});
  const auto foreign = other.spawn(probe, {.name = "foreign"});
  expect_said("reference_of_another_system", [&] {
    probes[0].call<&Probe::ask_along>(std::vector<ActorRef<Probe>>{foreign[0]}).get();
  });
  expect_said("name_that_is_not_there", [&] { probes[0].call<&Probe::others>("nobody").get(); });
}

}  // namespace
}  // namespace weft::actor_errors_test
