#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "actors/runtime/arena_buffer.hpp"
#include "actors/runtime/buffer_pool.hpp"
#include "spmd/mesh/shard_copy.hpp"
#include "tests/support/arena_pool.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/random_program.hpp"

namespace weft::worker_memory_test {
namespace {

JobMemory memory() {
  return JobMemory::anonymous({.job = "", .num_chips = 2, .arena_capacity = std::size_t{1} << 24});
}

TEST(BufferPool, BlocksAreAlignedAndDistinct) {
  JobMemory job = memory();
  testing::ArenaPool pool(job, {0, 1});
  const auto a = pool.allocate(1, BufferPool::kDeviceWrites);
  const auto b = pool.allocate(100, BufferPool::kDeviceWrites);
  EXPECT_EQ(a % 64, 0U);
  EXPECT_EQ(b, a + 64);
  EXPECT_EQ(pool.allocate(1, 0), b + 128);
}

TEST(BufferPool, BlocksThatOtherThreadsFreeAreUsedAgain) {
  JobMemory job = memory();
  testing::ArenaPool pool(job, {0, 1});
  const auto block = pool.allocate(100, BufferPool::kDeviceWrites);
  const auto state = pool.allocate_state(100);
  const auto array = pool.allocate_array(100);
  std::vector<std::jthread> threads;
  threads.emplace_back([&] { pool.free(block, 100, 1); });
  threads.emplace_back([&] { pool.free_state(state, 100, 1); });
  threads.emplace_back([&] { pool.free_array(array, 100); });
  threads.clear();
  EXPECT_EQ(pool.allocate(100, BufferPool::kDeviceWrites), block);
  pool.begin_step(1);
  EXPECT_EQ(pool.allocate_state(100), state);
  EXPECT_EQ(pool.allocate_array(100), array);
}

TEST(BufferPool, ManyThreadsMayFree) {
  JobMemory job = memory();
  testing::ArenaPool pool(job, {0});
  constexpr int kBlocks = 2000;
  std::vector<std::uint64_t> blocks;
  for (int i = 0; i < kBlocks; ++i) blocks.push_back(pool.allocate(64, BufferPool::kDeviceWrites));
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < kBlocks; i += 4) pool.free(blocks[i], 64, 0);
    });
  }
  std::set<std::uint64_t> again;
  for (int i = 0; i < kBlocks; ++i) again.insert(pool.allocate(64, BufferPool::kDeviceWrites));
  EXPECT_EQ(again.size(), std::size_t{kBlocks}) << "none is given out twice";
}

TEST(BufferPool, ArraysLieWhereTheyDoWhateverBuffersThereAre) {
  JobMemory job = memory();
  testing::ArenaPool one(job, {0});
  testing::ArenaPool other(job, {1});
  other.allocate(1000, BufferPool::kDeviceWrites);
  for (const std::int64_t bytes : {100, 1 << 20, 64}) {
    EXPECT_EQ(one.allocate_array(bytes), other.allocate_array(bytes));
  }
  const std::uint64_t array = one.allocate_array(64);
  const std::uint64_t last = one.allocate_array(1000);
  EXPECT_EQ(array % 64, 0U);
  one.free_array(last, 1000);
  EXPECT_EQ(one.allocate_array(2048) + 2048, array) << "the last one's memory is free";
  one.free_array(array, 64);
  EXPECT_NE(one.allocate(64, BufferPool::kDeviceWrites), array);
  EXPECT_EQ(one.allocate_array(64), array);
}

TEST(BufferPool, BuffersAndArraysShareTheRoom) {
  JobMemory job = memory();
  testing::ArenaPool pool(job, {0});
  pool.allocate(5 << 20, BufferPool::kDeviceWrites);
  pool.allocate_array(2 << 20);
  testing::expect_error(Errc::no_space, {"an array of 2097152 bytes", "8388608", "7340032"},
                        [&] { pool.allocate_array(2 << 20); });
  testing::expect_error(Errc::no_space, {"a buffer of 2097152 bytes"},
                        [&] { pool.allocate(2 << 20, BufferPool::kDeviceWrites); });
  pool.allocate(1 << 20, BufferPool::kDeviceWrites);
}

