#include "transport/collectives/communicator.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "tests/support/preparing_communicator.hpp"
#include "transport/job/control_format.hpp"

namespace weft::communicator_test {
namespace {

using std::chrono::milliseconds;
using testing::expect_error;
using testing::PreparingCommunicator;

constexpr std::size_t kCapacity = std::size_t{1} << 20;

/// Returns the number of collectives that a chip has started.
std::uint64_t called(const JobMemory& memory, int chip) {
  return memory.call_record(chip).number.load();
}

/// Makes the chips of a mesh. One thread drives all of them.
class CommunicatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int position = 0; position < mesh.size(); ++position) {
      const int chip = mesh.device_at(position);
      memory.reserve(chip, 0, kCapacity);
      chips.push_back(std::make_unique<PreparingCommunicator>(
          memory, mesh, position, board.device(chip),
          WaitPolicy{.spins = 0, .yield_for = {}, .deadline = milliseconds(30)}));
    }
  }
  float* values(int chip, std::size_t offset) const {
    return reinterpret_cast<float*>(memory.arena(chip) + offset);
  }
  CollectiveCall call(CollectiveKind kind, AtomList atoms, std::int64_t count) const {
    return {.kind = kind,
            .atoms = atoms,
            .source = 4096,
            .destination = 8192,
            .count = count,
            .name = "x"};
  }

  const Mesh mesh{{2, 2}, {"data", "model"}, {3, 2, 1, 0}};
  const AtomList data{1};
  const AtomList model{2};
  const AtomList all{1, 2};
  JobMemory memory =
      JobMemory::anonymous({.job = "t", .num_chips = 4, .arena_capacity = kCapacity});
  Board board = Board::anonymous({.job = "t", .num_chips = 4});
  std::vector<std::unique_ptr<PreparingCommunicator>> chips;  ///< indexed by position
};

TEST_F(CommunicatorTest, EndsWhenTheLastChipOfTheGroupArrives) {
  const CollectiveCall barrier = call(CollectiveKind::barrier, model, 0);
  chips[0]->start(barrier);
  EXPECT_FALSE(chips[0]->poll());
  chips[2]->start(barrier);  // chip 2 is in the other group
  EXPECT_FALSE(chips[0]->poll());
  chips[1]->start(barrier);
  EXPECT_TRUE(chips[1]->poll());
  EXPECT_TRUE(chips[0]->poll());
  EXPECT_TRUE(chips[0]->poll());
  EXPECT_FALSE(chips[2]->poll());
  EXPECT_EQ(called(memory, 3), 1U);
}

TEST_F(CommunicatorTest, OrdersAGroupByItsAtoms) {
  const AtomList turned{2, 1};
  CollectiveCall gather = call(CollectiveKind::all_gather, turned, 1);
  for (int position = 0; position < 4; ++position) {
    values(3 - position, gather.source)[0] = static_cast<float>(position);
    chips[static_cast<std::size_t>(position)]->start(gather);
  }
  bool done = false;
  while (!done) {
    done = true;
    for (const auto& chip : chips) done = chip->poll() && done;
  }
  const float expected[] = {0, 2, 1, 3};
  for (int chip = 0; chip < 4; ++chip) {
    EXPECT_EQ(std::memcmp(values(chip, gather.destination), expected, sizeof(expected)), 0);
  }
}

TEST_F(CommunicatorTest, NeedsNobodyInAGroupOfOne) {
  const CollectiveCall reduce = call(CollectiveKind::all_reduce, {}, 2);
  values(3, reduce.source)[1] = 5;
  chips[0]->run(reduce);
  EXPECT_EQ(values(3, reduce.destination)[1], 5);
}

TEST_F(CommunicatorTest, GoesOnWhereAnEarlierOneOfTheChipStopped) {
  const CollectiveCall barrier = call(CollectiveKind::barrier, data, 0);
  // The number of announcements wraps to 0 at the next announcement.
  memory.group_line(data.mask(), 3).announced = 0xffffffffULL << 32;
  memory.group_line(data.mask(), 1).announced = 0xffffffffULL << 32;
  for (int i = 0; i < 3; ++i) {
    chips[0] =
        std::make_unique<PreparingCommunicator>(memory, mesh, 0, BoardWriter(), WaitPolicy{});
    chips[0]->start(barrier);
    EXPECT_FALSE(chips[0]->poll());
    chips[2]->start(barrier);
    EXPECT_TRUE(chips[2]->poll());
    EXPECT_TRUE(chips[0]->poll());
  }
  EXPECT_EQ(called(memory, 3), 3U);
}

