// Tests that each engine does everything that chips/engine/engine.hpp demands of a kind of chip.
// The engines are the CPU's, two for devices of a PJRT plug-in for CPUs (in the arena, and as if
// they had memory of their own), and two that run the reference interpreter. One of these two has
// a target that differs from the CPU's in every field.

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include <weft/sharding/chip.hpp>

#include "chips/accelerator/accelerator_engine.hpp"
#include "chips/accelerator/accelerator_target.hpp"
#include "chips/cpu/cpu_target.hpp"
#include "chips/engine/state_hash.hpp"
#include "chips/pjrt/pjrt_engine.hpp"
#include "chips/pjrt/pjrt_target.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/program/custom_function.hpp"
#include "spmd/program/element.hpp"
#include "spmd/text/text.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/random_program.hpp"
#include "tests/support/real_plugins.hpp"
#include "tests/support/reference_engine.hpp"

namespace weft::engine_test {
namespace {

using testing::EngineMesh;
using testing::EngineMeshOptions;
using testing::expect_error;
using testing::MakeEngine;
using testing::MeshPlan;
using testing::Random;

struct EngineKind {
  const char* name;
  MakeEngine make;
  const Target* target;
};

std::unique_ptr<Engine> make_pjrt_engine(testing::EngineSetup setup) {
  return std::make_unique<PjrtEngine>(setup.memory, setup.mesh, setup.position, setup.board,
                                      setup.policy, setup.local_index);
}

std::unique_ptr<Engine> make_mirrored_engine(testing::EngineSetup setup) {
  return std::make_unique<AcceleratorEngine>(DeviceKind::pjrt_mirrored, setup.memory, setup.mesh,
                                             setup.position, setup.board, setup.policy,
                                             setup.local_index);
}

/// Returns whether there is a plug-in: the one in WEFT_PJRT_PLUGIN, or the newest installed one.
bool has_plugin() {
  static const bool has = [] {
    if (const char* given = std::getenv("WEFT_PJRT_PLUGIN")) return std::filesystem::exists(given);
    const auto plugins = testing::real_plugins();
    if (!plugins.empty()) ::setenv("WEFT_PJRT_PLUGIN", plugins.front().path.c_str(), 1);
    return !plugins.empty();
  }();
  return has;
}

const Mesh kPair({2}, {"data"});

class EngineConformance : public ::testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    const bool needs_plugin = &target() == &kPjrtCpuTarget || &target() == &kPjrtMirroredTarget;
    if (needs_plugin && !has_plugin()) GTEST_SKIP() << testing::kNoRealPlugins;
  }
  EngineMesh chips_of(const Mesh& mesh, EngineMeshOptions options = {}) const {
    options.make = GetParam().make;
    return EngineMesh(mesh, options);
  }
  static const Target& target() { return *GetParam().target; }
  /// Returns the target with random thresholds for sharing and for recomputing values: 0 or the
  /// target's own, which are larger than all values of random programs.
  static Target target_with_thresholds(Random& random) {
    Target chosen = target();
    for (std::int64_t* least : {&chosen.shared_bytes_min, &chosen.recomputed_bytes_min}) {
      if (random.one_in(2) && *least != Target::kNever) *least = 0;
    }
    return chosen;
  }

  static std::vector<float> floats(EngineMesh& chips, int chip, std::uint64_t offset,
                                   std::size_t count) {
    std::vector<float> values(count);
    chips.engine(chip).download(offset, std::as_writable_bytes(std::span(values)));
    return values;
  }
  static void write(EngineMesh& chips, int chip, std::uint64_t offset,
                    const std::vector<float>& values) {
    const std::size_t bytes = values.size() * sizeof(float);
    chips.engine(chip).upload(offset, bytes, [&](std::byte* to) {
      std::copy_n(reinterpret_cast<const std::byte*>(values.data()), bytes, to);
    });
  }
};

