/// Tests broadcasts through slots, with the chips of a mesh that one thread drives.

#include "transport/collectives/slot_call.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "tests/support/preparing_communicator.hpp"

namespace weft::slot_call_test {
namespace {

using std::chrono::milliseconds;
using testing::expect_error;
using testing::PreparingCommunicator;

constexpr std::size_t kCapacity = std::size_t{1} << 20;
constexpr int kChips = 3;
constexpr int kRing = static_cast<int>(kSlotCount);

class SlotCallTest : public ::testing::Test {
 protected:
  SlotCallTest() {
    for (int chip = 0; chip < kChips; ++chip) {
      memory.reserve(chip, 0, kCapacity);
      join(chip);
    }
  }
  /// Makes the chip join again, as after a change of the program or of the generation.
  void join(int chip) {
    chips[chip].reset();
    chips[chip] = std::make_unique<PreparingCommunicator>(
        memory, mesh, chip, board.device(chip),
        WaitPolicy{.spins = 0, .yield_for = {}, .deadline = milliseconds(30)});
  }
  CollectiveCall call(int root, std::string_view name = "x") const {
    return {.kind = CollectiveKind::broadcast,
            .atoms = mesh.axis_atoms(0),
            .source = 4096,
            .destination = 8192,
            .count = 2,
            .from = {root},
            .name = name};
  }
  CollectiveCall barrier(std::string_view name = "b") const {
    return {.atoms = mesh.axis_atoms(0), .name = name};
  }
  float& source(int chip) const { return *reinterpret_cast<float*>(memory.arena(chip) + 4096); }
  float result(int chip) const { return *reinterpret_cast<float*>(memory.arena(chip) + 8192); }
  GroupLine& line(int chip) const { return memory.group_line(mesh.axis_atoms(0).mask(), chip); }

  /// Starts a call. Returns whether the chip has ended its part of the call at once.
  bool runs(int chip, const CollectiveCall& which) {
    chips[chip]->start(which);
    return chips[chip]->poll();
  }
  bool posts(int root, int value) {
    source(root) = static_cast<float>(value);
    return runs(root, call(root));
  }
  /// Lets both roots find room in their rings, so that they needn't look at another chip's line
  /// before they post.
  void let_both_post() {
    for (const int root : {0, 1}) {
      ASSERT_TRUE(posts(root, 1));
      for (const int reader : {1 - root, 2}) expect_taken(reader, root, 1);
    }
  }
  void expect_taken(int chip, int root, int value) {
    ASSERT_TRUE(runs(chip, call(root)));
    ASSERT_EQ(result(chip), static_cast<float>(value));
  }