TEST_F(CommunicatorTest, RefusesASecondCallBeforeTheFirstHasEnded) {
  chips[0]->start(call(CollectiveKind::barrier, all, 0));
  expect_error(Errc::invalid_argument,
               {"chip 3", "all_gather 'y'", "barrier #1 'x' over {data, model}"}, [&] {
                 CollectiveCall second = call(CollectiveKind::all_gather, all, 1);
                 second.name = "y";
                 chips[0]->start(second);
               });
}

TEST_F(CommunicatorTest, AnnouncesNothingForACallThatCantBeCarriedOut) {
  CollectiveCall bad = call(CollectiveKind::all_reduce, all, 10);
  bad.source = 7;
  expect_error(Errc::invalid_argument, {"source 7"}, [&] { chips[0]->start(bad); });
  bad.atoms = {3};
  expect_error(Errc::invalid_argument, {"atoms"}, [&] { chips[0]->start(bad); });
  bad.atoms = {1, 1};
  expect_error(Errc::invalid_argument, {"atoms"}, [&] { chips[0]->start(bad); });
  EXPECT_EQ(called(memory, 3), 0U);
  EXPECT_EQ(memory.group_line(all.mask(), 3).announced, 0U);
  EXPECT_TRUE(chips[0]->poll());
}

TEST_F(CommunicatorTest, RefusesAMeshOfMoreChipsThanTheMemoryHas) {
  const Mesh large({5}, {"data"});
  expect_error(Errc::mesh_mismatch, {"5", "4"},
               [&] { PreparingCommunicator(memory, large, 0, BoardWriter(), WaitPolicy{}); });
  expect_error(Errc::invalid_argument, {"position = 4"},
               [&] { PreparingCommunicator(memory, mesh, 4, BoardWriter(), WaitPolicy{}); });
}

TEST_F(CommunicatorTest, NamesBothCallsWhereChipsDiverge) {
  CollectiveCall mine = call(CollectiveKind::all_reduce, data, 100);
  mine.name = "fc1.weight.grad";
  CollectiveCall theirs = mine;
  theirs.dtype = DType::bf16;
  theirs.count = 200;
  theirs.name = "fc2.weight.grad";
  chips[0]->set_step(204);
  chips[0]->start(mine);
  chips[2]->start(theirs);
  for (int i = 0; i < 2; ++i) {  // the second poll throws the same error
    expect_error(
        Errc::program_divergence,
        {"step 204", "chip 3", "all_reduce #1 'fc1.weight.grad' over {data}: add f32 1 x 100",
         "chip 1", "all_reduce #1 'fc2.weight.grad' over {data}: add bf16 1 x 200"},
        [&] { chips[0]->poll(); });
  }
  expect_error(Errc::program_divergence, {"chip 1", "chip 3"}, [&] { chips[2]->wait(); });
  expect_error(Errc::invalid_argument, {"ended"}, [&] { chips[0]->start(mine); });
}

TEST_F(CommunicatorTest, NamesTheChipThatWentToAnotherGroup) {
  chips[0]->start(call(CollectiveKind::barrier, data, 0));
  chips[2]->start(call(CollectiveKind::barrier, model, 0));
  expect_error(Errc::program_divergence, {"over {data}", "chip 1", "over {model}"},
               [&] { chips[0]->wait(); });
}