/// Returns a program that adds the sum of all chips' x to w and, before the chips communicate, 1 to
/// a count.
Program training_step() {
  Program program;
  Builder b(program);
  const ValueId x = program.add_input(
      {DType::f32, {2}}, InputKind::data, "x",
      Sharding::from_spec(kPair, {{"data"}}, std::array<std::int64_t, 1>{2}, "x"));
  const ValueId w = program.add_input({DType::f32, {}}, InputKind::param, "w", Sharding::closed());
  const ValueId count =
      program.add_input({DType::f32, {}}, InputKind::opt_state, "count", Sharding::closed());
  const ValueId next = b.binary(OpKind::add, count, b.constant(1, {DType::f32, {}}));
  b.set_loc("train.cpp:41");
  const ValueId sum = b.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{0});
  program.add_output(b.binary(OpKind::add, w, sum), "w", Sharding::closed(), 1);
  program.add_output(next, "count", Sharding::closed(), 2);
  return program;
}

/// Returns a program that makes y from x, which has 4 elements, by one op.
template <typename Append>
Program of_four(Append append) {
  Program program;
  Builder b(program);
  const ValueId x = program.add_input({DType::f32, {4}}, InputKind::data, "x", Sharding::closed());
  b.set_loc("train.cpp:7");
  program.add_output(append(b, x), "y", Sharding::closed());
  return program;
}

TEST_P(EngineConformance, ComputesWhatTheInterpreterDoes) {
  const std::vector<Mesh> meshes = testing::small_meshes();
  for (const std::uint64_t seed : testing::seeds(20)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Mesh& mesh = meshes[random.below(meshes.size())];
    const Program program = testing::random_program(mesh, random);
    const std::vector<Elements> inputs = testing::small_integers(program, random);
    const std::vector<Elements> expected = interpret(program, inputs);
    // Sums of small integers are exact in f32, up to 2^24.
    const bool is_exact = std::ranges::all_of(expected, [](const Elements& elements) {
      return std::ranges::all_of(elements, [](double x) { return std::abs(x) < 0x1p20; });
    });
    if (!is_exact) continue;
    const Plan plan = compile(program, mesh, target_with_thresholds(random));
    EngineMesh chips = chips_of(mesh);
    const MeshPlan loaded = chips.load(plan);
    for (const auto schedule :
         {EngineMesh::Schedule::one_thread, EngineMesh::Schedule::thread_per_chip}) {
      EXPECT_EQ(testing::join(plan, mesh, chips.run(loaded, inputs, schedule)), expected);
    }
  }
}

TEST_P(EngineConformance, GivesBackWhatWasUploadedInEveryDtype) {
  const Mesh one({1}, {"data"});
  for (const DType dtype : {DType::pred, DType::i32, DType::u32, DType::i64, DType::bf16,
                            DType::f32, DType::f64, DType::f16, DType::i8, DType::u8}) {
    SCOPED_TRACE(to_string(dtype));
    Program program;
    Builder b(program);
    const ValueId x = program.add_input({dtype, {3}}, InputKind::data, "x", Sharding::closed());
    program.add_output(b.reverse(x, std::array<std::int64_t, 1>{0}), "y", Sharding::closed());
    const Plan plan = compile(program, one, target());
    EngineMesh chips = chips_of(one);
    const std::vector<Elements> inputs{{0, 1, 1}};
    EXPECT_EQ(
        testing::join(plan, one, chips.run(plan, inputs, EngineMesh::Schedule::one_thread)).at(0),
        (Elements{1, 1, 0}));
  }
}

TEST_P(EngineConformance, TheHostsAddressIsThatOfTheChipsMemory) {
  EngineMesh chips = chips_of(kPair);
  const std::uint64_t at = chips.memory().buffers_offset() + 64;
  for (int chip = 0; chip < 2; ++chip) {
    SCOPED_TRACE(chip);
    chips.engine(chip).reserve(at, 64);
    write(chips, chip, at, {1, 2, 3});
    auto* seen = reinterpret_cast<float*>(chips.engine(chip).host_address(at));
    EXPECT_EQ(seen != nullptr, target().has_host_address);
    if (seen == nullptr) continue;
    EXPECT_EQ(seen[1], 2);
    seen[1] = 20;
    EXPECT_EQ(floats(chips, chip, at, 3), (std::vector<float>{1, 20, 3}));
    EXPECT_EQ(chips.engine(chip).host_address(at + 4), reinterpret_cast<std::byte*>(seen + 1));
  }
}

