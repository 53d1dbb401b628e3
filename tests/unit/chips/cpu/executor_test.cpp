#include "chips/cpu/executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <thread>

#include "spmd/ops/builder.hpp"
#include "spmd/passes/partition.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/mlp.hpp"
#include "tests/support/target.hpp"

namespace weft::executor_test {
namespace {

using testing::EngineMesh;
using testing::expect_error;
using testing::join;
using testing::MeshPlan;
using testing::Mlp;
using Schedule = EngineMesh::Schedule;

std::vector<Mesh> meshes() {
  return {Mesh({1}, {"data"}),
          Mesh({2}, {"data"}),
          Mesh({4}, {"data"}),
          Mesh({8}, {"data"}),
          Mesh({2, 2}, {"data", "model"}, {3, 0, 2, 1}),
          Mesh({2, 4}, {"data", "model"})};
}

/// Returns a training step with data parallelism and, if the mesh has a second axis, tensor
/// parallelism. If "data" is the only axis, parameters and momentum are sharded over it.
Program training_step(const Mesh& mesh) {
  Mlp mlp;
  mlp.batch = 16;
  mlp.in = 24;
  mlp.hidden = 32;
  mlp.x = mlp.y = PartitionSpec{{"data"}, {}};
  mlp.momentum = true;
  mlp.input_gradient = true;
  if (mesh.has_axis("model")) {
    mlp.fc1 = mlp.fc1_momentum = PartitionSpec{{"model"}, {}};
    mlp.fc2 = mlp.fc2_momentum = PartitionSpec{{}, {"model"}};
  } else {
    mlp.fc1_momentum = mlp.fc2_momentum = PartitionSpec{{"data"}, {}};
  }
  return mlp.program(mesh);
}

std::vector<Elements> random_inputs(const Program& program, unsigned seed, bool whole) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> any(-2, 2);
  std::vector<Elements> inputs;
  for (const ProgramInput& input : program.inputs) {
    Elements& elements = inputs.emplace_back();
    for (std::int64_t i = 0; i < program.type(input.value).num_elements(); ++i) {
      const double element = any(random);
      elements.push_back(whole ? std::round(element) : element);
    }
  }
  return inputs;
}

TEST(Executor, IsExactOnWholeNumbersOnEveryMesh) {
  for (const Mesh& mesh : meshes()) {
    SCOPED_TRACE(mesh.to_string());
    const Program program = training_step(mesh);
    const Plan plan = compile(program, mesh, kCpuTarget);
    const auto inputs = random_inputs(program, 1, true);
    EngineMesh chips(mesh);
    const auto outputs = chips.run(plan, inputs, Schedule::one_thread);
    EXPECT_EQ(join(plan, mesh, outputs), interpret(program, inputs));
  }
}

/// Returns a program of random elementwise ops of a few sizes, with fills and sums between them.
/// Some of its values are outputs.
Program loops(std::mt19937& random) {
  const auto below = [&](std::size_t end) { return std::size_t{random()} % end; };
  Program program;
  Builder b(program);
  const Shape shape{std::array<std::int64_t, 4>{1, 511, 512, 1543}[below(4)]};
  const auto input = [&](const Shape& of) {
    return program.add_input({DType::f32, of}, InputKind::data, "x", Sharding::closed());
  };
  const ValueId scalar = input({});
  std::vector<ValueId> made{input(shape), input(shape)};
  const auto any = [&] {
    return made[made.size() - 1 - below(std::min<std::size_t>(made.size(), 4))];
  };
  while (made.size() < 16) {
    ValueId next = any();
    switch (below(8)) {
      case 0: next = b.constant(static_cast<double>(below(4)), {DType::f32, shape}); break;
      case 1: next = b.broadcast_in_dim(scalar, shape, {}); break;
      case 2: {
        const ValueId top = b.reduce(ReduceKind::max, next, std::array<std::int64_t, 1>{0});
        next = b.broadcast_in_dim(b.binary(OpKind::minimum, top, scalar), shape, {});
        break;
      }
      case 3:
        next = b.convert(b.convert(b.unary(OpKind::sign, next), DType::bf16), DType::f32);
        break;
      case 4: next = b.select(b.compare(CompareDirection::lt, next, any()), any(), any()); break;
      case 5: next = b.binary(OpKind::add, next, any()); break;
      case 6: next = b.binary(OpKind::subtract, next, any()); break;
      default: next = b.unary(OpKind::negate, next);
    }
    made.push_back(next);
    if (below(4) == 0) program.add_output(next, "y", Sharding::closed());
  }
  program.add_output(made.back(), "y", Sharding::closed());
  return program;
}

TEST(Executor, IsExactInLoopsOverSeveralOps) {
  const Mesh mesh({1}, {"data"});
  EngineMesh chips(mesh);
  std::size_t tiled = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const Program program = loops(random);
    const Plan plan = compile(program, mesh, kCpuTarget);
    tiled += static_cast<std::size_t>(std::ranges::count(plan.slots, Place::tile, &Slot::place));
    const auto inputs = random_inputs(program, seed, true);
    const auto outputs = chips.run(plan, inputs, Schedule::one_thread);
    ASSERT_EQ(join(plan, mesh, outputs), interpret(program, inputs)) << "seed " << seed;
  }
  EXPECT_GT(tiled, 1000U);
}

