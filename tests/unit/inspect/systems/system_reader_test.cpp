/// Reads the memory of an actor system that this test has written.

#include "inspect/systems/system_reader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "inspect/systems/system_blocks.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "transport/actors/actor_op.hpp"
#include "transport/blackbox/box_clock.hpp"
#include "transport/lanes/lane_node.hpp"
#include "transport/memory/life_lock.hpp"

namespace weft::system_reader_test {
namespace {

/// A system of a program and of another process with two actors. Both are this process.
class WrittenSystem {
 public:
  WrittenSystem()
      : id(testing::unique_job()),
        peers_(PeerTable::create(id)),
        table_(Segment::create(actor_table_name(id), kActorTableBytes)) {
    table_.reserve(0, mesh_row_offset(2));
    table_.reserve(actor_row_offset(0), 4096);
    head().magic = kActorTableMagic;
    head().version = kActorTableVersion;
    std::strcpy(head().name, "written");
    head().mesh_count = 1;
    mesh(0).count = mesh(0).row_count = 2;
    mesh(0).endpoint_count = 3;
    mesh(0).max_restarts = -1;
    std::strcpy(mesh(0).name, "policy");
    std::memcpy(mesh(0).endpoints, "act\0reset", 10);
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
      const PeerId peer = peers_.add();
      nodes_.push_back(std::make_unique<LaneNode>(
          peers_, peer, PeerMemoryOptions{.port_count = 3, .heap_bytes = 1 << 20}));
      peers_.mark(slot, PeerState::alive);
    }
    for (std::uint32_t i = 0; i < 2; ++i) {
      row(i).position = ActorPosition{.phase = ActorPhase::alive,
                                      .port = 1 + i,
                                      .incarnation = 1 + i,
                                      .process = {.slot = 1, .incarnation = 1}}
                            .word();
    }
  }
  ~WrittenSystem() { PeerTable::remove(id); }
  WrittenSystem(const WrittenSystem&) = delete;
  WrittenSystem& operator=(const WrittenSystem&) = delete;

  ActorTableHead& head() { return *reinterpret_cast<ActorTableHead*>(table_.data()); }
  MeshTableRow& mesh(std::uint32_t mesh) {
    return *reinterpret_cast<MeshTableRow*>(table_.data() + mesh_row_offset(mesh));
  }
  ActorTableRow& row(std::uint32_t row) {
    return *reinterpret_cast<ActorTableRow*>(table_.data() + actor_row_offset(row));
  }
  JobSourceRow& job_source(std::uint32_t slot, std::uint32_t source) {
    const std::size_t offset = job_source_offset(slot, source);
    table_.reserve(offset, sizeof(JobSourceRow));
    return *reinterpret_cast<JobSourceRow*>(table_.data() + offset);
  }
  LaneNode& node(std::size_t slot) { return *nodes_[slot]; }
  const Segment& table() const { return table_; }

  void send(std::uint32_t row, ActorOp op, std::uint32_t endpoint, std::uint64_t call,
            const std::vector<BlockId>& blocks = {}) {
    const std::uint32_t kind = static_cast<std::uint32_t>(op) | endpoint << 8U;
    const LaneHeading heading{.call = call, .target = row, .kind = kind};
    const PeerId to{.slot = 1, .incarnation = 1};
    ASSERT_TRUE(node(0).sender(to, 1 + row)->send({.heading = heading, .blocks = blocks}));
  }

  const std::string id;