/// The second of two workers with two chips each has the chips 2 and 3, at positions 0 and 2.
TEST_P(EngineConformance, KnowsItsNumberAmongItsWorkersChips) {
  const Mesh mesh({4}, {"data"}, {3, 1, 2, 0});
  EngineMesh chips = chips_of(mesh, {.chips_per_worker = 2});
  const std::uint64_t at = chips.memory().buffers_offset();
  for (int position = 0; position < 4; ++position) {
    Engine& engine = chips.engine(position);
    EXPECT_EQ(engine.local_index(), mesh.device_at(position) % 2);
    engine.call(1, 0, [&](Chip& self) {
      EXPECT_EQ(self.position(), position);
      EXPECT_EQ(self.local_index(), engine.local_index());
    });
    engine.reserve(at, 64);
    write(chips, position, at, {7, static_cast<float>(position)});
  }
  const HashedTensor tensor{"w", {DType::f32, {}}, Sharding::closed(), {at, at + sizeof(float)}};
  StateHash hash(1, {tensor}, mesh, {2, 0}, [](const StateHash&) {});
  chips.engine(2).add_to(hash);  // the worker's first chip hashes its first float, a 7
  chips.engine(0).add_to(hash);  // its second chip hashes its second float, a 0
  StateHash other(1, {tensor}, mesh, {3, 1}, [](const StateHash&) {});
  chips.engine(3).add_to(other);
  chips.engine(1).add_to(other);  // the other worker's second chip hashes a 1
  EXPECT_EQ(hash.hash(0, 0), other.hash(0, 0));
  EXPECT_NE(hash.hash(0, 1), other.hash(0, 1));
}

TEST_P(EngineConformance, CopiesWhatAnotherChipHas) {
  const Mesh mesh({3}, {"data"}, {2, 0, 1});
  EngineMesh chips = chips_of(mesh);
  const std::uint64_t from = chips.memory().buffers_offset();
  const std::uint64_t to = from + 4096;
  for (int chip = 0; chip < 3; ++chip) {
    chips.engine(chip).reserve(from, 8192);
    write(chips, chip, from, {static_cast<float>(chip), 10, 11});
    write(chips, chip, to, {-1, -1, -1, -1});
  }
  chips.engine(2).copy_from(0, from, to, 3 * sizeof(float));
  chips.engine(0).copy_from(1, from + sizeof(float), to, sizeof(float));
  EXPECT_EQ(floats(chips, 2, to, 4), (std::vector<float>{0, 10, 11, -1}));
  EXPECT_EQ(floats(chips, 0, to, 4), (std::vector<float>{10, -1, -1, -1}));
  EXPECT_EQ(floats(chips, 1, to, 4), (std::vector<float>{-1, -1, -1, -1}));
  EXPECT_EQ(floats(chips, 2, from, 3), (std::vector<float>{2, 10, 11}));
}

TEST_P(EngineConformance, GoesOnFromStepToStep) {
  EngineMesh chips = chips_of(kPair);
  MeshPlan plan = chips.load(compile(training_step(), kPair, target()));
  for (int chip = 0; chip < 2; ++chip) {
    write(chips, chip, plan.buffers.inputs[0], {chip == 0 ? 2.0F : 5.0F});
    write(chips, chip, plan.buffers.inputs[1], {10});
    write(chips, chip, plan.buffers.inputs[2], {0});
  }
  for (std::uint64_t step = 1; step <= 4; ++step) {
    std::vector<std::jthread> threads;
    for (int chip = 0; chip < 2; ++chip) {
      threads.emplace_back([&, chip] {
        chips.engine(chip).run(plan.chips[static_cast<std::size_t>(chip)], step, plan.buffers,
                               {.step = step});
      });
    }
    threads.clear();
    for (int chip = 0; chip < 2; ++chip) {
      const auto done = static_cast<float>(step);
      EXPECT_EQ(floats(chips, chip, plan.buffers.outputs[0], 1).at(0), 10 + 7 * done);
      EXPECT_EQ(floats(chips, chip, plan.buffers.outputs[1], 1).at(0), done);
    }
    // The outputs of this step are the inputs of the next step.
    std::swap(plan.buffers.inputs[1], plan.buffers.outputs[0]);
    std::swap(plan.buffers.inputs[2], plan.buffers.outputs[1]);
  }
}