/// Runs two programs in turn. One stores shared values where the other stores temporaries, and a
/// chip may be a run ahead of other chips.
TEST(Executor, SharesWhatIsGathered) {
  const Target share_all = testing::cpu_target_with({.shared_bytes_min = 0});
  for (const Mesh& mesh : meshes()) {
    SCOPED_TRACE(mesh.to_string());
    Mlp fsdp;
    fsdp.fc1 = fsdp.fc2 = PartitionSpec{{"data"}, {}};
    if (mesh.has_axis("model")) fsdp.fc2 = PartitionSpec{{"model"}, {}};
    const Program programs[] = {training_step(mesh), fsdp.program(mesh)};
    EngineMesh chips(mesh);
    const MeshPlan plans[] = {chips.load(compile(programs[0], mesh, share_all)),
                              chips.load(compile(programs[1], mesh, share_all))};
    EXPECT_EQ(plans[1].plan.shared_bytes > 0, mesh.size() > 1);
    for (unsigned seed = 0; seed < 10; ++seed) {
      const std::size_t turn = seed % 3 == 0 ? 0 : 1;
      const auto inputs = random_inputs(programs[turn], seed, true);
      const auto schedule = seed % 2 == 0 ? Schedule::one_thread : Schedule::thread_per_chip;
      const auto outputs = chips.run(plans[turn], inputs, schedule);
      ASSERT_EQ(join(plans[turn].plan, mesh, outputs), interpret(programs[turn], inputs));
    }
  }
}

TEST(Executor, OneThreadAndAThreadPerChipAgreeBitwise) {
  for (const Mesh& mesh : meshes()) {
    SCOPED_TRACE(mesh.to_string());
    const Program program = training_step(mesh);
    const auto inputs = random_inputs(program, 2, false);
    EngineMesh chips(mesh);
    const auto loaded = chips.load(compile(program, mesh, kCpuTarget));
    const auto expected = chips.run(loaded, inputs, Schedule::one_thread);
    for (int run = 0; run < 5; ++run) {
      ASSERT_EQ(chips.run(loaded, inputs, Schedule::thread_per_chip), expected) << "run " << run;
      ASSERT_EQ(chips.run(loaded, inputs, Schedule::one_thread), expected) << "run " << run;
    }
    join(loaded.plan, mesh, expected);  // fails unless replicas agree
  }
}

TEST(Executor, FreshChipsAgreeBitwise) {
  const Mesh mesh({2, 2}, {"data", "model"});
  const Program program = training_step(mesh);
  const Plan plan = compile(program, mesh, kCpuTarget);
  const auto inputs = random_inputs(program, 3, false);
  EngineMesh first(mesh);
  EngineMesh second(mesh);
  EXPECT_EQ(first.run(plan, inputs, Schedule::thread_per_chip),
            second.run(plan, inputs, Schedule::one_thread));
}