 private:
  PeerTable peers_;
  Segment table_;
  std::vector<std::unique_ptr<LaneNode>> nodes_;
};

TEST(SystemReader, ReadsMeshesActorsAndMessages) {
  WrittenSystem written;
  written.row(0).since_ns = 17;
  written.row(0).function =
      ActorFunction{.kind = ActorFunctionKind::call, .caller = 0, .endpoint = 1}.word();
  written.row(0).call = 5;
  written.row(0).awaited = AwaitedCall{.row = 1, .endpoint = 0}.word();
  written.row(0).begun = 3;
  written.node(0).peers().own().call(5).store(5);
  written.node(0).peers().own().call(6).store(6);
  written.send(1, ActorOp::call, 0, 6);
  written.send(1, ActorOp::call, 0, 7);  // nobody waits for this call any more
  written.send(1, ActorOp::tell, 1, 0);

  const auto lock = LifeLock::take(written.table(), kActorTableLifeByte);
  const SystemSnapshot system = read_actor_system(written.id);
  EXPECT_EQ(system.name, "written");
  EXPECT_TRUE(system.is_held);
  EXPECT_EQ(system.state(), "running");
  EXPECT_EQ(system.pid(0), ::getpid());
  ASSERT_EQ(system.meshes.size(), 1);
  EXPECT_EQ(system.meshes[0].endpoints, (std::vector<std::string>{"act", "reset"}));
  EXPECT_EQ(system.meshes[0].max_restarts, -1);
  ASSERT_EQ(system.actors.size(), 2);
  EXPECT_TRUE(system.actors[0].is_awaited);
  EXPECT_EQ(system.function_name(0), "reset");
  EXPECT_EQ(system.endpoint_name(0, 2), "endpoint 2") << "its name didn't fit";
  ASSERT_TRUE(system.actors[0].awaits);
  EXPECT_EQ(system.actors[0].awaits->row, 1);
  EXPECT_EQ(system.actors[0].begun, 3);
  EXPECT_EQ(system.actors[1].unread, 3);
  EXPECT_EQ(system.actors[1].box, 3);
  ASSERT_EQ(system.open.size(), 2);
  EXPECT_EQ(system.open[0].count, 2);
  EXPECT_EQ(system.open[0].awaited, 1);
  EXPECT_TRUE(system.remarks.empty());
  EXPECT_EQ(find_actor_systems(written.id), std::vector{written.id});
}

TEST(SystemReader, NamesWhatAnActorAwaitsOfAJob) {
  WrittenSystem written;
  JobSourceRow& source = written.job_source(1, 2);
  std::strcpy(source.job, "abcdef0123456789abcdef0123456789");
  std::strcpy(source.name, "steps");
  source.is_set = 1;
  const std::int64_t since_ns = clock_ns(CLOCK_MONOTONIC);
  for (const std::uint32_t row : {0U, 1U}) {
    const std::uint32_t place = row == 0 ? 2 : AwaitedJob::kUnnamed;
    written.row(row).since_ns = 17;
    written.row(row).awaited =
        AwaitedJob{.writes = row == 0, .source = place, .since_ns = since_ns}.word();
  }
  const SystemSnapshot system = read_actor_system(written.id);
  ASSERT_TRUE(system.actors[0].job_wait);
  EXPECT_EQ(SystemSnapshot::job_wait_text(*system.actors[0].job_wait),
            "room for rows in \"steps\"");
  EXPECT_EQ(system.actors[0].job_wait->job, "abcdef0123456789abcdef0123456789");
  EXPECT_FALSE(system.actors[0].awaits);
  EXPECT_FALSE(system.actors[0].pipe);
  EXPECT_NEAR(static_cast<double>(system.actors[0].job_wait->since_ns - since_ns), 0, 17e6)
      << "a unit of AwaitedJob";
  ASSERT_TRUE(system.actors[1].job_wait);
  EXPECT_EQ(SystemSnapshot::job_wait_text(*system.actors[1].job_wait), "a version of a job");
}

TEST(SystemReader, SeesThatNobodyHoldsTheSystem) {
  const WrittenSystem written;
  EXPECT_EQ(read_actor_system(written.id).state(), "dead");
}

TEST(SystemReader, ForgetsWhatAProcessDidThatIsGone) {
  WrittenSystem written;
  written.row(0).since_ns = 17;
  written.row(0).awaited = AwaitedCall{.row = 1}.word();
  written.row(0).position = ActorPosition{.phase = ActorPhase::starting,
                                          .port = 1,
                                          .incarnation = 2,
                                          .process = {.slot = 1, .incarnation = 7}}
                                .word();
  const SystemSnapshot system = read_actor_system(written.id);
  EXPECT_FALSE(system.actors[0].runs());
  EXPECT_FALSE(system.actors[0].awaits);
}

TEST(SystemReader, ShowsTheHoldersOfBlocks) {
  WrittenSystem written;
  const BlockId block = written.node(0).blocks().allocate(5000);
  written.send(0, ActorOp::tell, 0, 0, {block});
  auto taken = written.node(1).port(1).take();
  ASSERT_TRUE(taken);
  const SystemBlocks blocks = read_system_blocks(read_actor_system(written.id));
  ASSERT_EQ(blocks.held.size(), 1);
  EXPECT_EQ(blocks.held[0].owner, 0);
  EXPECT_EQ(blocks.held[0].holders, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(blocks.held[0].block_bytes, 8192);
  ASSERT_EQ(blocks.processes.size(), 2);
  EXPECT_EQ(blocks.processes[1].held_bytes, 8192);
  EXPECT_EQ(blocks.processes[1].foreign_bytes, 8192);
  written.node(1).blocks().release(block);
}

TEST(SystemReader, RefusesAnotherVersion) {
  WrittenSystem written;
  written.head().version = kActorTableVersion + 1;
  testing::expect_error(Errc::version, {"actors of version 7", "reads version 6"},
                        [&] { read_actor_system(written.id); });
  written.head().magic = 7;
  testing::expect_error(Errc::corrupt, {"is no table of actors"},
                        [&] { read_actor_system(written.id); });
  testing::expect_error(Errc::not_found, {"there is no actor system"},
                        [&] { read_actor_system(testing::unique_job()); });
}

TEST(SystemReader, ShowsWhatItCanOfACorruptTable) {
  WrittenSystem written;
  written.head().mesh_count = 2;
  written.mesh(1).first_row = 1;
  written.mesh(1).count = written.mesh(1).row_count = 7;
  written.row(0).since_ns = ~std::uint64_t{0};
  written.row(0).awaited = ~std::uint64_t{0};
  const SystemSnapshot system = read_actor_system(written.id);
  EXPECT_EQ(system.meshes.size(), 1);
  EXPECT_EQ(system.for_s(system.actors[0]), 0);
  EXPECT_FALSE(system.actors[0].awaits);
  ASSERT_EQ(system.remarks.size(), 1);
  EXPECT_NE(system.remarks[0].find("says that it has 7 actors in 7 rows from row 1 on"),
            std::string::npos)
      << system.remarks[0];
}

}  // namespace
}  // namespace weft::system_reader_test