TEST_P(EngineConformance, WritesNoUpdateBeforeAllHaveCommitted) {
  EngineMesh chips = chips_of(kPair);
  const MeshPlan plan = chips.load(compile(training_step(), kPair, target()));
  for (int chip = 0; chip < 2; ++chip) {
    for (const std::uint64_t output : plan.buffers.outputs) write(chips, chip, output, {-7});
  }
  chips.engine(0).start(plan.chips[0], 1, plan.buffers, {.step = 1});
  EXPECT_FALSE(chips.engine(0).poll());
  EXPECT_EQ(floats(chips, 0, plan.buffers.outputs[1], 1).at(0), -7);
  chips.engine(1).start(plan.chips[1], 1, plan.buffers, {.step = 1});
  for (bool has_ended = false; !chips.engine(1).poll();) {
    if (!has_ended) has_ended = chips.engine(0).poll();
  }
  EXPECT_EQ(floats(chips, 1, plan.buffers.outputs[1], 1).at(0), 1);
}

TEST_P(EngineConformance, WaitsForCommitsWhereTheRunAsksForIt) {
  EngineMesh chips = chips_of(kPair);
  const Plan copies = compile(
      of_four([](Builder& b, ValueId x) { return b.binary(OpKind::add, x, x); }), kPair, target());
  const MeshPlan plan = chips.load(copies);
  chips.engine(0).start(plan.chips[0], 1, plan.buffers, {.step = 1, .is_awaited = true});
  EXPECT_FALSE(chips.engine(0).poll());
  chips.engine(1).start(plan.chips[1], 1, plan.buffers, {.step = 1});
  EXPECT_TRUE(chips.engine(1).poll());
  EXPECT_TRUE(chips.engine(0).poll());
}

TEST_P(EngineConformance, EndsWithTheReasonWhenTheJobIsAborted) {
  EngineMesh chips = chips_of(kPair);
  const MeshPlan plan = chips.load(compile(training_step(), kPair, target()));
  chips.engine(0).start(plan.chips[0], 12, plan.buffers);
  EXPECT_FALSE(chips.engine(0).poll());
  chips.memory().abort("worker 1 is gone");
  expect_error(Errc::peer_lost, {"worker 1 is gone", "train.cpp:41", "step 12"},
               [&] { chips.engine(0).poll(); });
}

TEST_P(EngineConformance, NamesTheMissingChipWhenTheTimeIsOver) {
  EngineMesh chips = chips_of(kPair, {.timeout = std::chrono::milliseconds(20)});
  const MeshPlan plan = chips.load(compile(training_step(), kPair, target()));
  expect_error(Errc::timeout, {"for chip 1", "train.cpp:41", "step 12"},
               [&] { chips.engine(0).run(plan.chips[0], 12, plan.buffers); });
}

TEST_P(EngineConformance, NamesTheChipWhoseCommitIsMissingWhenTheTimeIsOver) {
  EngineMesh chips = chips_of(kPair, {.timeout = std::chrono::milliseconds(20)});
  const Plan copies = compile(
      of_four([](Builder& b, ValueId x) { return b.binary(OpKind::add, x, x); }), kPair, target());
  const MeshPlan plan = chips.load(copies);
  expect_error(Errc::timeout, {"for chip 1", "step 6"}, [&] {
    chips.engine(0).run(plan.chips[0], 5, plan.buffers, {.step = 5, .is_awaited = true});
  });
}

TEST_P(EngineConformance, RefusesAPlanOfAnotherMeshAndWrongBuffers) {
  const Plan plan = compile(training_step(), kPair, target());
  EngineMesh others = chips_of(Mesh({2}, {"model"}));
  expect_error(Errc::mesh_mismatch, {"data", "model"}, [&] { others.load(plan); });
  EngineMesh chips = chips_of(kPair);
  const MeshPlan loaded = chips.load(plan);
  RunBuffers too_few = loaded.buffers;
  too_few.inputs.pop_back();
  expect_error(Errc::invalid_argument, {"3 inputs", "2 and"},
               [&] { chips.engine(0).start(loaded.chips[0], 1, too_few); });
}

