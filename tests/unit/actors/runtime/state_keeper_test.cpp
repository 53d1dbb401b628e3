#include "actors/runtime/state_keeper.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "chips/cpu/executor.hpp"
#include "spmd/passes/partition.hpp"
#include "tests/support/arena_pool.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::state_keeper_test {
namespace {

using testing::expect_error;

const TensorType kWeight{DType::f32, {8, 4}};
const TensorType kScalar{DType::i64, {}};

/// Tests the state that one process of a worker leaves in memory for the next.
class StateKeeperTest : public ::testing::Test {
 protected:
  struct Process {
    Process(JobMemory& memory, const Mesh& of, std::uint64_t resume_step,
            std::vector<int> positions = {0, 1})
        : mesh(of),
          engines(engines_of(memory, of, positions)),
          keeper(memory, mesh, positions, copy_by(engines), resume_step),
          pool(std::make_shared<testing::ArenaPool>(memory, std::move(positions), keeper.taken())) {
      keeper.hold(pool);
    }
    static std::vector<std::unique_ptr<Engine>> engines_of(JobMemory& memory, const Mesh& mesh,
                                                           const std::vector<int>& positions) {
      std::vector<std::unique_ptr<Engine>> engines;
      for (const int position : positions) {
        engines.push_back(
            std::make_unique<Executor>(memory, mesh, position, BoardWriter(), WaitPolicy()));
      }
      return engines;
    }
    static StateKeeper::Copy copy_by(const std::vector<std::unique_ptr<Engine>>& engines) {
      return
          [&engines](std::size_t chip, const KeptShard& from, std::uint64_t to, std::size_t bytes) {
            engines[chip]->copy_from(from.position, from.offset, to, bytes);
          };
    }
    /// Runs a step that writes a new version of the tensor.
    std::shared_ptr<ArenaBuffer> update(const std::string& name, const TensorType& type,
                                        const Sharding& sharding = Sharding::closed()) {
      const std::int64_t bytes = chip_type(type, sharding, mesh).bytes();
      auto buffer = std::make_shared<ArenaBuffer>(type, sharding, pool, BlockKind::state,
                                                  pool->allocate_state(bytes), bytes);
      keeper.lies_in(keeper.place(name, type, sharding, StateKind::param), buffer);
      return buffer;
    }
    std::uint64_t offset_of(const std::string& name, const TensorType& type) {
      const BufferPtr buffer = keeper.take(name, type);
      return buffer ? static_cast<const ArenaBuffer&>(*buffer).block_offset() : 0;
    }

    const Mesh& mesh;
    std::vector<std::unique_ptr<Engine>> engines;
    StateKeeper keeper;
    std::shared_ptr<BufferPool> pool;
  };

  const Mesh mesh{{2}, {"data"}};
  JobMemory memory =
      JobMemory::anonymous({.job = "", .num_chips = 2, .arena_capacity = std::size_t{1} << 20});
  Process first{memory, mesh, 0};
};

TEST_F(StateKeeperTest, FindsWhatItsPredecessorWroteDown) {
  Sharding by_data;
  by_data.dims[0] = AtomList{1};
  const auto weight = first.update("w", kWeight, by_data);
  const auto count = first.update("t", kScalar);
  first.keeper.write(1);
  Process second(memory, mesh, 1);
  const BufferPtr found = second.keeper.take("w", kWeight);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->type(), kWeight);
  EXPECT_EQ(found->sharding(), by_data);
  EXPECT_EQ(static_cast<const ArenaBuffer&>(*found).block_offset(), weight->block_offset());
  EXPECT_EQ(second.offset_of("t", kScalar), count->block_offset());
}

TEST_F(StateKeeperTest, GivesATensorOnce) {
  const auto weight = first.update("w", kWeight);
  first.keeper.write(1);
  Process second(memory, mesh, 1);
  const BufferPtr taken = second.keeper.take("w", kWeight);
  EXPECT_TRUE(taken);
  EXPECT_FALSE(second.keeper.take("w", kWeight));
  EXPECT_FALSE(second.keeper.take("other", kWeight));
}