TEST_F(CommunicatorTest, WaitsAtTheExitForAChipThatIsStillAtWork) {
  CollectiveCall reduce = call(CollectiveKind::all_reduce, data, 10'000);
  reduce.destination = 1 << 16;
  chips[0]->start(reduce);
  chips[2]->start(reduce);
  EXPECT_FALSE(chips[0]->poll());  // chip 0 has passed the entry sync
  // The wait is long enough that chip 0 checks for a divergence. It finds that chip 1 has recorded
  // the same call.
  expect_error(Errc::timeout, {"at its exit", "chip 1"}, [&] { chips[0]->wait(); });
  EXPECT_TRUE(chips[2]->poll());
  EXPECT_TRUE(chips[0]->poll());
}

TEST_F(CommunicatorTest, NamesTheChipThatLeftOneOut) {
  chips[0]->run(call(CollectiveKind::barrier, {}, 0));
  chips[0]->start(call(CollectiveKind::barrier, data, 0));
  chips[2]->start(call(CollectiveKind::barrier, data, 0));
  expect_error(Errc::program_divergence, {"barrier #2", "barrier #1"}, [&] { chips[0]->poll(); });
}

TEST_F(CommunicatorTest, NamesTheChipThatHasLeftTheBody) {
  for (const auto& chip : chips) chip->leave_body();  // ends an earlier body on all chips
  chips[0]->start(call(CollectiveKind::barrier, data, 0));
  expect_error(Errc::timeout, {"chip 1"}, [&] { chips[0]->wait(); });
  chips[2]->leave_body();
  expect_error(Errc::program_divergence, {"barrier #1", "chip 1 has left its on_each_chip() body"},
               [&] { chips[0]->wait(); });
}

TEST_F(CommunicatorTest, WaitsForAChipThatIsBehindByABody) {
  chips[0]->leave_body();
  chips[0]->start(call(CollectiveKind::barrier, data, 0));
  expect_error(Errc::timeout, {"chip 1"}, [&] { chips[0]->wait(); });
  chips[2]->leave_body();
  chips[2]->start(call(CollectiveKind::barrier, data, 0));
  EXPECT_TRUE(chips[0]->poll());
}

TEST_F(CommunicatorTest, NamesTheChipWhoseLoopHasEnded) {
  Communicator patient(memory, mesh, 1, board.device(2),
                       {.spins = 0, .yield_for = {}, .deadline = std::chrono::minutes(10)});
  const CollectiveCall barrier = call(CollectiveKind::barrier, data, 0);
  const PreparedCall prepared = patient.prepare(barrier);
  patient.start(prepared);
  const int positions[] = {3};
  leave_loop(memory, mesh, positions);
  expect_error(Errc::program_divergence, {"chip 0 has ended its loop"}, [&] { patient.wait(); });
}

TEST_F(CommunicatorTest, NamesWhoIsMissingAtTheDeadline) {
  for (const int position : {0, 1, 2}) {
    chips[static_cast<std::size_t>(position)]->run(call(CollectiveKind::barrier, {}, 0));
  }
  chips[0]->set_step(7);
  chips[0]->start(call(CollectiveKind::all_reduce, all, 100));
  chips[1]->start(call(CollectiveKind::all_reduce, all, 100));
  const std::string message = expect_error(
      Errc::timeout,
      {"chip 3 waited ", " s in all_reduce #2 'x' over {data, model}", "step 7", "at its entry",
       "chip 1 (last called: barrier #1 'x' over {})", "chip 0 (last called: no collective yet)"},
      [&] { chips[0]->wait(); });
  EXPECT_EQ(message.find("chip 2"), std::string::npos) << message;
}

TEST_F(CommunicatorTest, MayWaitAgainAfterADeadline) {
  const CollectiveCall barrier = call(CollectiveKind::barrier, data, 0);
  chips[0]->start(barrier);
  expect_error(Errc::timeout, {"chip 1"}, [&] { chips[0]->wait(); });
  chips[2]->start(barrier);
  chips[0]->wait();
}

TEST_F(CommunicatorTest, EndsWithTheReasonOfAnAbort) {
  chips[0]->set_step(9);
  chips[0]->start(call(CollectiveKind::all_reduce, all, 100));
  memory.abort("worker 1 was killed by signal 9");
  expect_error(
      Errc::peer_lost,
      {"worker 1 was killed by signal 9", "chip 3", "all_reduce #1 'x'", "step 9", "chip 2"},
      [&] { chips[0]->poll(); });
  expect_error(Errc::peer_lost, {"signal 9"}, [&] { chips[0]->wait(); });
}

TEST_F(CommunicatorTest, ShowsOnTheBoardWhatItWaitsFor) {
  const CollectiveCall barrier = call(CollectiveKind::barrier, data, 0);
  chips[0]->start(barrier);
  ActorRow row = board.read(2 + 3);
  EXPECT_TRUE(row.in_collective);
  EXPECT_EQ(row.collective, 1U);
  EXPECT_EQ(row.collective_name, "barrier 'x'");
  EXPECT_EQ(row.waiting_for, -1);
  expect_error(Errc::timeout, {}, [&] { chips[0]->wait(); });
  row = board.read(2 + 3);
  EXPECT_EQ(row.state, ActorState::waiting);
  EXPECT_EQ(row.waiting_for, 1);
  chips[2]->run(barrier);
  chips[0]->wait();
  row = board.read(2 + 3);
  EXPECT_FALSE(row.in_collective);
  EXPECT_EQ(row.state, ActorState::running);
}

TEST_F(CommunicatorTest, CutsANameThatDoesntFitTheBoard) {
  const std::string name(300, 'n');
  CollectiveCall barrier = call(CollectiveKind::barrier, {}, 0);
  barrier.name = name;
  chips[0]->run(barrier);
  EXPECT_TRUE(board.read(2 + 3).collective_name.starts_with("barrier 'nnn"));
}

TEST(WaitPolicy, DoesntSpinWithMoreThreadsThanCores) {
  const WaitPolicy crowded = WaitPolicy::for_threads(1 << 20, milliseconds(5));
  EXPECT_EQ(crowded.spins, 0);
  EXPECT_EQ(crowded.deadline, milliseconds(5));
  const WaitPolicy alone = WaitPolicy::for_threads(1, milliseconds(5));
  EXPECT_GT(alone.spins, 0);
  EXPECT_EQ(alone.deadline, milliseconds(5));
}

/// A tier that accepts calls but never ends one.
struct UnansweredTier final : CollectiveTier {
  explicit UnansweredTier(std::vector<CollectiveCall>& calls) : prepared(calls) {}
  std::unique_ptr<const TierCall> prepare(const CollectiveCall& call) override {
    prepared.push_back(call);
    return std::make_unique<TierCall>();
  }
  void start(const StartedCall&, const TierCall&) override {}
  bool poll() override { return false; }
  void wait() override {}

  std::vector<CollectiveCall>& prepared;
};

/// Makes two hosts of two chips each.
class TiersOfCalls : public CommunicatorTest {
 protected:
  const Mesh hosts = mesh.with_dcn_atoms(data.mask());
  JobMemory host = JobMemory::anonymous({.job = "h", .num_chips = 2, .arena_capacity = kCapacity});
  std::vector<CollectiveCall> network_calls;
};

TEST_F(TiersOfCalls, FollowFromTheAtoms) {
  PreparingCommunicator chip(host, hosts, 0, BoardWriter(), WaitPolicy{},
                             std::make_unique<UnansweredTier>(network_calls));
  chip.prepare(call(CollectiveKind::all_reduce, model, 10));
  EXPECT_TRUE(network_calls.empty());
  chip.prepare(call(CollectiveKind::all_reduce, data, 10));
  chip.prepare(call(CollectiveKind::all_reduce, all, 10));
  ASSERT_EQ(network_calls.size(), 2U);
  EXPECT_EQ(network_calls[0].atoms, data);
  EXPECT_EQ(network_calls[1].atoms, all);
  chip.start(call(CollectiveKind::barrier, data, 0));
  EXPECT_FALSE(chip.poll());
  EXPECT_EQ(called(host, 1), 1U);
}

TEST_F(TiersOfCalls, NameTheAxisForWhichThereIsNone) {
  PreparingCommunicator chip(host, hosts, 0, BoardWriter(), WaitPolicy{});
  for (const AtomList atoms : {data, all}) {
    expect_error(Errc::unavailable,
                 {"all_reduce 'x': axis data of mesh (2,2)", "no network between hosts",
                  "use a mesh whose chips are all on one host"},
                 [&] { chip.prepare(call(CollectiveKind::all_reduce, atoms, 10)); });
  }
  EXPECT_EQ(called(host, 1), 0U);
}

TEST_F(TiersOfCalls, ShareNothingBetweenHosts) {
  PreparingCommunicator chip(host, hosts, 0, BoardWriter(), WaitPolicy{},
                             std::make_unique<UnansweredTier>(network_calls));
  CollectiveCall gather = call(CollectiveKind::all_gather, data, 10);
  gather.shared = true;
  expect_error(Errc::invalid_argument, {"all_gather 'x'", "shared", "cross hosts"},
               [&] { chip.prepare(gather); });
  gather.atoms = model;
  chip.prepare(gather);
}

TEST_F(TiersOfCalls, CountTheChipsOfAHostInItsMemory) {
  JobMemory small = JobMemory::anonymous({.job = "s", .num_chips = 1, .arena_capacity = kCapacity});
  expect_error(Errc::mesh_mismatch, {"has 2 chips on a host, but the job's memory has 1"},
               [&] { PreparingCommunicator(small, hosts, 0, BoardWriter(), WaitPolicy{}); });
}

}  // namespace
}  // namespace weft::communicator_test