TEST_P(EngineConformance, RefusesTemporariesThatDoNotFit) {
  const Mesh one({1}, {"data"});
  EngineMesh chips = chips_of(one);
  const auto elements = static_cast<std::int64_t>(chips.memory().buffers_offset()) / 4;
  Program program;
  Builder b(program);
  const ValueId large = b.constant(1, {DType::f32, {elements}});
  program.add_output(b.reduce(ReduceKind::add, large, std::array<std::int64_t, 1>{0}), "y",
                     Sharding::closed());
  const Plan plan = compile(program, one, target());
  expect_error(Errc::no_space, {std::to_string(plan.temp_bytes)}, [&] { chips.load(plan); });
}

TEST_P(EngineConformance, FindsTheFirstOpThatGivesANan) {
  const Mesh one({1}, {"data"});
  const Plan plan = compile(of_four([](Builder& b, ValueId x) { return b.unary(OpKind::log, x); }),
                            one, target());
  EngineMesh chips = chips_of(one);
  MeshPlan loaded = chips.load(plan);
  write(chips, 0, loaded.buffers.inputs[0], {1, 1, -1, 1});
  chips.engine(0).run(loaded.chips[0], 1, loaded.buffers);
  const auto checked = chips.engine(0).load(plan, true);
  expect_error(Errc::invalid_argument, {"detect_anomaly", "log", "train.cpp:7"},
               [&] { chips.engine(0).run(checked, 2, loaded.buffers); });
  // The failed run has ended, so this chip can run again.
  chips.engine(0).run(loaded.chips[0], 3, loaded.buffers);
}