/// If a loop makes its model again before the first step, the second model gets the same kept
/// state. After it, a model gets only state that no other model has taken.
TEST_F(StateKeeperTest, WhatIsDroppedInTheFirstStepIsTheNextOnes) {
  const auto weight = first.update("w", kWeight);
  const auto moment = first.update("m", kWeight);
  first.keeper.write(1);
  Process second(memory, mesh, 1);
  BufferPtr taken = second.keeper.take("w", kWeight);
  taken.reset();
  taken = second.keeper.take("w", kWeight);
  EXPECT_TRUE(taken);
  second.keeper.end_first_step();
  taken.reset();
  EXPECT_FALSE(second.keeper.take("w", kWeight));
  EXPECT_TRUE(second.keeper.take("m", kWeight)) << "which nobody has asked for yet";
  EXPECT_FALSE(second.keeper.take("m", kWeight));
}

TEST_F(StateKeeperTest, WhatHasBeenUsedIsNoLongerThere) {
  const auto weight = first.update("w", kWeight);
  const auto moment = first.update("m", kWeight);
  first.keeper.write(1);
  Process second(memory, mesh, 1);
  const BufferPtr taken = second.keeper.take("w", kWeight);
  const std::vector<ProgramInput> inputs{{.kind = InputKind::param, .name = "w", .sharding = {}},
                                         {.kind = InputKind::data, .name = "m", .sharding = {}}};
  second.keeper.used(inputs);
  EXPECT_EQ(taken.use_count(), 1) << "its next version may be written over it";
  EXPECT_FALSE(second.keeper.take("w", kWeight));
  EXPECT_TRUE(second.keeper.take("m", kWeight));
}

TEST_F(StateKeeperTest, NamesWhatAnotherHasTaken) {
  const auto weight = first.update("w", kWeight);
  first.keeper.write(1);
  Process second(memory, mesh, 1);
  const BufferPtr taken = second.keeper.take("w", kWeight);
  expect_error(Errc::invalid_argument, {"'w' is used", "belongs to another parameter"},
               [&] { second.keeper.require_untaken("w"); });
  EXPECT_NO_THROW(second.keeper.require_untaken("other"));
  second.keeper.end_first_step();
  EXPECT_NO_THROW(second.keeper.require_untaken("w")) << "it is the other's";
}

TEST_F(StateKeeperTest, NamesBothTypesWhereTheyDiffer) {
  const auto weight = first.update("w", kWeight);
  first.keeper.write(7);
  Process second(memory, mesh, 7);
  expect_error(Errc::invalid_argument, {"'w' is f32[8,5]", "the 7 steps", "left it as f32[8,4]"},
               [&] {
                 second.keeper.take("w", {DType::f32, {8, 5}});
               });
  expect_error(Errc::invalid_argument, {"bf16[8,4]", "f32[8,4]"}, [&] {
    second.keeper.take("w", {DType::bf16, {8, 4}});
  });
}

TEST_F(StateKeeperTest, BeginsWithNothingAtStepZero) {
  const auto weight = first.update("w", kWeight);
  first.keeper.write(1);
  Process second(memory, mesh, 0);
  EXPECT_TRUE(second.keeper.taken().empty());
  EXPECT_FALSE(second.keeper.take("w", kWeight));
}

TEST_F(StateKeeperTest, FindsTheVersionThatTheJobGoesOnAt) {
  auto weight = first.update("w", kWeight);
  const std::uint64_t at_one = weight->block_offset();
  first.keeper.write(1);
  weight = first.update("w", kWeight);
  ASSERT_NE(weight->block_offset(), at_one);
  first.keeper.write(2);
  EXPECT_EQ(Process(memory, mesh, 2).offset_of("w", kWeight), weight->block_offset());
  testing::expect_error(Errc::corrupt, {"chip 0", "step 1"}, [&] { Process(memory, mesh, 1); });
}

