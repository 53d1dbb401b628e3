// Tests AcceleratorEngine on the fake plug-in: its copies, commits and errors.
#include "chips/accelerator/accelerator_engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "chips/accelerator/accelerator_target.hpp"
#include "chips/engine/state_hash.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_pjrt/loaded_fake.hpp"
#include "tests/support/small_shm.hpp"
#include "transport/state/commits.hpp"

namespace weft::accelerator_engine_test {
namespace {

using testing::EngineMesh;
using testing::expect_error;
using testing::FakeRun;
using testing::LoadedFake;
using testing::MeshPlan;

const Mesh kPair({2}, {"data"});
constexpr std::size_t kWeights = 256, kCounts = 16;
constexpr std::size_t kWeightBytes = kWeights * sizeof(float),
                      kCountBytes = kCounts * sizeof(float);

/// A program that updates weights and counts. It has an all_reduce, so both chips run it together.
constexpr std::string_view kStep = R"(program(
    %0: f32[512] data "x" [{"data"}], %1: f32[256] param "w" [{}],
    %2: f32[16] opt_state "count" [{}]) {
  %3 = add %2, %2 : f32[16]
  %4 = reshape %0 : f32[2,256]
  %5 = reduce %4 {kind = add, dims = [0]} : f32[256]
  %6 = add %1, %5 : f32[256]
  %7 = add %2, %3 : f32[16]
  return %6 "w" [{}] updates 1, %7 "count" [{}] updates 2
})";

/// Returns the plug-in that all tests share, because a process makes one client for a kind of chip.
LoadedFake& fake() {
  static LoadedFake loaded;
  return loaded;
}

/// Simulates a step, in place of the program: adds 7 to the weights and 1 to the counts.
void compute(const FakeRun& run) {
  const auto add = [&](std::size_t argument, std::size_t result, float more) {
    std::ranges::transform(run.arguments[argument].floats(), run.results[result].floats().begin(),
                           [more](float value) { return value + more; });
  };
  add(1, 0, 7);
  add(2, 1, 1);
}

std::unique_ptr<Engine> make_engine(testing::EngineSetup setup) {
  return std::make_unique<AcceleratorEngine>(DeviceKind::pjrt_mirrored, setup.memory, setup.mesh,
                                             setup.position, setup.board, setup.policy,
                                             setup.local_index);
}

