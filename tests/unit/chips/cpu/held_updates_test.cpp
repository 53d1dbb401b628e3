/// Tests that a chip waits for other chips before it overwrites state from which they may resume.

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/plan/plan.hpp"
#include "tests/support/engine_mesh.hpp"

namespace weft::held_updates_test {
namespace {

using testing::EngineMesh;
using testing::MeshPlan;

constexpr std::uint64_t kCommit = 1;

/// Returns a program that adds 1 to `count` before its collective, and the sum of x to `w` after
/// the collective. `count` has `counts` elements.
Program step(const Mesh& mesh, std::int64_t counts) {
  Program program;
  Builder b(program);
  const TensorType pair{DType::f32, {2}};
  const TensorType count_type{DType::f32, {counts}};
  const ValueId x = program.add_input(pair, InputKind::data, "x",
                                      Sharding::from_spec(mesh, {{"data"}}, pair.shape, "x"));
  const ValueId count =
      program.add_input(count_type, InputKind::opt_state, "count", Sharding::closed());
  const ValueId w = program.add_input({DType::f32, {}}, InputKind::param, "w", Sharding::closed());
  const ValueId next = b.binary(OpKind::add, count, b.constant(1, count_type));
  const ValueId sum = b.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{0});
  program.add_output(next, "count", Sharding::closed(), 1);
  program.add_output(b.binary(OpKind::add, w, sum), "w", Sharding::closed(), 2);
  return program;
}

class HeldUpdates : public ::testing::Test {
 protected:
  void load(std::int64_t counts) {
    plan_ = chips_.load(compile(step(mesh_, counts), mesh_, kCpuTarget));
    for (int chip = 0; chip < 2; ++chip) {
      for (const std::uint64_t offset : plan_.buffers.outputs) at(chip, offset) = kOld;
      at(chip, plan_.buffers.inputs[0]) = chip == 0 ? 2.0F : 5.0F;
      at(chip, plan_.buffers.inputs[1]) = 3;
      at(chip, plan_.buffers.inputs[2]) = 10;
    }
  }
  void start(int chip) {
    chips_.engine(chip).start(plan_.chips[static_cast<std::size_t>(chip)], 1, plan_.buffers,
                              {.step = kCommit});
  }
  bool resume(int chip) { return chips_.engine(chip).poll(); }
  float& at(int chip, std::uint64_t offset) {
    return *reinterpret_cast<float*>(chips_.memory().arena(chip) + offset);
  }
  float count(int chip) { return at(chip, plan_.buffers.outputs[0]); }
  float w(int chip) { return at(chip, plan_.buffers.outputs[1]); }
  void expect_done() {
    for (int chip = 0; chip < 2; ++chip) {
      EXPECT_EQ(count(chip), 4) << chip;
      EXPECT_EQ(w(chip), 17) << chip;
    }
  }

  static constexpr float kOld = -7;
  const Mesh mesh_{{2}, {"data"}};
  EngineMesh chips_{mesh_};
  MeshPlan plan_;
};

TEST_F(HeldUpdates, AChipComesToTheCollectiveThoughOthersHaveNotBegun) {
  load(1);
  start(0);
  EXPECT_FALSE(resume(0));
  EXPECT_EQ(count(0), kOld) << "the other chip may go back to it";
  start(1);
  EXPECT_TRUE(resume(1)) << "chip 0 had not come as far as the collective";
  EXPECT_EQ(count(0), kOld) << "chip 0 has not been resumed";
  EXPECT_TRUE(resume(0));
  expect_done();
}

TEST_F(HeldUpdates, RunsBehindEachOtherHoldTheirOwn) {
  load(1);
  for (int run = 0; run < 3; ++run) {
    for (int chip = 0; chip < 2; ++chip) at(chip, plan_.buffers.outputs[0]) = kOld;
    start(0);
    start(1);
    EXPECT_FALSE(resume(0));
    EXPECT_TRUE(resume(1));
    EXPECT_TRUE(resume(0));
    expect_done();
  }
}

/// A run that comes with a new state directory must wait; otherwise the directory could run out of
/// slots.
TEST_F(HeldUpdates, ARunThatUpdatesNothingMayHaveToWaitForTheOthersCommits) {
  Program program;
  Builder b(program);
  const ValueId x = program.add_input({DType::f32, {2}}, InputKind::data, "x", Sharding::closed());
  program.add_output(b.binary(OpKind::add, x, x), "y", Sharding::closed());
  plan_ = chips_.load(compile(program, mesh_, kCpuTarget));
  const auto start_with = [&](int chip, RunCommit commit) {
    chips_.engine(chip).start(plan_.chips[static_cast<std::size_t>(chip)], 1, plan_.buffers,
                              commit);
  };
  start_with(0, {.step = kCommit, .is_awaited = true});
  EXPECT_FALSE(resume(0));
  start_with(1, {.step = kCommit});
  EXPECT_TRUE(resume(0));
  EXPECT_TRUE(resume(1));
  start_with(0, {.step = kCommit + 1});
  EXPECT_TRUE(resume(0)) << "nobody waits where that isn't asked for";
}

TEST_F(HeldUpdates, WhatIsTooLargeToHoldIsWaitedFor) {
  load(4096);
  start(0);
  EXPECT_FALSE(resume(0));
  start(1);
  EXPECT_FALSE(resume(1)) << "chip 0 can't have come to the collective";
  EXPECT_EQ(count(0), kOld);
  EXPECT_TRUE(resume(0));
  EXPECT_TRUE(resume(1));
  expect_done();
}

}  // namespace
}  // namespace weft::held_updates_test