TEST(Executor, ChipsLoadAtTheSameTime) {
  const Mesh mesh({4}, {"data"});
  const Program program = training_step(mesh);
  const auto inputs = random_inputs(program, 4, true);
  EngineMesh chips(mesh);
  auto loaded = chips.load(compile(program, mesh, kCpuTarget));
  {
    std::vector<std::jthread> threads;
    for (int position = 0; position < mesh.size(); ++position) {
      threads.emplace_back([&, position] {
        loaded.chips[static_cast<std::size_t>(position)] = chips.engine(position).load(loaded.plan);
      });
    }
  }
  const auto outputs = chips.run(loaded, inputs, Schedule::thread_per_chip);
  EXPECT_EQ(join(loaded.plan, mesh, outputs), interpret(program, inputs));
}

TEST(Executor, ShowsTheStepOnTheBoard) {
  const Mesh mesh({1}, {"data"});
  JobMemory memory = JobMemory::anonymous(
      {.job = std::string(32, '0'), .num_chips = 1, .arena_capacity = 1 << 20});
  BoardHeader header;
  header.num_chips = 1;
  const Board board = Board::anonymous(header);
  Executor executor(memory, mesh, 0, board.device(0), WaitPolicy());
  Program program;
  Builder build(program);
  program.add_output(build.constant(1, {DType::f32, {}}), "one", Sharding::closed());
  memory.reserve(0, memory.buffers_offset(), 64);
  executor.run(executor.load(compile(program, mesh, kCpuTarget)), 7,
               {.inputs = {}, .outputs = {memory.buffers_offset()}});
  EXPECT_EQ(board.readable_rows().back().step, 7U);
}

TEST(Executor, TakesTurnsWithSeveralPlans) {
  const Mesh mesh({2}, {"data"});
  const Program step = training_step(mesh);
  const Program small = Mlp().program(mesh);
  EngineMesh chips(mesh);
  const auto step_loaded = chips.load(compile(step, mesh, kCpuTarget));
  const auto small_loaded = chips.load(compile(small, mesh, kCpuTarget));
  for (unsigned seed = 0; seed < 4; ++seed) {
    for (const auto* loaded : {&step_loaded, &small_loaded}) {
      const Program& program = loaded == &step_loaded ? step : small;
      const auto inputs = random_inputs(program, seed, true);
      const auto outputs = chips.run(*loaded, inputs, Schedule::thread_per_chip);
      EXPECT_EQ(join(loaded->plan, mesh, outputs), interpret(program, inputs));
    }
  }
}

float number_of(int position, std::uint64_t run) {
  return static_cast<float>(run * 10 + static_cast<std::uint64_t>(position));
}

/// Returns a plan that applies op(builder, x) to each chip's `size` numbers; a loop negates the
/// result.
template <typename Op>
Plan shared_plan(const Mesh& mesh, std::int64_t size, const Op& op) {
  Program program;
  Builder build(program);
  const TensorType part{DType::f32, {size}};
  const ValueId x = program.add_input(part, InputKind::data, "x", Sharding::closed());
  const ValueId y = build.unary(OpKind::negate, op(build, x));
  program.add_output(y, "y", Sharding::closed());
  const TensorType whole = program.type(y);
  return make_plan(program, mesh, {&part, 1}, {&whole, 1},
                   testing::cpu_target_with({.shared_bytes_min = 0}));
}