TEST_F(StateKeeperTest, WhatIsFoundIsNotAllocatedToAnother) {
  const auto padding = first.pool->allocate(64, BufferPool::kDeviceWrites);
  const auto weight = first.update("w", kWeight);
  first.keeper.write(1);
  Process second(memory, mesh, 1);
  EXPECT_EQ(second.pool->allocate_state(64), padding) << "what isn't state is free";
  for (int i = 0; i < 100; ++i) {
    EXPECT_GE(second.pool->allocate_state(64), weight->block_offset() + 128);
  }
}

TEST_F(StateKeeperTest, ForgetsWhatNobodyHasAnyMore) {
  const auto kept = first.update("kept", kScalar);
  first.update("dropped", kWeight);
  const auto last = first.update("last", kWeight);
  EXPECT_TRUE(first.keeper.write(1));
  Process second(memory, mesh, 1);
  EXPECT_FALSE(second.keeper.take("dropped", kWeight));
  EXPECT_EQ(second.offset_of("kept", kScalar), kept->block_offset());
  EXPECT_EQ(second.offset_of("last", kWeight), last->block_offset());
}

TEST_F(StateKeeperTest, GivesOutWhatIsStillHad) {
  const auto weight = first.update("w", kWeight);
  auto count = first.update("t", kScalar);
  EXPECT_EQ(first.keeper.live().size(), 2U);
  count.reset();  // another tensor may reuse the block of `count`
  const auto live = first.keeper.live();
  ASSERT_EQ(live.size(), 1U);
  EXPECT_EQ(live[0].name, "w");
  EXPECT_EQ(live[0].type, kWeight);
  EXPECT_EQ(live[0].offsets, std::vector(2, weight->block_offset()));
}

TEST_F(StateKeeperTest, KnowsThePlacesOfTheRestOnceItHasForgottenOne) {
  first.update("dropped", kWeight);
  auto weight = first.update("w", kWeight);
  first.keeper.write(1);
  weight = first.update("w", kWeight);
  const auto added = first.update("added", kScalar);
  first.keeper.write(2);
  Process second(memory, mesh, 2);
  EXPECT_EQ(second.offset_of("w", kWeight), weight->block_offset());
  EXPECT_EQ(second.offset_of("added", kScalar), added->block_offset());
}

TEST_F(StateKeeperTest, SaysWhetherAStepsStateLiesElsewhere) {
  auto weight = first.update("w", kWeight);
  EXPECT_TRUE(first.keeper.write(1));
  EXPECT_FALSE(first.keeper.write(2));
  weight = first.update("w", kWeight);
  EXPECT_TRUE(first.keeper.write(3));
  EXPECT_FALSE(first.keeper.write(4));
  weight.reset();
  EXPECT_TRUE(first.keeper.write(5));
}

TEST_F(StateKeeperTest, ARevisionIsOfNamesTypesAndShardings) {
  auto weight = first.update("w", kWeight);
  auto count = first.update("t", kScalar);
  const std::uint64_t begin = first.keeper.revision();
  weight = first.update("w", kWeight);
  first.keeper.write(1);
  EXPECT_EQ(first.keeper.revision(), begin) << "only its place has changed";
  const auto changes = [&](const auto& change) {
    const std::uint64_t before = first.keeper.revision();
    change();
    return first.keeper.revision() != before;
  };
  EXPECT_TRUE(changes([&] { weight = first.update("w", {DType::bf16, {8, 4}}); }));
  Sharding by_data;
  by_data.dims[0] = AtomList{1};
  EXPECT_TRUE(changes([&] { weight = first.update("w", {DType::bf16, {8, 4}}, by_data); }));
  count.reset();
  EXPECT_TRUE(changes([&] { first.keeper.write(3); })) << "forgotten";
  EXPECT_TRUE(changes([&] { count = first.update("t", kScalar); }));
  Process second(memory, mesh, 3);
  EXPECT_EQ(second.offset_of("w", {DType::bf16, {8, 4}}), weight->block_offset());
}

