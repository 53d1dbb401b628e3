#include "inspect/why/wait_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/inspect/made_job.hpp"
#include "transport/job/control_format.hpp"

namespace weft::wait_graph_test {
namespace {

using testing::MadeJob;
using Nodes = std::vector<int>;
using Roots = std::vector<Nodes>;

TEST(WaitGraph, ACircleIsARootAndSoIsWhoWaitsForNobody) {
  const WaitGraph graph(7, {{0, 1, ""}, {1, 2, ""}, {2, 1, ""}, {3, 4, ""}, {5, 4, ""}});
  EXPECT_EQ(graph.roots(), (Roots{{1, 2}, {4}}));
  EXPECT_EQ(graph.waiters_of({4}), (Nodes{3, 5}));
  EXPECT_EQ(graph.waiters_of({1, 2}), (Nodes{0}));
}

TEST(WaitGraph, ACircleThatWaitsForAnotherIsNoRoot) {
  const WaitGraph graph(4, {{0, 1, ""}, {1, 0, ""}, {1, 2, ""}, {2, 3, ""}, {3, 2, ""}});
  EXPECT_EQ(graph.roots(), (Roots{{2, 3}}));
}

/// The row of a stopped chip is stale: it still shows a wait that is over, so there is no cycle.
TEST(WaitGraph, WaitsComeFromEpochsAndNotFromStaleRows) {
  MadeJob job(2, 1);
  job.pass("first");
  job.enter(0, {"data"}, "second");
  job.chip(0).waiting_for = 1;
  job.chip(1).in_collective = true;
  job.chip(1).state = ActorState::waiting;
  job.chip(1).waiting_for = 0;
  job.process(1).state = 'T';
  const WaitGraph graph = WaitGraph::of(job.snapshot);
  EXPECT_EQ(graph.roots(), (Roots{{node_of_worker(1)}}));
  ASSERT_FALSE(graph.waits().empty());
  bool told = false;
  for (const Wait& wait : graph.waits()) told |= wait.on == "all_reduce #2 'second' over {data}";
  EXPECT_TRUE(told);
}

TEST(WaitGraph, AChipInACollectiveThatAllHaveAnnouncedWaitsForNobody) {
  MadeJob job(2, 1);
  job.enter(0, {"data"}, "x");
  job.enter(1, {"data"}, "x");
  const WaitGraph graph = WaitGraph::of(job.snapshot);
  for (const Wait& wait : graph.waits()) {
    EXPECT_LE(wait.from, job.snapshot.header.num_workers) << wait.on;
  }
}

/// The ids of the chips don't ascend with their positions, as in a HybridMesh of hosts along "data"
/// whose chips are along both axes.
TEST(WaitGraph, NamesChipsByTheirIds) {
  MadeJob job(2, 2);
  job.snapshot.header.device_ids = {0, 2, 1, 3};
  job.enter(0, {"data"}, "x");
  std::vector<int> peers;
  const WaitGraph graph = WaitGraph::of(job.snapshot);
  for (const Wait& wait : graph.waits()) {
    if (wait.from == job.chip(0).index && wait.on.find("'x'") != std::string::npos) {
      peers.push_back(wait.to);
    }
  }
  EXPECT_EQ(peers, std::vector<int>{job.chip(1).index});
}

TEST(WaitGraph, EpochsMayWrap) {
  MadeJob job(2, 1);
  const std::size_t data = job.mesh().axis_atoms(0).mask() >> 1U;
  job.enter(0, {"data"}, "x");
  job.snapshot.control->chips[0].announced[data] = 0;
  job.snapshot.control->chips[1].announced[data] = std::uint64_t{0xffff'ffff} << 32;
  EXPECT_EQ(WaitGraph::of(job.snapshot).roots(), (Roots{{node_of_worker(1)}}));
}

TEST(WaitGraph, AChipBehindInItsCommitIsAwaited) {
  MadeJob job(2, 1);
  job.chip(0).state = ActorState::waiting;
  job.chip(0).waiting_for = 1;
  job.snapshot.control->chips[0].committed = 3;
  job.snapshot.control->chips[1].committed = 2;
  const WaitGraph graph = WaitGraph::of(job.snapshot);
  EXPECT_EQ(graph.roots(), (Roots{{node_of_worker(1)}}));
}

/// A chip may begin a collective and call others before it waits for the first one. Here chip 0
/// waits for #1, although all chips have arrived at #2.
TEST(WaitGraph, AChipMayWaitForACollectiveBeforeItsLastOne) {
  MadeJob job(2, 1);
  job.pass("first");
  job.pass("second");
  job.enter(0, {"data"}, "third");
  job.enter(1, {"data"}, "third");
  job.chip(0).collective = 1;
  job.chip(0).collective_name = "all_reduce 'first'";
  job.chip(0).waiting_for = 1;
  const WaitGraph graph = WaitGraph::of(job.snapshot);
  EXPECT_EQ(graph.roots(), (Roots{{node_of_chip(job.snapshot, 1)}}));
  EXPECT_EQ(std::ranges::count(graph.waits(), "all_reduce 'first'", &Wait::on), 1);
}

/// A plug-in launches all chips of a process together. The wait for that is in no chip's record.
TEST(WaitGraph, AChipMayWaitForALaunch) {
  MadeJob job(2, 1);
  job.pass("first");
  job.chip(0).state = ActorState::waiting;
  job.chip(0).in_collective = true;
  job.chip(0).collective = 0;
  job.chip(0).collective_name = "all_reduce 'w.grad'";
  job.chip(0).waiting_for = 1;
  const WaitGraph graph = WaitGraph::of(job.snapshot);
  ASSERT_EQ(std::ranges::count(graph.waits(), "all_reduce 'w.grad'", &Wait::on), 1);
  const auto wait = std::ranges::find(graph.waits(), "all_reduce 'w.grad'", &Wait::on);
  EXPECT_EQ(wait->from, job.chip(0).index);
  EXPECT_EQ(wait->to, job.chip(1).index);
  EXPECT_EQ(last_call(job.snapshot, 0), "all_reduce 'w.grad'");
  EXPECT_NE(last_call(job.snapshot, 1).find("first"), std::string::npos);
}

TEST(WaitGraph, WithoutTheControlSegmentItIsTheBoardsRows) {
  MadeJob job(2, 1);
  job.wait_for(1, "x");
  job.chip(0).waiting_for = 1;
  job.snapshot.control.reset();
  EXPECT_EQ(WaitGraph::of(job.snapshot).roots(), (Roots{{node_of_worker(1)}}));
}

/// A reader of a small broadcast waits only for the root. A root waits only for readers that have
/// left it no room in its ring.
TEST(WaitGraph, ABroadcastOfAFewBytesIsAwaitedFromItsRoot) {
  MadeJob job(3, 1);
  const std::size_t data = job.mesh().axis_atoms(0).mask() >> 1U;
  const auto broadcast = [&](int chip, int root, std::uint64_t message) {
    job.enter(chip, {"data"}, "x");
    ChipControl& control = job.snapshot.control->chips[static_cast<std::size_t>(chip)];
    control.call->words[0] = static_cast<std::uint64_t>(CollectiveKind::broadcast) |
                             static_cast<std::uint64_t>(DType::f32) << 8;
    control.messages[data] = {.last = message, .root = root};
  };
  broadcast(1, 0, 5);
  job.snapshot.control->chips[0].messages[data] = {.last = 4, .root = 0};
  job.snapshot.control->chips[2].messages[data] = {.last = 2, .root = 0};
  const auto awaited_by = [&](int chip) {
    Nodes nodes;
    const WaitGraph graph = WaitGraph::of(job.snapshot);
    for (const Wait& wait : graph.waits()) {
      if (wait.from == node_of_chip(job.snapshot, chip)) nodes.push_back(wait.to);
    }
    return nodes;
  };
  EXPECT_EQ(awaited_by(1), (Nodes{node_of_chip(job.snapshot, 0)}));
  broadcast(0, 0, 5);
  EXPECT_EQ(awaited_by(1), Nodes{});
  EXPECT_EQ(awaited_by(0), Nodes{});
  broadcast(0, 0, 3 + kSlotCount / 2);
  EXPECT_EQ(awaited_by(0), (Nodes{node_of_chip(job.snapshot, 2)}));
  broadcast(0, 1, 4);  // chip 0 is a root now, and waits for room
  job.chip(0).waiting_for = 2;
  EXPECT_EQ(awaited_by(0), (Nodes{node_of_chip(job.snapshot, 2)}));
}

/// These words are read from another process's memory, so they may have any value.
TEST(WaitGraph, ACallOverAtomsThatTheMeshHasNotIsNoWait) {
  MadeJob job(2, 1);
  job.wait_for(1, "x");
  for (const std::uint64_t atoms : {0xfULL, 0x11ULL, 0ULL, ~0ULL}) {
    job.snapshot.control->chips[0].call->words[1] = atoms;
    const WaitGraph graph = WaitGraph::of(job.snapshot);
    for (const Wait& wait : graph.waits()) {
      EXPECT_NE(wait.from, node_of_chip(job.snapshot, 0)) << atoms;
    }
  }
}

TEST(WaitGraph, TheTrainerWaitsForWorkersThatHaveNotJoined) {
  MadeJob job(2, 1);
  job.snapshot.status = JobStatus::starting;
  job.worker(0).state = ActorState::idle;
  job.worker(1).state = ActorState::absent;
  EXPECT_EQ(WaitGraph::of(job.snapshot).roots(), (Roots{{node_of_worker(1)}}));
}

}  // namespace
}  // namespace weft::wait_graph_test