/// A loop computes the elements of `fill` in pieces. The check for NaN must read only the piece
/// that has been computed, not the memory behind it.
TEST_P(EngineConformance, FindsNoNanInAHealthyFill) {
  const Mesh one({1}, {"data"});
  Program program;
  Builder b(program);
  const TensorType type{DType::f32, {100'000}};
  const ValueId x = program.add_input(type, InputKind::data, "x", Sharding::closed());
  const ValueId scale = b.reduce(ReduceKind::max, x, std::array<std::int64_t, 1>{0});
  const ValueId fill = b.broadcast_in_dim(scale, type.shape, {});
  program.add_output(b.binary(OpKind::multiply, x, fill), "y", Sharding::closed());
  EngineMesh chips = chips_of(one);
  MeshPlan loaded = chips.load(compile(program, one, target()));
  write(chips, 0, loaded.buffers.inputs[0], std::vector<float>(100'000, 2));
  chips.engine(0).run(chips.engine(0).load(loaded.plan, true), 1, loaded.buffers);
}

void doubled_or_refused(const CustomCall& call) {
  const auto x = call.operand<float>(0);
  const auto y = call.result<float>();
  if (x[0] < 0) fail(Errc::invalid_argument, "x is {}", x[0]);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i];
}

TEST_P(EngineConformance, RunsTheKernelOfACustomCallAndSaysWhatItThrows) {
  const Mesh one({1}, {"data"});
  const CustomTarget doubled{"conformance_doubled", "a -> a"};
  register_custom_function({.target = doubled, .kernel = doubled_or_refused});
  const Plan plan = compile(of_four([&](Builder& b, ValueId x) {
                              return b.custom_call(doubled, std::array{x}, b.type(x));
                            }),
                            one, target());
  EngineMesh chips = chips_of(one);
  const MeshPlan loaded = chips.load(plan);
  write(chips, 0, loaded.buffers.inputs[0], {1, 2, 3, 4});
  chips.engine(0).run(loaded.chips[0], 1, loaded.buffers);
  EXPECT_EQ(floats(chips, 0, loaded.buffers.outputs[0], 4), (std::vector<float>{2, 4, 6, 8}));
  write(chips, 0, loaded.buffers.inputs[0], {-1, 2, 3, 4});
  expect_error(Errc::invalid_argument, {"conformance_doubled", "x is -1", "train.cpp:7"},
               [&] { chips.engine(0).run(loaded.chips[0], 2, loaded.buffers); });
}

TEST_P(EngineConformance, CallsCodeOfTheLoopsOwnWithItsCollectives) {
  EngineMesh chips = chips_of(kPair);
  std::array<float, 2> sums{1, 2};
  std::vector<std::jthread> threads;
  for (int chip = 0; chip < 2; ++chip) {
    threads.emplace_back([&, chip] {
      const auto body = [&](Chip& self) {
        EXPECT_EQ(self.local_index(), chip);
        self.all_reduce(sums[static_cast<std::size_t>(chip)]);
      };
      chips.engine(chip).settle();
      chips.engine(chip).call(1, 0, body);
    });
  }
  threads.clear();
  EXPECT_EQ(sums, (std::array<float, 2>{3, 3}));
}

TEST_P(EngineConformance, CodeOfTheLoopsOwnHasTheChipsMemory) {
  EngineMesh chips = chips_of(kPair);
  const std::uint64_t at = chips.memory().buffers_offset() + 128;
  const auto alive = std::make_shared<char>();
  const ChipArray<float> array({.offset = at, .block = nullptr, .job = alive}, 2);
  for (int chip = 0; chip < 2; ++chip) {
    chips.engine(chip).reserve(at, 64);
    write(chips, chip, at, {1, static_cast<float>(chip)});
  }
  std::vector<std::jthread> threads;
  for (int chip = 0; chip < 2; ++chip) {
    threads.emplace_back([&, chip] {
      chips.engine(chip).call(1, 0, [&](Chip& self) { self.all_reduce(array.on(self)); });
    });
  }
  threads.clear();
  for (int chip = 0; chip < 2; ++chip) {
    EXPECT_EQ(floats(chips, chip, at, 2), (std::vector<float>{2, 1}));
  }
}

TEST_P(EngineConformance, HashesTheStateThatItHolds) {
  EngineMesh chips = chips_of(kPair);
  const MeshPlan plan = chips.load(compile(training_step(), kPair, target()));
  const std::uint64_t at = plan.buffers.inputs[1];
  const auto hashes = [&](float first, float second) {
    write(chips, 0, at, {first});
    write(chips, 1, at, {second});
    int completed = 0;
    StateHash hash(1, {{"w", {DType::f32, {}}, Sharding::closed(), {at, at}}}, kPair, {0, 1},
                   [&](const StateHash&) { ++completed; });
    for (int chip = 0; chip < 2; ++chip) chips.engine(chip).add_to(hash);
    EXPECT_EQ(completed, 1);
    return std::array{hash.hash(0, 0), hash.hash(0, 1)};
  };
  const auto same = hashes(3, 3);
  EXPECT_EQ(same[0], same[1]);
  const auto different = hashes(3, 4);
  EXPECT_EQ(different[0], same[0]);
  EXPECT_NE(different[0], different[1]);
}

/// This engine has no loops, and no memory that chips share, so it can't run a plan for the CPU.
TEST(ContraryEngine, RefusesAPlanForTheCpu) {
  EngineMesh chips(kPair, {.make = testing::make_contrary_engine});
  expect_error(Errc::invalid_argument, {"contrary", "loop"},
               [&] { chips.load(compile(training_step(), kPair, kCpuTarget)); });
  Target shares = testing::kContraryTarget;
  shares.shared_bytes_min = 0;
  const Program program = parse_program(R"(program(%0: f32[32,32] param "w" [{"data"}, {}]) {
  %1 = sharding_constraint %0 {sharding = [{}, {}]} : f32[32,32]
  %2 = reverse %1 {dims = [0]} : f32[32,32]
  return %2 "y" [{}, {}]
})",
                                        kPair);
  expect_error(Errc::invalid_argument, {"contrary", "shared"},
               [&] { chips.load(compile(program, kPair, shares)); });
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineConformance,
                         ::testing::Values(EngineKind{"cpu", testing::make_cpu_engine, &kCpuTarget},
                                           EngineKind{"pjrt", make_pjrt_engine, &kPjrtCpuTarget},
                                           EngineKind{"mirrored", make_mirrored_engine,
                                                      &kPjrtMirroredTarget},
                                           EngineKind{"reference", testing::make_reference_engine,
                                                      &testing::kReferenceTarget},
                                           EngineKind{"contrary", testing::make_contrary_engine,
                                                      &testing::kContraryTarget}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace weft::engine_test