/// A loop makes its parameters one by one and may run a step before it has made all, so the next
/// processes keep finding state that nobody has taken yet.
TEST_F(StateKeeperTest, WhatWasFoundIsKeptUntilItIsAskedFor) {
  const auto weight = first.update("w", kWeight);
  const auto moment = first.update("m", kWeight);
  first.keeper.write(1);
  Process second(memory, mesh, 1);
  second.keeper.take("w", kWeight);
  const auto next = second.update("w", kWeight);
  second.keeper.write(2);
  Process third(memory, mesh, 2);
  EXPECT_EQ(third.offset_of("w", kWeight), next->block_offset());
  EXPECT_EQ(third.offset_of("m", kWeight), moment->block_offset());
}

/// Two workers with two chips each. Of the chips with replicas of a shard, only one doesn't
/// overwrite the previous version.
class StateOfTwoWorkers : public StateKeeperTest {
 protected:
  static constexpr std::uint64_t kStep = 5;
  Process worker(int index, std::uint64_t resume_step = 0) {
    return {two, grid, resume_step, {2 * index, 2 * index + 1}};
  }
  float* shard(int chip, std::uint64_t offset) {
    return reinterpret_cast<float*>(two.arena(chip) + offset);
  }
  void fill(int chip, const ArenaBuffer& buffer, float value) {
    const std::int64_t bytes = chip_type(buffer.type(), buffer.sharding(), grid).bytes();
    std::fill_n(shard(chip, buffer.block_offset()), bytes / 4, value);
  }
  /// Returns the chips that don't overwrite the previous version of the tensor.
  std::vector<int> keepers(const std::string& name, const Sharding& sharding) {
    std::vector<int> keepers;
    for (const int index : {0, 1}) {
      const ChipSet overwriters = worker(index).keeper.overwriters(name, sharding);
      for (const int chip : {0, 1}) {
        const bool writes_over = !overwriters.empty() && overwriters[std::size_t(chip)];
        if (!writes_over) keepers.push_back(2 * index + chip);
      }
    }
    return keepers;
  }
  static Sharding over(std::initializer_list<Atom> atoms) {
    Sharding sharding;
    sharding.dims[0] = AtomList(atoms);
    return sharding;
  }

  const Mesh grid{{2, 2}, {"data", "model"}};
  JobMemory two =
      JobMemory::anonymous({.job = "", .num_chips = 4, .arena_capacity = std::size_t{1} << 20});
};

TEST_F(StateOfTwoWorkers, OneKeepsWhatSeveralHold) {
  std::array<int, 4> kept{};
  for (int i = 0; i < 100; ++i) {
    const std::string name = "w" + std::to_string(i);
    const auto whole = keepers(name, Sharding::closed());
    ASSERT_EQ(whole.size(), 1U) << name;
    ++kept[static_cast<std::size_t>(whole[0])];
    const auto by_model = keepers(name, over({2}));
    ASSERT_EQ(by_model.size(), 2U) << name;
    EXPECT_NE(by_model[0] % 2, by_model[1] % 2) << name;
  }
  for (const int count : kept) {
    EXPECT_GT(count, 10);
    EXPECT_LT(count, 40);
  }
}

TEST_F(StateOfTwoWorkers, EachKeepsWhatItAloneHolds) {
  const std::vector<int> all{0, 1, 2, 3};
  for (const Sharding& sharding : {over({1, 2}), over({2, 1})}) {
    EXPECT_EQ(keepers("w", sharding), all);
    EXPECT_TRUE(worker(0).keeper.overwriters("w", sharding).empty());
  }
}

