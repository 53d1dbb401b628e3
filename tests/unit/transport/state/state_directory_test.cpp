#include "transport/state/state_directory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>

#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/unit/transport/format/sample_state.hpp"

namespace weft::state_directory_test {
namespace {

using testing::expect_error;
using State = std::vector<StateEntry>;

constexpr std::size_t kCapacity = std::size_t{1} << 20;
constexpr std::size_t kSlotBytes = kDirectoryBytes / kDirectorySlotCount;
constexpr int kChip = 1;
/// The revision of all states that a test writes; they differ only in their offsets.
constexpr std::uint64_t kRevision = 1;

std::optional<State> tensors_at(const StateDirectory& directory, std::uint64_t step) {
  const auto table = directory.read(step);
  return table ? std::optional(table->tensors) : std::nullopt;
}

class StateDirectoryTest : public ::testing::Test {
 protected:
  /// Returns the sample state at an offset that differs for each `n` from 0 to 63.
  State state(std::uint64_t n) const { return sample_state(memory.buffers_offset() + 8192 * n); }

  /// Returns one of the three words at a slot's start: the numbers of the first and the last
  /// version that the slot is for, and the table's size in bytes.
  std::uint64_t& word(int slot, std::size_t index) const {
    return reinterpret_cast<std::uint64_t*>(bytes(slot))[index];
  }
  std::byte* table(int slot) const { return bytes(slot) + 64; }
  std::byte* bytes(int slot) const {
    return memory.directory(kChip) + static_cast<std::size_t>(slot) * kSlotBytes;
  }
  /// Writes the state as version 1, and expects that reading it is refused with these words.
  void expect_corrupt(std::initializer_list<std::string_view> words, const State& state) {
    StateDirectory writer(memory, mesh, kChip);
    writer.write(1, state, kRevision);
    expect_error(Errc::corrupt, words, [&] { directory.read(1); });
  }