/// Runs plan 0, over axis 0, and plan 1, over axis 1, in turn. No chip waits for others at the end
/// of a run, so the chips of a row may share data of the next run with their columns while another
/// chip still reads data that its row shared. A chip's result, before it is negated, must be
/// `expected(group, element, run)`.
template <typename Expected>
void expect_kept(const Mesh& mesh, std::array<Plan, 2> of_axes, const Expected& expected) {
  EngineMesh chips(mesh);
  const MeshPlan plans[] = {chips.load(std::move(of_axes[0])), chips.load(std::move(of_axes[1]))};
  constexpr std::uint64_t kRunCount = 200;
  std::vector<std::uint64_t> runs(4, 0);
  const auto floats = [&](int position, std::uint64_t offset, std::int64_t size) {
    std::byte* const arena = chips.memory().arena(mesh.device_at(position));
    return std::span(reinterpret_cast<float*>(arena + offset), static_cast<std::size_t>(size));
  };
  const auto start = [&](int position) {
    const std::uint64_t run = runs[static_cast<std::size_t>(position)];
    const MeshPlan& plan = plans[run % 2];
    const std::int64_t size = plan.plan.input_types[0].num_elements();
    std::ranges::fill(floats(position, plan.buffers.inputs[0], size), number_of(position, run));
    chips.engine(position).start(plan.chips[static_cast<std::size_t>(position)], run, plan.buffers);
  };
  const auto check = [&](int position) {
    const std::uint64_t run = runs[static_cast<std::size_t>(position)];
    const MeshPlan& plan = plans[run % 2];
    const auto got =
        floats(position, plan.buffers.outputs[0], plan.plan.output_types[0].num_elements());
    const auto group = mesh.group(position, mesh.axis_atoms(static_cast<int>(run % 2)));
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(-got[i], expected(group, i, run)) << run;
  };
  for (int position = 0; position < 4; ++position) start(position);
  std::minstd_rand random(1);
  while (std::ranges::min(runs) < kRunCount) {
    const int position = static_cast<int>(random() % 4);
    std::uint64_t& run = runs[static_cast<std::size_t>(position)];
    if (run == kRunCount || !chips.engine(position).poll()) continue;
    ASSERT_NO_FATAL_FAILURE(check(position));
    if (++run < kRunCount) start(position);
  }
}

TEST(Executor, KeepsWhatIsSharedUntilAllHaveReadIt) {
  const Mesh mesh({2, 2}, {"data", "model"});
  // 16 numbers per chip are written in place, 4 are copied.
  for (const std::int64_t size : {4, 16}) {
    const auto plan = [&](int axis) {
      return shared_plan(mesh, size, [&](Builder& build, ValueId x) {
        return build.all_gather(mesh, x, mesh.axis_atoms(axis), 0);
      });
    };
    const Plan first = plan(0);
    EXPECT_EQ(std::ranges::count(first.slots, Place::part, &Slot::place), size == 16 ? 1 : 0);
    expect_kept(mesh, {first, plan(1)}, [&](const auto& group, std::size_t i, std::uint64_t run) {
      return number_of(group[i / static_cast<std::size_t>(size)], run);
    });
  }
}

TEST(Executor, KeepsWhatOthersAddUntilTheyHaveReadIt) {
  const Mesh mesh({2, 2}, {"data", "model"});
  const auto plan = [&](int axis) {
    return shared_plan(mesh, 16, [&](Builder& build, ValueId x) {
      return build.reduce_scatter(mesh, x, mesh.axis_atoms(axis), ReduceKind::add, 0);
    });
  };
  const Plan first = plan(0);
  EXPECT_EQ(std::ranges::count(first.slots, Place::tile, &Slot::place), 1);
  EXPECT_EQ(first.steps.back().kind, StepKind::barrier);
  expect_kept(mesh, {first, plan(1)}, [](const auto& group, std::size_t, std::uint64_t run) {
    return number_of(group[0], run) + number_of(group[1], run);
  });
}

/// Loops that add the terms of a reduce_scatter give the same bits as the collective. The loops are
/// compiled together, or have ops that can't be compiled.
TEST(Executor, AddsInLoopsWhatAReduceScatterAdds) {
  const Mesh mesh({4}, {"data"});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const bool is_compiled : {true, false}) {
      Program program;
      Builder build(program);
      const TensorType part{dtype, {4, 300}};  // more than one tile
      const ValueId x = program.add_input(part, InputKind::data, "x", Sharding::closed());
      const ValueId sum = build.reduce_scatter(mesh, x, mesh.axis_atoms(0), ReduceKind::add, 0);
      const ValueId y =
          is_compiled ? build.unary(OpKind::tanh, sum) : build.binary(OpKind::power, sum, sum);
      program.add_output(build.binary(OpKind::add, y, sum), "y", Sharding::closed());
      const TensorType result = program.type(sum);
      const auto plan_of = [&](std::int64_t least) {
        return make_plan(program, mesh, {&part, 1}, {&result, 1},
                         testing::cpu_target_with({.shared_bytes_min = least}));
      };
      EngineMesh chips(mesh);
      const auto run = [&](const Plan& plan) {
        const auto inputs = random_inputs(program, 3, false);
        return chips.run(plan, inputs, Schedule::thread_per_chip);
      };
      const Plan added = plan_of(0);
      ASSERT_EQ(std::ranges::count(added.slots, Place::tile, &Slot::place), 2);
      EXPECT_EQ(run(added), run(plan_of(1 << 20))) << to_string(dtype) << is_compiled;
    }
  }
}