TEST(BufferPool, TheHostGetsABlockOnlyAfterItsLastRun) {
  JobMemory job = memory();
  testing::ArenaPool pool(job, {0});
  const auto block = pool.allocate(64, BufferPool::kDeviceWrites);
  pool.free(block, 64, 5);
  EXPECT_NE(pool.allocate(64, 4), block);
  EXPECT_EQ(pool.allocate(64, 5), block);
}

TEST(BufferPool, ADeviceMayWriteAfterItsOwnLastRead) {
  JobMemory job = memory();
  testing::ArenaPool pool(job, {0});
  const auto block = pool.allocate(64, BufferPool::kDeviceWrites);
  pool.free(block, 64, 5);
  EXPECT_EQ(pool.allocate(64, BufferPool::kDeviceWrites), block);
}

TEST(BufferPool, SaysWhenTheArenaIsFull) {
  JobMemory job = memory();
  testing::ArenaPool pool(job, {0});
  testing::expect_error(Errc::no_space, {"arena", "16777216"},
                        [&] { pool.allocate(16777216, BufferPool::kDeviceWrites); });
}

TEST(BufferPool, StateThatIsFreedStaysForTheRestOfItsStep) {
  JobMemory job = memory();
  testing::ArenaPool pool(job, {0});
  pool.begin_step(3);
  const auto block = pool.allocate_state(64);
  pool.free_state(block, 64, 1);
  EXPECT_NE(pool.allocate_state(64), block);
  pool.begin_step(4);
  EXPECT_NE(pool.allocate_state(128), block);
  EXPECT_EQ(pool.allocate_state(64), block);
  EXPECT_NE(pool.allocate_state(64), block);
}

TEST(BufferPool, TheHostGetsStateOnceNobodyCanGoBackToIt) {
  JobMemory job = memory();
  testing::ArenaPool pool(job, {0});
  pool.begin_step(3);
  const auto block = pool.allocate_state(64);
  pool.free_state(block, 64, 5);
  pool.begin_step(9);
  EXPECT_NE(pool.allocate_state_for_host(64, 3, 9), block) << "version 3 is what all would go to";
  EXPECT_NE(pool.allocate_state_for_host(64, 4, 4), block) << "run 5 still reads it";
  EXPECT_EQ(pool.allocate_state_for_host(64, 4, 5), block);
}

class Versions : public ::testing::Test {
 protected:
  using Version = std::shared_ptr<ArenaBuffer>;
  Version version() {
    return std::make_shared<ArenaBuffer>(TensorType{DType::f32, {16}}, Sharding::closed(), pool,
                                         BlockKind::state, pool->allocate_state(64), 64);
  }
  /// Returns the next version, which a run in `step` writes.
  Version update(const Version& now, std::uint64_t step, const ChipSet& overwriters = {}) {
    pool->begin_step(step);
    Version next = now->take_before(step, overwriters);
    if (next == nullptr) next = version();
    next->replaces(now, step, overwriters);
    return next;
  }

  JobMemory job = memory();
  std::shared_ptr<BufferPool> pool = std::make_shared<testing::ArenaPool>(job, std::vector{0, 1});
};

TEST_F(Versions, TwoBuffersTakeTurns) {
  Version now = version();
  const std::uint64_t even = now->block_offset();
  now = update(now, 1);
  const std::uint64_t odd = now->block_offset();
  EXPECT_NE(odd, even);
  for (std::uint64_t step = 2; step < 10; ++step) {
    now = update(now, step);
    EXPECT_EQ(now->block_offset(), step % 2 == 0 ? even : odd);
  }
}

TEST_F(Versions, WhatAStepBeganWithStaysThroughIt) {
  Version now = version();
  for (std::uint64_t step = 1; step < 10; ++step) {
    const std::uint64_t begin = now->block_offset();
    for (int run = 0; run < 3; ++run) {
      now = update(now, step);
      EXPECT_NE(now->block_offset(), begin) << step;
    }
  }
}

TEST_F(Versions, ThatOneStillHasIsNotWrittenOver) {
  Version now = version();
  const Version kept = now;
  for (std::uint64_t step = 1; step < 10; ++step) {
    now = update(now, step);
    EXPECT_NE(now->block_offset(), kept->block_offset()) << step;
  }
}