/// Chip c has shard c % 2. A chip that has overwritten its replica of the version copies the
/// version from the chip that keeps it.
TEST_F(StateOfTwoWorkers, WhoKeepsNoVersionCopiesIt) {
  const Sharding by_model = over({2});
  for (int i = 0; i < 16; ++i) {
    SCOPED_TRACE(i);
    const std::string name = "w" + std::to_string(i);
    const std::vector<int> kept_by = keepers(name, by_model);
    std::array<std::uint64_t, 2> offsets{};
    {
      std::array<Process, 2> workers{worker(0), worker(1)};
      // The version may be at different offsets in the workers' arenas.
      const auto more = workers[1].update("more", kWeight, over({1, 2}));
      for (int w = 0; w < 2; ++w) {
        Process& process = workers[static_cast<std::size_t>(w)];
        const auto weight = process.update(name, kWeight, by_model);
        offsets[static_cast<std::size_t>(w)] = weight->block_offset();
        for (const int model : {0, 1}) {
          const int chip = 2 * w + model;
          const bool keeps = std::ranges::count(kept_by, chip) > 0;
          fill(chip, *weight, keeps ? 1.0F + static_cast<float>(model) : 99.0F);
        }
        process.keeper.write(kStep);
      }
      EXPECT_NE(offsets[0], offsets[1]);
    }
    std::array<Process, 2> again{worker(0, kStep), worker(1, kStep)};
    for (const int chip : {0, 1, 2, 3}) {
      const auto w = static_cast<std::size_t>(chip / 2);
      const float* elements = shard(chip, offsets[w]);
      EXPECT_EQ(elements[0], 1.0F + static_cast<float>(chip % 2)) << chip;
      EXPECT_EQ(elements[15], elements[0]) << chip;
    }
    for (Process& process : again) EXPECT_TRUE(process.keeper.take(name, kWeight));
  }
}

TEST_F(StateOfTwoWorkers, WhatItsKeeperHasDroppedIsForgotten) {
  std::array<Process, 2> workers{worker(0), worker(1)};
  const int keeper = keepers("w", Sharding::closed())[0] / 2;
  Process& other = workers[static_cast<std::size_t>(1 - keeper)];
  workers[static_cast<std::size_t>(keeper)].update("w", kWeight);
  const auto weight = other.update("w", kWeight);
  const auto alone = other.update("alone", kWeight, over({1, 2}));
  const std::array shards{workers[0].update("shards", kWeight, over({1, 2})),
                          workers[1].update("shards", kWeight, over({1, 2}))};
  for (Process& process : workers) process.keeper.write(kStep);
  Process again = worker(1 - keeper, kStep);
  EXPECT_FALSE(again.keeper.take("w", kWeight));
  EXPECT_FALSE(again.keeper.take("alone", kWeight)) << "the other worker has lost its shards";
  EXPECT_TRUE(again.keeper.take("shards", kWeight));
}

TEST_F(StateOfTwoWorkers, WhatItsKeeperAloneHasIsForgottenToo) {
  std::array<Process, 2> workers{worker(0), worker(1)};
  const int keeper = keepers("w", Sharding::closed())[0] / 2;
  const auto weight = workers[static_cast<std::size_t>(keeper)].update("w", kWeight);
  for (Process& process : workers) process.keeper.write(kStep);
  EXPECT_FALSE(worker(keeper, kStep).keeper.take("w", kWeight));
}

TEST_F(StateOfTwoWorkers, SaysWhichDirectoryDoesNotKnowTheStep) {
  Process only = worker(1);
  const auto weight = only.update("w", kWeight);
  only.keeper.write(kStep);
  expect_error(Errc::corrupt, {"chip 0", "step 5"}, [&] { worker(1, kStep); });
}

/// The hash that compares replicas covers each chip's elements, which may be at different offsets.
TEST_F(StateOfTwoWorkers, GivesOutWhereEachChipHasIt) {
  Process process = worker(0);
  auto now = process.update("w", kWeight);
  const auto next = process.update("w", kWeight);
  const std::uint64_t before = now->block_offset();
  next->replaces(std::move(now), 1, {true, false});
  const auto live = process.keeper.live();
  ASSERT_EQ(live.size(), 1U);
  EXPECT_EQ(live[0].offsets, (std::vector{before, next->block_offset()}));
}

}  // namespace
}  // namespace weft::state_keeper_test