  const Mesh mesh = sample_state_mesh();
  JobMemory memory =
      JobMemory::anonymous({.job = "t", .num_chips = 4, .arena_capacity = kCapacity});
  StateDirectory directory{memory, mesh, kChip};
};

TEST_F(StateDirectoryTest, ReadsWhatWasWrittenForAStep) {
  EXPECT_FALSE(directory.read(0));
  directory.write(3, state(0), kRevision);
  directory.write(4, state(1), kRevision);
  EXPECT_EQ(tensors_at(directory, 3), state(0));
  EXPECT_EQ(tensors_at(directory, 4), state(1));
  EXPECT_FALSE(directory.read(0));
  EXPECT_FALSE(directory.read(2));
  EXPECT_FALSE(directory.read(5));
}

TEST_F(StateDirectoryTest, KnowsAJobWithoutState) {
  directory.write(1, {}, kRevision);
  EXPECT_EQ(tensors_at(directory, 1), State{});
}

TEST_F(StateDirectoryTest, IsOfItsChipAlone) {
  StateDirectory other(memory, mesh, kChip + 1);
  directory.write(1, state(0), kRevision);
  EXPECT_FALSE(other.read(1));
}

TEST_F(StateDirectoryTest, VersionsInTheSamePlacesTakeOneSlot) {
  for (std::uint64_t step = 1; step <= 100; ++step) directory.write(step, state(0), kRevision);
  directory.write(101, state(1), kRevision);
  directory.write(102, state(2), kRevision);
  directory.write(103, state(3), kRevision);
  EXPECT_EQ(tensors_at(directory, 1), state(0));
  EXPECT_EQ(tensors_at(directory, 100), state(0));
  EXPECT_EQ(tensors_at(directory, 101), state(1));
  EXPECT_EQ(tensors_at(directory, 103), state(3));
}

TEST_F(StateDirectoryTest, HasTheLastFour) {
  for (std::uint64_t step = 1; step <= 20; ++step) {
    directory.write(step, state(step), kRevision);
    for (std::uint64_t back = 0; back < step; ++back) {
      const auto expected = back < 4 ? std::optional(state(step - back)) : std::nullopt;
      ASSERT_EQ(tensors_at(directory, step - back), expected) << step << " - " << back;
    }
  }
}

TEST_F(StateDirectoryTest, TablesThatTakeTurnsAreWrittenOnce) {
  std::uint64_t step = 1;
  for (; step <= 4; ++step) directory.write(step, state(step % 2), kRevision);
  for (int slot = 0; slot < kDirectorySlotCount; ++slot) table(slot)[0] ^= std::byte{1};
  for (; step <= 12; ++step) directory.write(step, state(step % 2), kRevision);
  for (int slot = 0; slot < kDirectorySlotCount; ++slot) table(slot)[0] ^= std::byte{1};
  for (; step <= 20; ++step) {
    directory.write(step, state(step % 2), kRevision);
    for (std::uint64_t back = 0; back < 4; ++back) {
      ASSERT_EQ(tensors_at(directory, step - back), state((step - back) % 2));
    }
  }
}

TEST_F(StateDirectoryTest, AnotherRevisionIsWrittenWhereverItLies) {
  State renamed = state(0);
  renamed[0].name = "fc2.weight";
  directory.write(1, state(0), kRevision);
  directory.write(2, renamed, kRevision + 1);
  directory.write(3, state(0), kRevision + 2);
  EXPECT_EQ(tensors_at(directory, 1), state(0));
  EXPECT_EQ(tensors_at(directory, 2), renamed);
  EXPECT_EQ(tensors_at(directory, 3), state(0));
}

TEST_F(StateDirectoryTest, StepsThatAreToBeTakenAgainAreForgotten) {
  for (std::uint64_t step = 1; step <= 10; ++step) directory.write(step, state(0), kRevision);
  directory.write(11, state(1), kRevision);
  directory.keep_only(7);
  EXPECT_EQ(tensors_at(directory, 7), state(0));
  EXPECT_FALSE(directory.read(8));
  EXPECT_FALSE(directory.read(11));
  directory.write(8, state(0), kRevision);
  directory.write(9, state(2), kRevision);
  EXPECT_EQ(tensors_at(directory, 8), state(0));
  EXPECT_EQ(tensors_at(directory, 9), state(2));
}

TEST_F(StateDirectoryTest, KeepsNothingOfAStepThatItHasNot) {
  directory.write(5, state(0), kRevision);
  directory.keep_only(6);
  EXPECT_FALSE(directory.read(5));
  EXPECT_FALSE(directory.read(6));
}

/// A restarted process continues to write, whichever slot its predecessor wrote last.
TEST_F(StateDirectoryTest, ASuccessorGoesOn) {
  for (std::uint64_t last = 1; last <= 8; ++last) {
    SCOPED_TRACE(last);
    StateDirectory first(memory, mesh, kChip);
    first.keep_only(0);
    for (std::uint64_t step = 1; step <= last; ++step) first.write(step, state(step), kRevision);
    StateDirectory successor(memory, mesh, kChip);
    EXPECT_EQ(tensors_at(successor, last), state(last));
    successor.keep_only(last);
    for (std::uint64_t i = 1; i <= 3; ++i) successor.write(last + i, state(40 + i), kRevision);
    EXPECT_EQ(tensors_at(successor, last), state(last)) << "three versions ahead";
    EXPECT_EQ(tensors_at(successor, last + 3), state(43));
    successor.write(last + 4, state(44), kRevision);
    EXPECT_EQ(tensors_at(successor, last + 4), state(44));
    EXPECT_FALSE(successor.read(last));
  }
}

TEST(StateDirectory, OutlivesItsProcess) {
  const std::string job = testing::unique_job();
  JobMemory memory = JobMemory::create({.job = job, .num_chips = 2, .arena_capacity = kCapacity});
  const Mesh mesh({2}, {"data"});
  const State state{
      {"w", {DType::f32, {4}}, Sharding::closed(), memory.buffers_offset()},
  };
  testing::ChildProcess child([&] {
    JobMemory opened = JobMemory::open(job);
    StateDirectory(opened, mesh, 0).write(9, state, kRevision);
  });
  EXPECT_EQ(child.join(), "");
  EXPECT_EQ(tensors_at(StateDirectory(memory, mesh, 0), 9), state);
  JobMemory::remove(job);
}

TEST_F(StateDirectoryTest, SaysHowManyTensorsAreTooMany) {
  directory.write(1, state(0), kRevision);
  State many(40'000, state(0).front());
  expect_error(Errc::no_space, {"40000 tensors", "room for 4194240"},
               [&] { directory.write(2, many, kRevision + 1); });
  EXPECT_EQ(tensors_at(directory, 1), state(0));
  EXPECT_FALSE(directory.read(2));
}

TEST_F(StateDirectoryTest, RefusesATableThatIsNone) {
  directory.write(1, state(0), kRevision);
  word(0, 2) = kSlotBytes - 63;
  expect_error(Errc::corrupt, {"chip 1", "4194241 bytes"}, [&] { directory.read(1); });
  word(0, 2) = ~std::uint64_t{0};
  expect_error(Errc::corrupt, {"chip 1"}, [&] { directory.read(1); });
  word(0, 2) = 8;
  expect_error(Errc::corrupt, {"state table"}, [&] { directory.read(1); });
  word(0, 2) = kSlotBytes - 64;
  EXPECT_EQ(tensors_at(directory, 1), state(0)) << "more than the table is no harm";
  table(0)[8] = std::byte{2};
  expect_error(Errc::version, {"state table", "version 2"}, [&] { directory.read(1); });
}

TEST_F(StateDirectoryTest, RefusesShardsThatLieNowhere) {
  const auto lying_at = [&](std::uint64_t offset) {
    State state{this->state(0)[1]};
    state[0].offset = offset;
    return state;
  };
  const std::uint64_t bytes = 8 * 64 * 4;
  directory.write(1, lying_at(kCapacity - bytes), kRevision);
  EXPECT_TRUE(directory.read(1));
  directory.write(2, lying_at(memory.buffers_offset()), kRevision);
  EXPECT_TRUE(directory.read(2));
  for (const std::uint64_t offset :
       {kCapacity - bytes + 64, kCapacity, kCapacity + 64, memory.buffers_offset() - 64,
        memory.buffers_offset() + 32, std::uint64_t{0}, ~std::uint64_t{63}}) {
    expect_corrupt({"chip 1", "'fc1.weight.v' has 2048 bytes", std::to_string(offset)},
                   lying_at(offset));
  }
}

/// The sharding divides 2^53 elements by 17^16, in a table with a valid checksum.
TEST(StateDirectory, RefusesAShardingThatDividesByMoreThanThereAre) {
  JobMemory memory =
      JobMemory::anonymous({.job = "t", .num_chips = 17, .arena_capacity = kCapacity});
  const Mesh mesh({17}, {"data"});
  State state{{"w", {DType::f64, {std::int64_t{1} << 53}}, {}, memory.buffers_offset()}};
  state[0].sharding.dims[0] = AtomList::from_bits(0x1111'1111'1111'1111);
  StateDirectory directory(memory, mesh, 0);
  directory.write(1, state, kRevision);
  expect_error(Errc::corrupt, {"an atom twice"}, [&] { directory.read(1); });
}

TEST_F(StateDirectoryTest, RefusesEveryFlippedBitOfATable) {
  directory.write(1, state(0), kRevision);
  for (std::uint64_t bit = 0; bit < 8 * word(0, 2); ++bit) {
    std::byte& damaged = table(0)[bit / 8];
    damaged ^= std::byte{1} << (bit % 8);
    EXPECT_THROW(directory.read(1), Error) << bit;
    damaged ^= std::byte{1} << (bit % 8);
  }
  EXPECT_EQ(tensors_at(directory, 1), state(0));
}

TEST_F(StateDirectoryTest, BearsAnyWordsBeforeItsTables) {
  for (std::uint64_t step = 1; step <= 4; ++step) directory.write(step, state(step), kRevision);
  const std::vector<std::uint64_t> words = {0, 1, 2, 3, 4, 64, kSlotBytes, ~std::uint64_t{0}};
  std::mt19937 chance(1);
  for (int round = 0; round < 1000; ++round) {
    for (int slot = 0; slot < kDirectorySlotCount; ++slot) {
      for (std::size_t i = 0; i < 3; ++i) word(slot, i) = words[chance() % words.size()];
    }
    const std::uint64_t step = words[chance() % words.size()];
    try {
      directory.read(step);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Errc::corrupt) << error.what();
    }
    StateDirectory(memory, mesh, kChip).keep_only(step);
  }
}

}  // namespace
}  // namespace weft::state_directory_test