TEST_F(Versions, TheirBlocksAreFreeOnceTheLastIsDropped) {
  Version now = version();
  std::set<std::uint64_t> taken{now->block_offset()};
  for (std::uint64_t step = 1; step < 4; ++step) {
    now = update(now, step);
    taken.insert(now->block_offset());
  }
  now.reset();
  pool->begin_step(4);
  const std::set<std::uint64_t> again{pool->allocate_state(64), pool->allocate_state(64)};
  EXPECT_EQ(again, taken);
}

/// Here chip 1 may overwrite its replica of a version, and chip 0 keeps its own.
class VersionsOfTwoChips : public Versions {
 protected:
  const ChipSet one{false, true};
};

TEST_F(VersionsOfTwoChips, WhoWritesOverItStaysWhereItIs) {
  Version now = version();
  const std::uint64_t even = now->block_offset();
  now = update(now, 1, one);
  const std::uint64_t odd = now->block_offset();
  EXPECT_NE(odd, even);
  for (std::uint64_t step = 2; step < 10; ++step) {
    now = update(now, step, one);
    EXPECT_EQ(now->offset(0), step % 2 == 0 ? even : odd);
    EXPECT_EQ(now->offset(1), even);
  }
  EXPECT_TRUE(now->may_overwrite(one));
  EXPECT_FALSE(now->may_overwrite({true, false})) << "they have it in different blocks";
}

/// The host gets a version's block only when the last run that uses the block has ended, even if a
/// chip overwrites the version.
TEST_F(VersionsOfTwoChips, RunsUseWhatIsWrittenOverToo) {
  Version now = version();
  const std::uint64_t even = now->block_offset();
  now->used_by(1);
  now = update(now, 1, one);
  now->used_by(7);
  now.reset();
  pool->begin_step(9);
  EXPECT_NE(pool->allocate_state_for_host(64, 9, 6), even);
  EXPECT_EQ(pool->allocate_state_for_host(64, 9, 7), even);
}

/// A chip may not write to memory of a tensor with a handle, of another tensor, or of the version
/// with which the step began if the chip keeps that version.
TEST_F(VersionsOfTwoChips, NothingIsWrittenOverThatIsStillNeeded) {
  using Places = std::array<std::uint64_t, 2>;
  const auto places_of = [](const Version& of) { return Places{of->offset(0), of->offset(1)}; };
  testing::Random random(5);
  std::array<Version, 2> tensors{version(), version()};
  std::vector<std::pair<Version, Places>> handles;
  for (std::uint64_t step = 1; step < 2000; ++step) {
    const std::array begin{tensors[0]->offset(0), tensors[1]->offset(0)};
    for (std::uint64_t runs = random.below(4); runs > 0; --runs) {
      Version& now = tensors[runs % 2];
      const Version& other = tensors[1 - runs % 2];
      const bool is_kept = random.one_in(4);
      if (is_kept) handles.emplace_back(now, places_of(now));
      const bool may = !is_kept && now->may_overwrite(one) && !random.one_in(4);
      now = update(now, step, may ? one : ChipSet());
      EXPECT_NE(now->offset(0), begin[0]) << step;
      EXPECT_NE(now->offset(0), begin[1]) << step;
      for (const std::size_t chip : {0, 1}) {
        EXPECT_NE(now->offset(chip), other->offset(chip)) << step;
        for (const auto& [handle, places] : handles) {
          EXPECT_EQ(handle->offset(chip), places[chip]) << step;
          EXPECT_NE(now->offset(chip), places[chip]) << step;
        }
      }
      if (!handles.empty() && random.one_in(3)) {
        handles.erase(handles.begin() + static_cast<std::ptrdiff_t>(random.below(handles.size())));
      }
    }
  }
}

TEST(BufferPool, StateAndOthersNeverChangePlaces) {
  JobMemory job = memory();
  testing::ArenaPool pool(job, {0});
  const auto state = pool.allocate_state(64);
  const auto plain = pool.allocate(64, BufferPool::kDeviceWrites);
  pool.free_state(state, 64, 1);
  pool.free(plain, 64, 1);
  pool.begin_step(1);
  EXPECT_EQ(pool.allocate(64, BufferPool::kDeviceWrites), plain);
  EXPECT_NE(pool.allocate(64, BufferPool::kDeviceWrites), state);
  EXPECT_EQ(pool.allocate_state(64), state);
}