  const Mesh mesh{{kChips}, {"data"}};
  JobMemory memory =
      JobMemory::anonymous({.job = "t", .num_chips = kChips, .arena_capacity = kCapacity});
  Board board = Board::anonymous({.job = "t", .num_chips = kChips});
  std::unique_ptr<PreparingCommunicator> chips[kChips];
};

TEST_F(SlotCallTest, ARootWaitsOnlyWhereItIsARingAhead) {
  for (int i = 1; i < kRing; ++i) ASSERT_TRUE(posts(0, i)) << i;
  ASSERT_FALSE(posts(0, kRing));
  for (int i = 1; i < kRing; ++i) expect_taken(1, 0, i);
  EXPECT_FALSE(chips[0]->poll());  // the other reader hasn't taken a message
  for (int i = 1; i <= kRing / 2; ++i) {
    ASSERT_FALSE(chips[0]->poll());
    expect_taken(2, 0, i);
  }
  EXPECT_TRUE(chips[0]->poll());
  EXPECT_EQ(result(0), static_cast<float>(kRing));
  expect_taken(1, 0, kRing);
  for (int i = kRing / 2 + 1; i <= kRing; ++i) expect_taken(2, 0, i);
}

TEST_F(SlotCallTest, AReaderTakesWhatItWasWaitingFor) {
  chips[1]->start(call(0));
  EXPECT_FALSE(chips[1]->poll());
  EXPECT_TRUE(posts(0, 7));
  EXPECT_TRUE(chips[1]->poll());
  EXPECT_EQ(result(1), 7);
}

/// Each chip runs at its own pace, many times around the ring. Roots change, and there are syncs
/// between messages.
TEST_F(SlotCallTest, ChipsAtTheirOwnPaceSeeEveryMessageOfEveryRoot) {
  constexpr int kCalls = 20'000;
  std::mt19937 random(1);
  std::vector<int> roots;
  for (int i = 0; i < kCalls; ++i) {
    const int previous = roots.empty() ? 0 : roots.back();
    roots.push_back(random() % 128 != 0 ? previous : static_cast<int>(random() % (kChips + 1)) - 1);
  }
  const auto which = [&](int i) {
    return roots[static_cast<std::size_t>(i)] < 0 ? barrier()
                                                  : call(roots[static_cast<std::size_t>(i)]);
  };
  int next[kChips] = {};
  bool started[kChips] = {};
  int furthest = 0;
  for (int done = 0; done < kChips * kCalls;) {
    const int chip = static_cast<int>(random() % kChips);
    const int i = next[chip];
    if (i == kCalls) continue;
    if (!started[chip]) {
      if (roots[static_cast<std::size_t>(i)] == chip) source(chip) = static_cast<float>(i);
      chips[chip]->start(which(i));
      started[chip] = true;
    }
    if (!chips[chip]->poll()) continue;
    if (roots[static_cast<std::size_t>(i)] >= 0) {
      ASSERT_EQ(result(chip), static_cast<float>(i));
    }
    started[chip] = false;
    ++next[chip];
    ++done;
    furthest = std::max(furthest, next[chip] - *std::min_element(next, next + kChips));
  }
  EXPECT_GT(furthest, kRing / 2);
}

TEST_F(SlotCallTest, TakesEverySizeUpToTheSlots) {
  for (std::int64_t count = 1; count <= 17; ++count) {
    CollectiveCall which = call(2);
    which.dtype = DType::u8;
    which.count = count;
    for (int i = 0; i < 32; ++i) {
      for (int chip = 0; chip < kChips; ++chip) {
        memory.arena(chip)[which.source + static_cast<std::size_t>(i)] =
            static_cast<std::byte>(100 * chip + i);
        memory.arena(chip)[which.destination + static_cast<std::size_t>(i)] = std::byte{0xee};
      }
    }
    for (const int chip : {2, 0, 1}) chips[chip]->start(which);
    for (const int chip : {2, 0, 1}) ASSERT_TRUE(chips[chip]->poll());
    for (int chip = 0; chip < kChips; ++chip) {
      for (int i = 0; i < 32; ++i) {
        const std::byte expected = i < count ? static_cast<std::byte>(200 + i) : std::byte{0xee};
        ASSERT_EQ(memory.arena(chip)[which.destination + static_cast<std::size_t>(i)], expected)
            << count << ", chip " << chip << ", byte " << i;
      }
    }
  }
}

TEST_F(SlotCallTest, ANewCommunicatorGoesOnFromThere) {
  for (int i = 1; i <= 3 * kRing; ++i) {
    ASSERT_TRUE(posts(0, i));
    expect_taken(1, 0, i);
    expect_taken(2, 0, i);
    if (i % 5 == 0) join(i % kChips);
  }
  for (int chip = 0; chip < kChips; ++chip) chips[chip]->start(barrier());
  for (int chip = 0; chip < kChips; ++chip) EXPECT_TRUE(chips[chip]->poll());
}

TEST_F(SlotCallTest, NoMessageOfAnEarlierGenerationIsRead) {
  for (int i = 1; i < kRing; ++i) ASSERT_TRUE(posts(0, 1000 + i));
  expect_taken(1, 0, 1001);
  chips[2]->start(call(0));  // this chip is killed during the call
  for (auto& chip : chips) chip.reset();
  memory.begin_generation(3);
  for (int chip = 0; chip < kChips; ++chip) join(chip);
  for (int i = 1; i < 3 * kRing; ++i) {
    for (const int reader : {1, 2}) {
      chips[reader]->start(call(0));
      ASSERT_FALSE(chips[reader]->poll()) << i;
    }
    ASSERT_TRUE(posts(0, i));
    for (const int reader : {1, 2}) {
      ASSERT_TRUE(chips[reader]->poll());
      ASSERT_EQ(result(reader), static_cast<float>(i));
    }
  }
}

TEST_F(SlotCallTest, NoFirstMessageWhoseRootDiedInItIsRead) {
  for (int generation = 1; generation < 3; ++generation) {
    ASSERT_TRUE(posts(0, 1000));
    line(0).messages = 0;  // the root was killed before it published the message
    for (auto& chip : chips) chip.reset();
    memory.begin_generation(3);
    for (int chip = 0; chip < kChips; ++chip) join(chip);
    ASSERT_FALSE(runs(1, call(0)));
    ASSERT_TRUE(posts(0, generation));
    ASSERT_TRUE(chips[1]->poll());
    ASSERT_EQ(result(1), static_cast<float>(generation));
    for (auto& chip : chips) chip.reset();
    memory.begin_generation(3);
    for (int chip = 0; chip < kChips; ++chip) join(chip);
  }
}

TEST_F(SlotCallTest, AReaderNamesWhatTheRootCalledHoweverFarThatIs) {
  ASSERT_TRUE(posts(0, 1));
  ASSERT_TRUE(runs(0, call(0, "theirs")));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(runs(0, call(0, "later")));
  expect_taken(1, 0, 1);
  CollectiveCall mine = call(0, "mine");
  mine.dtype = DType::bf16;
  chips[1]->set_step(204);
  chips[1]->start(mine);
  for (int i = 0; i < 2; ++i) {  // the second poll throws the same error
    expect_error(Errc::program_divergence,
                 {"step 204", "chip 1 called broadcast #2 'mine' over {data}: bf16 1 x 2",
                  "chip 0 called broadcast #2 'theirs' over {data}: f32 1 x 2"},
                 [&] { chips[1]->poll(); });
  }
  expect_error(Errc::invalid_argument, {"ended"}, [&] { chips[1]->start(mine); });
}

TEST_F(SlotCallTest, AReaderThatLeftOneOutIsToldSo) {
  ASSERT_TRUE(posts(0, 1));
  ASSERT_TRUE(posts(0, 2));
  chips[1]->run({.atoms = {}, .name = "alone"});
  chips[1]->start(call(0));
  expect_error(Errc::program_divergence,
               {"chip 1 called broadcast #2", "chip 0 called broadcast #1"},
               [&] { chips[1]->poll(); });
}

/// A reader and a root wait in different ways, and each finds the call of the other.
TEST_F(SlotCallTest, AReaderAndARootThatWentToASyncNameEachOther) {
  chips[0]->start(barrier());
  chips[1]->start(call(0, "value"));
  expect_error(Errc::program_divergence,
               {"chip 1 called broadcast #1 'value'", "chip 0 called barrier #1 'b'"},
               [&] { chips[1]->wait(); });
  expect_error(Errc::program_divergence,
               {"chip 0 called barrier #1 'b'", "chip 1 called broadcast #1 'value'"},
               [&] { chips[0]->wait(); });
}

TEST_F(SlotCallTest, ASyncNamesTheBroadcastThatARootWentOnFrom) {
  ASSERT_TRUE(runs(0, call(0, "value")));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(runs(0, call(0, "later")));
  chips[1]->start(barrier());
  expect_error(Errc::program_divergence,
               {"chip 1 called barrier #1 'b'", "chip 0 called broadcast #1 'value'"},
               [&] { chips[1]->wait(); });
}

/// A root that waits for room finds that a reader has called something else.
TEST_F(SlotCallTest, ARootThatIsARingAheadNamesWhatAReaderCalled) {
  for (int i = 1; i < kRing; ++i) ASSERT_TRUE(runs(0, call(0, "value")));
  for (int i = 1; i < kRing; ++i) ASSERT_TRUE(runs(2, call(0, "value")));
  for (int i = 0; i < 20; ++i) chips[1]->run({.atoms = {}, .name = "alone"});
  chips[0]->start(call(0, "last"));
  expect_error(Errc::program_divergence,
               {"chip 0 called broadcast #", "'value'", "chip 1 called barrier #20 'alone'"},
               [&] { chips[0]->wait(); });
}

/// Neither root reads the other's ring, so only the next sync finds the difference.
TEST_F(SlotCallTest, TwoRootsOfOneMessageAreFoundAtTheNextSync) {
  let_both_post();
  ASSERT_TRUE(runs(0, call(0, "first")));
  ASSERT_TRUE(runs(1, call(1, "second")));
  ASSERT_TRUE(runs(2, call(0, "first")));
  for (const int chip : {0, 1, 2}) chips[chip]->start(barrier());
  for (const int chip : {0, 1}) {
    expect_error(Errc::program_divergence,
                 {"chip 0 called broadcast #3 'first'", "chip 1 called broadcast #3 'second'"},
                 [&] { chips[chip]->wait(); });
  }
}

TEST_F(SlotCallTest, TwoRootsOfOneMessageAreFoundByTheReaderOfTheNext) {
  let_both_post();
  ASSERT_TRUE(runs(0, call(0, "first")));
  ASSERT_TRUE(runs(1, call(1, "second")));
  ASSERT_TRUE(runs(0, call(0, "third")));
  chips[1]->start(call(0, "third"));
  expect_error(Errc::program_divergence,
               {"chip 0 called broadcast #3 'first'", "chip 1 called broadcast #3 'second'"},
               [&] { chips[1]->poll(); });
}

TEST_F(SlotCallTest, ARootThatLooksForRoomFindsAnotherRoot) {
  ASSERT_TRUE(runs(0, call(0, "first")));
  chips[1]->start(call(1, "second"));
  expect_error(Errc::program_divergence,
               {"chip 1 called broadcast #1 'second'", "chip 0 called broadcast #1 'first'"},
               [&] { chips[1]->poll(); });
}

TEST_F(SlotCallTest, TwoRootsThatNeverReadAreFoundWithinARing) {
  let_both_post();
  bool found = false;
  for (int i = 1; i <= kRing && !found; ++i) {
    for (const int chip : {0, 1, 2}) {
      chips[chip]->start(call(chip % 2));
      try {
        if (chips[chip]->poll()) continue;
        chips[chip]->wait();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::program_divergence) << error.what();
        found = true;
        break;
      }
    }
  }
  EXPECT_TRUE(found);
}

TEST_F(SlotCallTest, NamesWhoIsMissingAtTheDeadline) {
  chips[1]->set_step(7);
  chips[1]->start(call(0, "value"));
  const std::string message = expect_error(Errc::timeout,
                                           {"chip 1 waited", "broadcast #1 'value'", "step 7",
                                            "chip 0 (last called: no collective yet)"},
                                           [&] { chips[1]->wait(); });
  EXPECT_EQ(message.find("chip 2"), std::string::npos) << message;
  ASSERT_TRUE(runs(0, call(0, "value")));
  chips[1]->wait();  // chip 1's call may still end
  for (int i = 2; i < kRing; ++i) ASSERT_TRUE(runs(0, call(0, "value")));
  for (int i = 2; i < kRing; ++i) ASSERT_TRUE(runs(1, call(0, "value")));
  chips[0]->start(call(0, "value"));
  const std::string room =
      expect_error(Errc::timeout, {"chip 0 waited", "for chip 2"}, [&] { chips[0]->wait(); });
  EXPECT_EQ(room.find("for chip 1"), std::string::npos) << room;
}

TEST_F(SlotCallTest, AnAbortEndsTheWaitsOfReadersAndRoots) {
  for (int i = 1; i < kRing; ++i) ASSERT_TRUE(runs(0, call(0)));
  for (int i = 1; i < kRing; ++i) ASSERT_TRUE(runs(1, call(0)));
  chips[0]->start(call(0));
  chips[1]->start(call(0));
  memory.abort("worker 2 was killed by signal 9");
  expect_error(Errc::peer_lost, {"signal 9", "chip 0", "waiting for chip 2"},
               [&] { chips[0]->wait(); });
  expect_error(Errc::peer_lost, {"signal 9", "chip 1", "waiting for chip 0"},
               [&] { chips[1]->wait(); });
}

TEST_F(SlotCallTest, SaysOnTheBoardAndInItsLineHowFarItIs) {
  chips[1]->start(call(0, "value"));
  EXPECT_EQ(line(1).messages.load(), 1U);
  EXPECT_EQ(line(1).root.load(), 0U);
  EXPECT_EQ(line(0).messages.load(), 0U);
  expect_error(Errc::timeout, {"chip 0"}, [&] { chips[1]->wait(); });
  const int row = 2 + 1;
  EXPECT_EQ(board.read(row).state, ActorState::waiting);
  EXPECT_EQ(board.read(row).waiting_for, 0);
  ASSERT_TRUE(posts(0, 1));
  EXPECT_EQ(line(0).messages.load(), 1U);
  EXPECT_TRUE(chips[1]->poll());
  EXPECT_EQ(board.read(row).waiting_for, -1);
}

}  // namespace
}  // namespace weft::slot_call_test