/// Compares `op(builder, x)` on the chips with the simulator, for x with elements i % 97. The
/// program isn't partitioned or optimized, so that the collective runs as written.
template <typename Op>
void expect_collective(const Mesh& mesh, const TensorType& global, const Sharding& from,
                       const TensorType& result, const Sharding& to, Op op) {
  Program program;
  Builder build(program);
  const ValueId x = program.add_input(chip_type(global, from, mesh), InputKind::data, "x", from);
  program.add_output(op(build, x), "y", to);
  const Plan plan = make_plan(program, mesh, {&global, 1}, {&result, 1}, kCpuTarget);
  Elements elements(static_cast<std::size_t>(global.num_elements()));
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<double>(i % 97);
  const std::array inputs{elements};
  const auto expected = simulate(plan.program, mesh, plan.input_types, plan.output_types, inputs);
  for (const Schedule schedule : {Schedule::one_thread, Schedule::thread_per_chip}) {
    EngineMesh chips(mesh);
    EXPECT_EQ(join(plan, mesh, chips.run(plan, inputs, schedule)), expected);
  }
}

/// Shardings of a tensor [8,24] or larger, dim 0 over "data" and dim 1 over "model", on a mesh
/// whose chips aren't in the order of their ids.
struct Grid {
  Mesh mesh{{2, 4}, {"data", "model"}, {7, 2, 5, 0, 1, 6, 3, 4}};
  AtomList data = mesh.axis_atoms(0);
  AtomList model = mesh.axis_atoms(1);

  Sharding sharding(AtomList dim0, AtomList dim1) const {
    Sharding result;
    result.dims[0] = dim0;
    result.dims[1] = dim1;
    return result;
  }
};

class ExecutorCollective : public ::testing::TestWithParam<std::int64_t> {
 protected:
  Grid grid_;
  TensorType type_{DType::f32, {8, GetParam()}};
  Sharding both_ = grid_.sharding(grid_.data, grid_.model);
};

TEST_P(ExecutorCollective, AllReduce) {
  for (const ReduceKind kind : {ReduceKind::add, ReduceKind::max, ReduceKind::min}) {
    // All chips along "model" get the same [4, n/4].
    const TensorType result{DType::f32, {8, GetParam() / 4}};
    expect_collective(grid_.mesh, type_, both_, result, grid_.sharding(grid_.data, {}),
                      [&](Builder& build, ValueId x) {
                        return build.all_reduce(grid_.mesh, x, grid_.model, kind);
                      });
  }
}

TEST_P(ExecutorCollective, AllGather) {
  expect_collective(
      grid_.mesh, type_, both_, type_, grid_.sharding(grid_.data, {}),
      [&](Builder& build, ValueId x) { return build.all_gather(grid_.mesh, x, grid_.model, 1); });
  expect_collective(
      grid_.mesh, type_, both_, type_, grid_.sharding({}, grid_.model),
      [&](Builder& build, ValueId x) { return build.all_gather(grid_.mesh, x, grid_.data, 0); });
}

TEST_P(ExecutorCollective, ReduceScatter) {
  Sharding to = grid_.sharding({}, grid_.model);
  to.dims[1].append(grid_.data);
  const TensorType half{DType::f32, {4, GetParam()}};
  expect_collective(grid_.mesh, type_, both_, half, to, [&](Builder& build, ValueId x) {
    return build.reduce_scatter(grid_.mesh, x, grid_.data, ReduceKind::add, 1);
  });
}

TEST_P(ExecutorCollective, AllToAll) {
  Sharding to = grid_.sharding(grid_.data, {});
  to.dims[0].append(grid_.model);
  expect_collective(grid_.mesh, type_, both_, type_, to, [&](Builder& build, ValueId x) {
    return build.all_to_all(grid_.mesh, x, grid_.model, 0, 1);
  });
}