TEST(BufferPool, FillsTheGapsFirst) {
  JobMemory job = memory();
  const std::uint64_t base = job.buffers_offset();
  testing::ArenaPool pool(job, {0}, {{base + 256, base + 320}, {base + 128, base + 192}});
  const auto allocate = [&](std::int64_t bytes) {
    return pool.allocate(bytes, BufferPool::kDeviceWrites) - base;
  };
  EXPECT_EQ(allocate(64), 0U);
  EXPECT_EQ(allocate(128), 320U) << "too large for any gap";
  EXPECT_EQ(allocate(1), 64U);
  EXPECT_EQ(pool.allocate_state(64) - base, 192U);
  EXPECT_EQ(allocate(64), 448U);
}

TEST(BufferPool, NeverGivesOutWhatIsTaken) {
  JobMemory job = memory();
  std::mt19937 chance(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<BufferPool::Range> used;
    for (int i = 0; i < 10; ++i) {
      const std::uint64_t begin = job.buffers_offset() + 64 * (chance() % 100);
      used.push_back(BufferPool::block(begin, 1 + chance() % 500));
    }
    testing::ArenaPool pool(job, {0, 1}, used);
    for (int i = 0; i < 50; ++i) {
      const auto bytes = static_cast<std::int64_t>(1 + chance() % 500);
      const auto offset = pool.allocate(bytes, BufferPool::kDeviceWrites);
      const BufferPool::Range got = BufferPool::block(offset, bytes);
      ASSERT_GE(got.begin, job.buffers_offset());
      for (const BufferPool::Range& range : used) {
        // Only the first ten ranges in `used` may overlap each other.
        ASSERT_TRUE(got.end <= range.begin || got.begin >= range.end) << round << ", " << i;
      }
      used.push_back(got);
      std::memset(job.arena(1) + got.begin, 1, got.end - got.begin);
    }
  }
}

/// Compares copies of every box of a 3-d tensor, and of boxes that reach beyond it, with plain
/// indexing.
TEST(ShardCopy, CutsEveryBox) {
  const TensorType type{DType::i32, {3, 4, 5}};
  std::vector<std::int32_t> global(60);
  std::iota(global.begin(), global.end(), 0);
  const auto check = [&](std::array<std::int64_t, 3> offsets, std::array<std::int64_t, 3> sizes) {
    std::vector<std::int32_t> shard(static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2]), -1);
    copy_shard(type, reinterpret_cast<const std::byte*>(global.data()), {offsets, sizes},
               reinterpret_cast<std::byte*>(shard.data()));
    std::size_t at = 0;
    for (std::int64_t i = 0; i < sizes[0]; ++i) {
      for (std::int64_t j = 0; j < sizes[1]; ++j) {
        for (std::int64_t k = 0; k < sizes[2]; ++k) {
          const std::array at_dim{offsets[0] + i, offsets[1] + j, offsets[2] + k};
          const bool inside = at_dim[0] < 3 && at_dim[1] < 4 && at_dim[2] < 5;
          const std::int64_t index = (at_dim[0] * 4 + at_dim[1]) * 5 + at_dim[2];
          ASSERT_EQ(shard[at++], inside ? global[static_cast<std::size_t>(index)] : 0);
        }
      }
    }
  };
  for (std::int64_t a = 0; a < 3; ++a) {
    for (std::int64_t b = 0; b < 4; ++b) {
      for (std::int64_t c = 0; c < 5; ++c) {
        for (std::int64_t x = 0; x <= 4 - a; ++x) {
          for (std::int64_t y = 0; y <= 6 - b; ++y) {
            for (std::int64_t z = 0; z <= 7 - c; ++z) check({a, b, c}, {x, y, z});
          }
        }
      }
    }
  }
}

TEST(ShardCopy, CopiesAScalar) {
  const float value = 2.5F;
  float copy = 0;
  copy_shard({DType::f32, {}}, reinterpret_cast<const std::byte*>(&value), {{}, {}},
             reinterpret_cast<std::byte*>(&copy));
  EXPECT_EQ(copy, 2.5F);
}

}  // namespace
}  // namespace weft::worker_memory_test