/// Two chips. Chip 0 keeps versions of the weights, and chip 1 of the counts. Each chip overwrites
/// the tensor that the other one keeps.
class AcceleratorEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("WEFT_PJRT_PLUGIN", fake().path().c_str(), 1);
    fake()->holds_copies = false;
    fake()->errors.clear();
    fake()->memory_limit_bytes = 0;
    chips_.emplace(kPair, testing::EngineMeshOptions{.make = make_engine,
                                                     .timeout = std::chrono::milliseconds(20'000)});
    fake()->modules["weft_step"] = compute;
    const Plan plan = compile(parse_program(std::string(kStep), kPair), kPair, kPjrtMirroredTarget);
    plan_ = chips_->load(plan);
    std::uint64_t place = plan_.buffers.outputs.back() + 4096;
    chips_->engine(0).reserve(place, 4096);
    chips_->engine(1).reserve(place, 4096);
    const auto& in = plan_.buffers.inputs;
    buffers_[0] = {.inputs = in, .outputs = {place, in[2]}};
    buffers_[1] = {.inputs = in, .outputs = {in[1], place}};
    for (int chip = 0; chip < 2; ++chip) {
      write(chip, in[0], std::vector<float>(kWeights, 1));
      write(chip, in[1], std::vector<float>(kWeights, 10));
      write(chip, in[2], std::vector<float>(kCounts, 0));
    }
  }
  void TearDown() override {
    plan_ = {};
    chips_.reset();
    EXPECT_EQ(fake()->misuses, std::vector<std::string>{});
  }

  void write(int chip, std::uint64_t offset, const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    chips_->engine(chip).upload(offset, bytes.size(),
                                [&](std::byte* to) { std::ranges::copy(bytes, to); });
  }
  /// Runs a step on both chips, on a thread for each. Then makes the step's outputs the next step's
  /// inputs.
  void run(std::uint64_t step, std::uint64_t commit) {
    std::vector<std::jthread> threads;
    for (int chip = 0; chip < 2; ++chip) {
      threads.emplace_back([this, chip, step, commit] {
        chips_->engine(chip).run(plan_.chips[static_cast<std::size_t>(chip)], step,
                                 buffers_[static_cast<std::size_t>(chip)], {.step = commit});
      });
    }
    threads.clear();
    turn();
  }
  void turn() {
    std::swap(buffers_[0].inputs[1], buffers_[0].outputs[0]);
    std::swap(buffers_[1].inputs[2], buffers_[1].outputs[1]);
  }
  /// Returns the first float at `offset` in the chip's arena, even if the device has a newer one.
  float in_arena(int chip, std::uint64_t offset) {
    float value = 0;
    std::memcpy(&value, chips_->memory().arena(chip) + offset, sizeof value);
    return value;
  }
  float on_chip(int chip, std::uint64_t offset) {
    float value = 0;
    chips_->engine(chip).download(offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  std::optional<EngineMesh> chips_;
  MeshPlan plan_;
  std::array<RunBuffers, 2> buffers_;
};

TEST_F(AcceleratorEngineTest, MirrorsEachTensorOnceOnTheChipThatKeepsIt) {
  run(0, 0);
  EXPECT_EQ(common_step(chips_->memory()), 0U);
  for (std::uint64_t step = 1; step <= 4; ++step) {
    fake()->bytes_to_host = 0;
    const std::uint64_t weights = buffers_[0].inputs[1];
    const std::uint64_t counts = buffers_[1].inputs[2];
    run(step, step);
    EXPECT_EQ(fake()->bytes_to_host, kWeightBytes + kCountBytes);
    EXPECT_EQ(common_step(chips_->memory()), step);
    // The arena has the committed version, and the devices have the next version.
    EXPECT_EQ(in_arena(0, weights), 10 + 7 * static_cast<float>(step));
    EXPECT_EQ(in_arena(1, counts), static_cast<float>(step));
    for (int chip = 0; chip < 2; ++chip) {
      const RunBuffers& buffers = buffers_[static_cast<std::size_t>(chip)];
      EXPECT_EQ(on_chip(chip, buffers.inputs[1]), 10 + 7 * static_cast<float>(step + 1));
      EXPECT_EQ(on_chip(chip, buffers.inputs[2]), static_cast<float>(step + 1));
    }
  }
}

TEST_F(AcceleratorEngineTest, KeepsTheVersionBeforeUntilTheNextHasLanded) {
  run(0, 0);
  run(1, 1);
  const std::uint64_t before = buffers_[0].outputs[0];  // has version 1, then version 3
  ASSERT_EQ(in_arena(0, before), 17);
  fake()->holds_copies = true;
  std::jthread second([this] { run(2, 2); });
  while (fake()->held() < 2) std::this_thread::yield();  // both chips are copying version 2
  EXPECT_EQ(common_step(chips_->memory()), 1U);
  EXPECT_EQ(in_arena(0, before), 17);
  fake()->release();
  second.join();
  EXPECT_EQ(common_step(chips_->memory()), 2U);
}

TEST_F(AcceleratorEngineTest, MirrorsNothingBetweenTheRunsOfAStep) {
  run(0, 0);
  run(1, 1);
  fake()->bytes_to_host = 0;
  run(1, 1);
  EXPECT_EQ(fake()->bytes_to_host, 0U);
  run(2, 2);
  EXPECT_EQ(fake()->bytes_to_host, kWeightBytes + kCountBytes);
}

TEST_F(AcceleratorEngineTest, TakesWhatTheHostWritesBetweenRuns) {
  run(0, 0);
  write(0, buffers_[0].inputs[1], std::vector<float>(kWeights, 100));
  EXPECT_EQ(on_chip(0, buffers_[0].inputs[1]), 100);
  run(1, 1);
  EXPECT_EQ(on_chip(0, buffers_[0].inputs[1]), 107);
}

TEST_F(AcceleratorEngineTest, HashesWhatTheDeviceHas) {
  run(0, 0);
  const std::vector<std::uint64_t> offsets{buffers_[0].inputs[1], buffers_[1].inputs[1]};
  StateHash hash(1, {{"w", {DType::f32, {kWeights}}, Sharding::closed(), offsets}}, kPair, {0, 1},
                 [](const StateHash&) {});
  for (int chip = 0; chip < 2; ++chip) chips_->engine(chip).add_to(hash);
  EXPECT_EQ(hash.hash(0, 0), hash.hash(0, 1));
}

TEST_F(AcceleratorEngineTest, SaysHowMuchMemoryIsNeededAndThere) {
  fake()->memory_limit_bytes = 4096;
  const auto run_first = [&] {
    chips_->engine(0).start(plan_.chips[0], 1, buffers_[0], {});
    chips_->engine(1).start(plan_.chips[1], 1, buffers_[1], {});
    chips_->engine(0).wait();
  };
  fake()->errors["PJRT_Client_BufferFromHostBuffer"] = {8, "Out of memory"};
  expect_error(Errc::no_space,
               {"a tensor f32[256] needs 1024 bytes on device 0", "4096 bytes 1024 are used",
                "smaller batches", "Out of memory"},
               run_first);
}

TEST_F(AcceleratorEngineTest, SaysWhatARunNeeds) {
  fake()->errors["PJRT_LoadedExecutable_Execute"] = {8, "Out of memory"};
  chips_->engine(0).start(plan_.chips[0], 5, buffers_[0], {});
  chips_->engine(1).start(plan_.chips[1], 5, buffers_[1], {});
  for (int chip = 0; chip < 2; ++chip) {
    expect_error(Errc::no_space,
                 {"a run of step 5 needs ", fmt::format("on device {}", chip), "doesn't say"},
                 [&] { chips_->engine(chip).wait(); });
  }
}

TEST_F(AcceleratorEngineTest, SaysThatTheHostHasTooLittleMemoryForTheMirror) {
  testing::in_own_shm("size=16m", [] {
    JobMemory memory = JobMemory::create({.job = std::string(32, 'e'), .num_chips = 1});
    const Mesh one({1}, {"data"});
    AcceleratorEngine engine(DeviceKind::pjrt_mirrored, memory, one, 0, Recorder(), WaitPolicy());
    expect_error(Errc::no_space,
                 {"needs 33554432 bytes", "/dev/shm has", "remount", "state_versions is 1"},
                 [&] { engine.reserve(memory.buffers_offset(), std::size_t{32} << 20); });
    JobMemory::remove(std::string(32, 'e'));
  });
}

TEST_F(AcceleratorEngineTest, HasThePluginsWordsForAProgramThatItRefuses) {
  fake()->errors["PJRT_Client_Compile"] = {3, "error: op is illegal: train.cpp:41"};
  const Plan other = compile(parse_program(R"(program(%0: f32[4] data "x" [{}]) {
  %1 = add %0, %0 : f32[4]
  return %1 "y" [{}]
})",
                                           kPair),
                             kPair, kPjrtMirroredTarget);
  expect_error(Errc::invalid_argument, {"fake_plugin.so", "op is illegal: train.cpp:41"},
               [&] { chips_->load(other); });
}

}  // namespace
}  // namespace weft::accelerator_engine_test