TEST_P(ExecutorCollective, CollectivePermute) {
  // This sharding has the two atoms of "model" in reverse order.
  AtomList swapped;
  swapped.push_back(grid_.model[1]);
  swapped.push_back(grid_.model[0]);
  expect_collective(grid_.mesh, type_, both_, type_, grid_.sharding(grid_.data, swapped),
                    [&](Builder& build, ValueId x) {
                      return build.collective_permute(x, std::array{grid_.data, grid_.model},
                                                      std::array{grid_.data, swapped});
                    });
}

TEST_P(ExecutorCollective, AllSlice) {
  Sharding to = grid_.sharding(grid_.data, grid_.model);
  expect_collective(
      grid_.mesh, type_, grid_.sharding(grid_.data, {}), type_, to,
      [&](Builder& build, ValueId x) { return build.all_slice(grid_.mesh, x, grid_.model, 1); });
}

// A chip's part fits into a mailbox at the first size, but not at the second.
INSTANTIATE_TEST_SUITE_P(Sizes, ExecutorCollective, ::testing::Values(24, 24 * 1024));

TEST(Executor, ResumeWaitsForThePeer) {
  const Mesh mesh({2}, {"data"});
  const Program program = training_step(mesh);
  EngineMesh chips(mesh);
  const auto loaded = chips.load(compile(program, mesh, kCpuTarget));
  chips.engine(0).start(loaded.chips[0], 1, loaded.buffers);
  EXPECT_FALSE(chips.engine(0).poll());
  EXPECT_FALSE(chips.engine(0).poll());
  chips.engine(1).start(loaded.chips[1], 1, loaded.buffers);
  std::array done{false, false};
  while (!done[0] || !done[1]) {
    for (int chip : {0, 1}) {
      bool& ended = done[static_cast<std::size_t>(chip)];
      ended = ended || chips.engine(chip).poll();
    }
  }
}

TEST(Executor, ALostPeerIsReportedWithTheReducedValue) {
  const Mesh mesh({2}, {"data"});
  Program program;
  Builder build(program);
  Sharding rows;
  rows.dims[0] = mesh.axis_atoms(0);
  const ValueId x = program.add_input({DType::f32, {4}}, InputKind::data, "x", rows);
  build.set_loc("train.cpp:41");
  program.add_output(build.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{0}), "y",
                     Sharding::closed());
  EngineMesh chips(mesh);
  const auto loaded = chips.load(compile(program, mesh, kCpuTarget));
  chips.engine(0).start(loaded.chips[0], 12, loaded.buffers);
  EXPECT_FALSE(chips.engine(0).poll());
  chips.memory().abort("worker 1 is gone");
  expect_error(Errc::peer_lost, {"worker 1 is gone", "reduce at train.cpp:41", "step 12"},
               [&] { chips.engine(0).poll(); });
}

TEST(Executor, RefusesWhatDoesNotFitThePlan) {
  const Mesh mesh({2}, {"data"});
  const Mesh other({2}, {"model"});
  const Plan plan = compile(training_step(mesh), mesh, kCpuTarget);
  EngineMesh chips(mesh);
  EngineMesh other_chips(other);
  expect_error(Errc::mesh_mismatch, {"data", "model"}, [&] { other_chips.load(plan); });
  const auto loaded = chips.load(plan);
  RunBuffers too_few = loaded.buffers;
  too_few.inputs.pop_back();
  expect_error(Errc::invalid_argument,
               {fmt::format("{} inputs", loaded.buffers.inputs.size()),
                fmt::format("{} and", too_few.inputs.size())},
               [&] { chips.engine(0).start(loaded.chips[0], 1, too_few); });
}

TEST(Executor, RefusesTemporariesThatWouldReachTheBuffers) {
  const Mesh mesh({1}, {"data"});
  EngineMesh chips(mesh);
  const auto bytes = static_cast<std::int64_t>(chips.memory().buffers_offset());
  Program program;
  Builder build(program);
  const ValueId x = build.constant(1, {DType::f32, {bytes / 4}});
  program.add_output(build.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{0}), "y",
                     Sharding::closed());
  expect_error(Errc::no_space, {fmt::format("{} bytes of temporaries", bytes), "smaller batches"},
               [&] { chips.load(compile(program, mesh, kCpuTarget)); });
}

}  // namespace
}  // namespace weft::executor_test
