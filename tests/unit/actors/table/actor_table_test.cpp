#include "actors/table/actor_table.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
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
  EXPECT_EQ(table.job_source(4, "0123456789abcdef0123456789abcdef", "policy"), 0U);
  EXPECT_EQ(table.job_source(4, "0123456789abcdef0123456789abcdef", "steps"), 1U);
  EXPECT_EQ(table.job_source(4, "0123456789abcdef0123456789abcdef", "policy"), 0U);
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
  bytes.append(reinterpret_cast<const char*>(&head) + job_source_offset(4, 0),
               2 * sizeof(JobSourceRow));
  testing::expect_golden("actor-table-v6.bin", bytes);
  PeerTable::remove(system);
}

/// A table that is removed at the end of a test.
struct Table {
  Table() = default;
  ~Table() { PeerTable::remove(system); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const std::string system = testing::unique_job();
  ActorTable table = ActorTable::create(system, {.name = "games", .threads = 2});
};

TEST(ActorTable, HasRoomForSoManyActors) {
  Table own;
  own.table.add({.name = "all", .type = "player", .count = kActorCountMax});
  testing::expect_error(
      Errc::no_space,
      {"mesh \"more\" of 1 actors", "1 meshes and 65535 actors", "at most 1024 and 65535"},
      [&] { own.table.add({.name = "more", .type = "player", .count = 1}); });
  own.table.end(0, {});
  own.table.release(0);
  EXPECT_EQ(own.table.add({.name = "more", .type = "player", .count = 1}), 0U);
}

TEST(ActorTable, HasRoomForSoManyMeshes) {
  Table own;
  for (std::uint32_t i = 0; i < kMeshCountMax; ++i) {
    own.table.add({.name = fmt::format("mesh{}", i), .type = "player", .count = 1});
  }
  testing::expect_error(Errc::no_space, {"1024 meshes and 1024 actors", "at most 1024 and 65535"},
                        [&] { own.table.add({.name = "more", .type = "player", .count = 1}); });
}

TEST(ActorTable, SaysThatSchemasDontFit) {
  Table own;
  own.table.add({.name = "players",
                 .type = "player",
                 .count = 1,
                 .endpoints = {"act", "reset"},
                 .schemas = {std::string(4000, 'x'), std::string(94, 'y')}});
  EXPECT_EQ(own.table.schemas(0).back(), std::string(94, 'y')) << "they fill the 4,096 bytes";
  own.table.add({.name = "wide",
                 .type = "player",
                 .count = 1,
                 .endpoints = {"act", "reset"},
                 .schemas = {std::string(4000, 'x'), std::string(95, 'y')}});
  testing::expect_error(Errc::no_space,
                        {"mesh \"wide\"", "2 endpoints don't fit 4096 bytes", "divide its class"},
                        [&] { own.table.schemas(1); });
}

TEST(ActorTable, NamesFunctions) {
  Table own;
  own.table.add({.name = "players", .type = "player", .count = 2, .endpoints = {"act", "reset"}});
  const ActorNumber player = own.table.number(0, 1);
  const auto name = [&](ActorFunctionKind kind, std::uint32_t endpoint) {
    return own.table.function_name(player, {.kind = kind, .endpoint = endpoint});
  };
  EXPECT_EQ(name(ActorFunctionKind::call, 1), "players[1].reset");
  EXPECT_EQ(name(ActorFunctionKind::tell, 0), "players[1].act");
  EXPECT_EQ(name(ActorFunctionKind::work, 0), "players[1].work");
  EXPECT_EQ(name(ActorFunctionKind::make, 0), "players[1].constructor");
  EXPECT_EQ(name(ActorFunctionKind::call, 9), "players[1].endpoint 9");
}

}  // namespace
}  // namespace weft::actor_table_test
