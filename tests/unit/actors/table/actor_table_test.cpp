#include "actors/table/actor_table.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "tests/support/child_process.hpp"
#include "tests/support/golden.hpp"
#include "transport/lanes/peer_table.hpp"

namespace weft::actor_table_test {
namespace {

TEST(ActorTable, ItsBytesStay) {
  const std::string system = testing::unique_job();
  ActorTable table = ActorTable::create(system, {.name = "games",
                                                 .threads = 2,
                                                 .heap_bytes = std::size_t{1} << 30,
                                                 .call_timeout_s = 30,
                                                 .key = 0x1234'5678});
  table.add({.name = "players",
             .type = "player",
             .count = 2,
             .max_restarts = 3,
             .restart = 1,
             .then = 1,
             .own_thread = true,
             .endpoints = {"act", "reset"},
             .schemas = {"(f32) -> i32", "() -> ()"},
             .job = "0123456789abcdef0123456789abcdef"});
  const ActorNumber player = table.number(0, 1);
  table.set_position(player, {.phase = ActorPhase::alive,
                              .port = 2,
                              .incarnation = 3,
                              .process = {.slot = 4, .incarnation = 5}});
  table.set_restarts(0, 2);
  table.set_cause(0, {.code = 7, .text = "it fell"});
  ActorTableRow& row = table.row(player);
  row.since_ns = 11;
  row.function = ActorFunction{.kind = ActorFunctionKind::call, .caller = 4, .endpoint = 1}.word();
  row.call = 12;
  row.awaited = AwaitedCall{.row = 0, .endpoint = 1}.word();
  row.begun = 13;
  row.tid = 14;
  CallRing& ring = table.open_ring(4, 2);
  const CallRingWriter writer(ring, false, TickSource::monotonic, {.slot = 4, .incarnation = 5});
  writer.put(100, {.kind = CallEventKind::ran,
                   .function = ActorFunctionKind::call,
                   .replies_later = true,
                   .row = 1,
                   .endpoint = 1,
                   .peer = 3,
                   .peer_incarnation = 2,
                   .number = 15,
                   .value = 90});
  // These depend on when the table was made.
  ActorTableHead& head = table.head();
  head.started_unix_ns = 0;
  head.start = {};
  head.tick_source = 0;

  std::string bytes;
  const auto add = [&](const auto& object, std::size_t size) {
    bytes.append(reinterpret_cast<const char*>(&object), size);
  };
  add(head, sizeof(head));
  add(table.mesh(0), sizeof(MeshTableRow));
  add(table.row(table.number(0, 0)), 2 * sizeof(ActorTableRow));
  add(ring, offsetof(CallRing, records) + 2 * sizeof(CallRingRecord));
  testing::expect_golden("actor-table-v5.bin", bytes);
  PeerTable::remove(system);
}

}  // namespace
}  // namespace weft::actor_table_test
