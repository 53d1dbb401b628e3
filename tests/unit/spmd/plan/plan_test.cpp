#include "spmd/plan/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "spmd/control/loops.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/plan/lifetime.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/random_program.hpp"
#include "tests/support/target.hpp"

namespace weft::plan_test {
namespace {

using testing::expect_error;
using testing::Random;

const Mesh kMesh({2}, {"data"});

Plan plan_of(const std::string& text) {
  return compile(parse_program(text, kMesh), kMesh, kCpuTarget);
}

std::size_t count(const Plan& plan, OpKind kind) {
  return static_cast<std::size_t>(std::ranges::count(plan.program.op_kinds, kind));
}

// Each of the four values is read only by the next one, so at most two of them are alive at once.
Plan chain() {
  return plan_of(R"(program(%0: f32[32] data "x" [{}]) {
  %1 = reverse %0 {dims = [0]} : f32[32]
  %2 = reverse %1 {dims = [0]} : f32[32]
  %3 = reverse %2 {dims = [0]} : f32[32]
  %4 = reverse %3 {dims = [0]} : f32[32]
  return %4 "y" [{}]
})");
}

TEST(Plan, ReusesTheBytesOfDeadValues) {
  const Plan plan = chain();
  EXPECT_EQ(plan.temp_bytes, 256U);
  EXPECT_EQ(plan.temp_bytes_bound, 256U);
  EXPECT_EQ(plan.slots[1].offset, plan.slots[3].offset);
  EXPECT_NE(plan.slots[1].offset, plan.slots[2].offset);
}

TEST(Plan, BindsInputsAndWritesOutputsWhereTheyAreComputed) {
  const Plan plan = chain();
  EXPECT_EQ(plan.slots[0].place, Place::input);
  EXPECT_EQ(plan.slots[4].place, Place::output);
  EXPECT_EQ(count(plan, OpKind::copy), 0U);
}

TEST(Plan, CopiesWhatIsInputAndOutputOrOutputTwice) {
  const Plan plan = plan_of(R"(program(%0: f32[4] data "x" [{}]) {
  %1 = tanh %0 : f32[4]
  return %0 "x" [{}], %1 "y" [{}], %1 "z" [{}]
})");
  EXPECT_EQ(count(plan, OpKind::copy), 2U);
  for (std::size_t i = 0; i < 3; ++i) {
    const Slot slot = plan.slots[plan.program.outputs[i].value];
    EXPECT_EQ(slot.place, Place::output);
    EXPECT_EQ(slot.offset, i);
  }
}

TEST(Plan, CollectivesTouchTemporariesOnly) {
  const Plan plan = plan_of(R"(program(%0: f32[4] data "x" [{"data"}]) {
  %1 = sharding_constraint %0 {sharding = [{}]} : f32[4]
  return %1 "y" [{}]
})");
  ASSERT_EQ(count(plan, OpKind::all_gather), 1U);
  EXPECT_EQ(count(plan, OpKind::copy), 2U);
  for (OpId op = 0; op < plan.program.num_ops(); ++op) {
    if (plan.program.kind(op) != OpKind::all_gather) continue;
    EXPECT_EQ(plan.slots[plan.program.op_operands(op)[0]].place, Place::temp);
    EXPECT_EQ(plan.slots[plan.program.result(op)].place, Place::temp);
  }
}

TEST(Plan, CopiesAnInputOnceForAllItsCollectives) {
  const Plan plan = plan_of(R"(program(%0: f32[4,4] data "x" [{"data"}, {}]) {
  %1 = tanh %0 : f32[4,4]
  return %0 "z" [{}, {"data"}], %0 "y" [{}, {}], %1 "w" [{?}, {?}]
})");
  EXPECT_EQ(count(plan, OpKind::all_to_all), 1U);
  EXPECT_EQ(count(plan, OpKind::all_gather), 1U);
  EXPECT_EQ(count(plan, OpKind::copy), 3U);  // copies of x to a temporary, of y and z to outputs
}

TEST(Plan, ConstantsHaveSlotsToo) {
  const Plan plan = plan_of(R"(program(%0: f32[4] data "x" [{}]) {
  %1 = constant {value = 2} : f32[4]
  %2 = concatenate %0, %1 {dim = 0} : f32[8]
  return %2 "y" [{}]
})");
  EXPECT_EQ(plan.slots[1].place, Place::temp);
  EXPECT_EQ(plan.temp_bytes, 64U);
}

TEST(Plan, ConvolutionsOfABatchMeetOnceForEachWeight) {
  const Plan plan = plan_of(R"(program(%0: f32[8,2,6] data "x" [{"data"}, {}, {}],
        %1: f32[4,2,3] param "w" [{}, {}, {}], %2: f32[8,4,4] data "g" [{"data"}, {}, {}]) {
  %3 = convolution %0, %1 {lhs = [0, 1, 2], rhs = [1, 0, 2], result = [0, 1, 2],
       stride = [1], low = [0], high = [0], lhs_dilation = [1], rhs_dilation = [1],
       reversed = 0} : f32[8,4,4]
  %4 = convolution %2, %1 {lhs = [0, 1, 2], rhs = [0, 1, 2], result = [0, 1, 2],
       stride = [1], low = [2], high = [2], lhs_dilation = [1], rhs_dilation = [1],
       reversed = 1} : f32[8,2,6]
  %5 = convolution %0, %2 {lhs = [1, 0, 2], rhs = [0, 1, 2], result = [1, 0, 2],
       stride = [1], low = [0], high = [0], lhs_dilation = [1], rhs_dilation = [1],
       reversed = 0} : f32[4,2,3]
  return %3 "y" [{?}, {?}, {?}], %4 "dx" [{?}, {?}, {?}], %5 "dw" [{}, {}, {}]
})");
  EXPECT_EQ(count(plan, OpKind::all_reduce), 1U);
  for (const OpKind kind : plan.program.op_kinds) {
    EXPECT_TRUE(!is_collective(kind) || kind == OpKind::all_reduce) << to_string(kind);
  }
}

TEST(Plan, SummarizesItsCollectives) {
  const Mesh mesh({2, 4}, {"data", "model"});
  const Program program = parse_program(R"(program(
      %0: f32[8,16] param "w" [{"model":0}, {}],
      %1: f32[8,16] data "x" [{"data"}, {"model"}]) {
  %2 = sharding_constraint %0 {sharding = [{}, {}]} : f32[8,16]
  %3 = reduce %1 {kind = add, dims = [0, 1]} : f32[]  // train.cpp:7
  return %2 "w" [{}, {}], %3 "sum" []
})",
                                        mesh);
  const auto found = collectives(compile(program, mesh, kCpuTarget), mesh);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].kind, OpKind::all_gather);
  EXPECT_EQ(found[0].axes, std::vector<std::string>{"model:0"});
  EXPECT_EQ(found[0].bytes, 512);
  EXPECT_EQ(found[0].value, "input \"w\"");
  EXPECT_EQ(found[1].kind, OpKind::all_reduce);
  EXPECT_EQ(found[1].axes, (std::vector<std::string>{"data", "model"}));
  EXPECT_EQ(found[1].bytes, 4);
  EXPECT_EQ(found[1].value, "reduce at train.cpp:7");
}

/// Returns the ops in the order in which they run. The ops of loops except carries come twice, for
/// two iterations.
std::vector<OpId> in_order(const Program& program) {
  const Loops loops(program);
  std::vector<OpId> order;
  const std::function<void(OpId, OpId)> run = [&](OpId begin, OpId end) {
    for (OpId op = begin; op < end; ++op) {
      order.push_back(op);
      if (program.kind(op) != OpKind::loop) continue;
      const LoopRange& range = loops[loops.at(op)];
      run(op + 1, range.end);
      run(op + 1 + static_cast<OpId>(range.carries.size()), range.end);
      op = range.end - 1;
    }
  };
  run(0, program.num_ops());
  return order;
}

/// Computes directly from the program which temporaries are alive when each op runs, and expects
/// that their bytes don't overlap. A value is alive if it is read before it is written again. A
/// stack is read whenever an iteration adds its part to the other parts.
void expect_disjoint(const Plan& plan) {
  const Program& program = plan.program;
  const std::vector<OpId> order = in_order(program);
  const auto reads = [&](OpId op, ValueId value) {
    const auto operands = program.op_operands(op);
    const std::size_t first = program.kind(op) == OpKind::next ? 2 : 0;
    const bool is_added_to = program.kind(op) == OpKind::stack && program.result(op) == value;
    return is_added_to || std::ranges::any_of(operands.subspan(first), [&](ValueId operand) {
             return placed_as(program, operand) == value;
           });
  };
  std::uint64_t most = 0;
  for (std::size_t now = 0; now < order.size(); ++now) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> live;
    std::uint64_t sum = 0;
    for (const ValueId value : program.results) {
      if (plan.slots[value].place != Place::temp || placed_as(program, value) != value) continue;
      const auto writes = [&](OpId op) { return placed_as(program, program.result(op)) == value; };
      const auto run = std::span(order).first(now + 1);
      const auto left = std::span(order).subspan(now);
      const auto event = std::ranges::find_if(
          left.subspan(1), [&](OpId op) { return reads(op, value) || writes(op); });
      const bool is_read_later =
          std::ranges::any_of(run, writes) && event != left.end() && reads(*event, value);
      if (!is_read_later && !reads(order[now], value) && !writes(order[now])) continue;
      const auto bytes = static_cast<std::uint64_t>(program.type(value).bytes());
      ASSERT_EQ(plan.slots[value].offset % 64, 0U);
      ASSERT_LE(plan.slots[value].offset + bytes, plan.temp_bytes);
      live.emplace_back(plan.slots[value].offset, plan.slots[value].offset + bytes);
      sum += (bytes + 63) / 64 * 64;
    }
    std::ranges::sort(live);
    for (std::size_t i = 1; i < live.size(); ++i) ASSERT_LE(live[i - 1].second, live[i].first);
    most = std::max(most, sum);
  }
  EXPECT_GE(plan.temp_bytes_bound, most);  // the bound also counts waits in buckets
  EXPECT_GE(plan.temp_bytes, plan.temp_bytes_bound);
}

TEST(Plan, ValuesThatLiveAtOnceAreDisjointInRandomPrograms) {
  const Mesh mesh({2, 2, 2}, {"a", "b", "c"});
  std::uint64_t bytes = 0;
  std::uint64_t bound = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const Plan plan = compile(testing::random_program(mesh, random), mesh, kCpuTarget);
    expect_disjoint(plan);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << to_text(plan.program, mesh);
    bytes += plan.temp_bytes;
    bound += plan.temp_bytes_bound;
  }
  EXPECT_LE(static_cast<double>(bytes), 1.05 * static_cast<double>(bound));
}

TEST(Plan, OfATargetWithoutLoopsHasAllValuesInTheChipsMemory) {
  const Mesh mesh({2, 2}, {"a", "b"});
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const Program program = testing::random_program(mesh, random);
    const Plan plan = compile(program, mesh, testing::kContraryTarget);
    for (const PlanStep& step : plan.steps) EXPECT_NE(step.kind, StepKind::loop);
    for (const Slot& slot : plan.slots) EXPECT_LE(slot.place, Place::output);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << to_text(plan.program, mesh);
  }
}

/// Only kCpuTarget moves features to the last dim, so only its plans have transposes.
TEST(Plan, OfATargetWithFeaturesFirstHasNoTransposes) {
  Program program;
  Builder b(program);
  const ValueId x =
      program.add_input({DType::f32, {2, 3, 8, 8}}, InputKind::data, "x", Sharding::closed());
  const ValueId w =
      program.add_input({DType::f32, {5, 3, 1, 1}}, InputKind::param, "w", Sharding::closed());
  const ValueId y = b.convolution(x, w,
                                  {.lhs = {0, 1, 2, 3},
                                   .rhs = {1, 0, 2, 3},
                                   .result = {0, 1, 2, 3},
                                   .window = {WindowDim{}, WindowDim{}}});
  const WindowDim two{.size = 2, .stride = 2};
  const ValueId pooled = b.reduce_window(y, {ReduceKind::max, {{}, {}, two, two}});
  program.add_output(b.reshape(pooled, {2, 80}), "y", Sharding::closed());
  const auto transposes = [&](const Target& target) {
    return std::ranges::count(compile(program, kMesh, target).program.op_kinds, OpKind::transpose);
  };
  EXPECT_GT(transposes(kCpuTarget), 0);
  EXPECT_EQ(transposes(testing::kContraryTarget), 0);
}

const Mesh kGrid({2, 2}, {"data", "model"});
const AtomList kData = kGrid.axis_atoms(0);
const AtomList kModel = kGrid.axis_atoms(1);
const AtomList kAll{1, 2};

/// Returns a plan that gathers over `first` and then over `second`, and reads each result at once.
/// An all_reduce over `between` separates them, and one over `end` follows; either is left out if
/// its atoms are empty.
Plan two_gathers(AtomList first, AtomList between, AtomList second, AtomList end) {
  Program program;
  Builder build(program);
  ValueId x = program.add_input({DType::f32, {16, 4}}, InputKind::data, "x", Sharding::closed());
  const auto meet = [&](AtomList atoms) {
    if (!atoms.empty()) x = build.all_reduce(kGrid, x, atoms, ReduceKind::add);
  };
  const auto gather = [&](AtomList atoms, const char* name) {
    const ValueId read = build.unary(OpKind::tanh, build.all_gather(kGrid, x, atoms, 0));
    program.add_output(read, name, Sharding::closed());
  };
  meet(kAll);  // makes x, which is gathered, a temporary
  gather(first, "y");
  meet(between);
  gather(second, "z");
  meet(end);
  program.add_output(x, "x", Sharding::closed());
  const TensorType part{DType::f32, {16, 4}};
  const TensorType whole{DType::f32, {32, 4}};
  const std::array outputs{whole, whole, part};
  Plan plan = make_plan(program, kGrid, std::span(&part, 1), outputs,
                        testing::cpu_target_with({.shared_bytes_min = 512}));
  verify(plan, kGrid);
  return plan;
}

std::vector<ValueId> shared_values(const Plan& plan) {
  std::vector<ValueId> values;
  for (ValueId value = 0; value < plan.slots.size(); ++value) {
    if (plan.slots[value].place == Place::shared) values.push_back(value);
  }
  return values;
}

TEST(PlanShared, ReusesBytesOnlyWhenTheGroupHasMet) {
  constexpr std::uint64_t kOne = 512;  // the bytes of one gathered value
  EXPECT_EQ(two_gathers(kData, kData, kData, {}).shared_bytes, kOne);
  EXPECT_EQ(two_gathers(kData, kAll, kData, {}).shared_bytes, kOne);
  EXPECT_EQ(two_gathers(kData, {}, kData, {}).shared_bytes, 2 * kOne)
      << "stored before the chips meet in the gather itself";
  EXPECT_EQ(two_gathers(kData, kModel, kData, {}).shared_bytes, 2 * kOne) << "others met";
  EXPECT_EQ(two_gathers(kData, kAll, kModel, {}).shared_bytes, 2 * kOne) << "others read";
}

bool ends_with_barrier(const Plan& plan) { return plan.steps.back().kind == StepKind::barrier; }

TEST(PlanShared, EndsWithAMeetingOfAllChips) {
  EXPECT_TRUE(ends_with_barrier(two_gathers(kData, kAll, kData, {})));
  EXPECT_TRUE(ends_with_barrier(two_gathers(kData, kAll, kData, kData)));
  EXPECT_FALSE(ends_with_barrier(two_gathers(kData, {}, kData, kAll)));
  EXPECT_FALSE(ends_with_barrier(chain()));
}

TEST(PlanShared, LeavesSmallValuesAndOperandsOfCollectivesToEachChip) {
  Program program;
  Builder build(program);
  const ValueId x =
      program.add_input({DType::f32, {16, 4}}, InputKind::data, "x", Sharding::closed());
  const ValueId gathered = build.all_gather(kGrid, build.copy(x), kData, 0);
  program.add_output(build.all_reduce(kGrid, gathered, kModel, ReduceKind::add), "y",
                     Sharding::closed());
  const TensorType part{DType::f32, {16, 4}};
  const TensorType whole{DType::f32, {32, 4}};
  for (const std::int64_t least : {0, 65536}) {
    const Plan plan = make_plan(program, kGrid, std::span(&part, 1), std::span(&whole, 1),
                                testing::cpu_target_with({.shared_bytes_min = least}));
    verify(plan, kGrid);
    EXPECT_EQ(shared_values(plan).size(), 0U);
    EXPECT_EQ(plan.shared_bytes, 0U);
  }
}

TEST(PlanVerify, RejectsSharedValuesThatAreReadWhileOthersAreStored) {
  Plan plan = two_gathers(kData, kModel, kData, {});
  const std::vector<ValueId> shared = shared_values(plan);
  ASSERT_EQ(shared.size(), 2U);
  plan.slots[shared[0]].offset = plan.slots[shared[1]].offset;
  expect_error(Errc::corrupt, {"overlap"}, [&] { verify(plan, kGrid); });
  plan.slots[shared[0]].offset = plan.shared_bytes;
  expect_error(Errc::corrupt, {"within 1024 bytes"}, [&] { verify(plan, kGrid); });
}

TEST(PlanVerify, RejectsASharedValueThatIsNotGathered) {
  Plan plan = chain();
  plan.shared_bytes = 128;
  plan.slots[2] = {Place::shared, 0};
  expect_error(Errc::corrupt, {"%2 is shared"}, [&] { verify(plan, kMesh); });
}

/// Returns a plan of an all_gather of a chip's tanh along `dim`, or of a reduce_scatter of it.
Plan in_place(OpKind kind, int dim, DType dtype = DType::f32, bool is_read_twice = false) {
  Program program;
  Builder build(program);
  const TensorType part{dtype, {16, 4}};
  const ValueId x = program.add_input(part, InputKind::data, "x", Sharding::closed());
  const ValueId read = build.unary(OpKind::tanh, x);
  const ValueId moved = kind == OpKind::all_gather
                            ? build.all_gather(kGrid, read, kData, dim)
                            : build.reduce_scatter(kGrid, read, kData, ReduceKind::add, dim);
  std::vector<TensorType> results;
  const auto add_output = [&](ValueId value) {
    program.add_output(value, "y" + std::to_string(results.size()), Sharding::closed());
    results.push_back(program.type(value));
  };
  add_output(build.unary(OpKind::negate, moved));
  if (is_read_twice) {
    const ValueId other = kind == OpKind::all_gather ? read : moved;
    add_output(build.reduce(ReduceKind::add, other, std::array<std::int64_t, 1>{0}));
  }
  Plan plan = make_plan(program, kGrid, std::span(&part, 1), results,
                        testing::cpu_target_with({.shared_bytes_min = 0}));
  verify(plan, kGrid);
  return plan;
}

std::ptrdiff_t count(const Plan& plan, Place place) {
  return std::ranges::count(plan.slots, place, &Slot::place);
}

TEST(PlanShared, IsWrittenWhereItIsGathered) {
  EXPECT_EQ(count(in_place(OpKind::all_gather, 0), Place::part), 1);
  EXPECT_EQ(count(in_place(OpKind::all_gather, 0), Place::temp), 0);
  EXPECT_EQ(count(in_place(OpKind::all_gather, 1), Place::part), 0) << "not one range";
  EXPECT_EQ(count(in_place(OpKind::all_gather, 0, DType::f32, true), Place::part), 0)
      << "another op reads it too";
}

TEST(PlanShared, IsAddedWhereALoopReadsIt) {
  const auto is_added = [](const Plan& plan) {
    return is_added_by_loops(plan.program, plan.slots, plan.program.result(1));
  };
  EXPECT_TRUE(is_added(in_place(OpKind::reduce_scatter, 0)));
  EXPECT_TRUE(is_added(in_place(OpKind::reduce_scatter, 0, DType::bf16)));
  EXPECT_FALSE(is_added(in_place(OpKind::reduce_scatter, 0, DType::f64))) << "isn't compiled";
  EXPECT_FALSE(is_added(in_place(OpKind::reduce_scatter, 1))) << "not one range";
  EXPECT_FALSE(is_added(in_place(OpKind::reduce_scatter, 0, DType::f32, true)))
      << "another op reads it too";
  EXPECT_TRUE(ends_with_barrier(in_place(OpKind::reduce_scatter, 0)));
}

TEST(PlanVerify, RejectsAPartThatIsNotGatheredThere) {
  Plan plan = in_place(OpKind::all_gather, 1);
  ASSERT_EQ(shared_values(plan).size(), 1U);
  const ValueId whole = shared_values(plan)[0];
  plan.slots[plan.program.op_operands(plan.program.defining_op(whole))[0]] = {Place::part, whole};
  expect_error(Errc::corrupt, {"can't be a part of"}, [&] { verify(plan, kGrid); });
  plan = in_place(OpKind::all_gather, 0);
  const auto part = std::ranges::find(plan.slots, Place::part, &Slot::place);
  for (const std::uint64_t other : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
    part->offset = other;
    expect_error(Errc::corrupt, {"can't be a part of"}, [&] { verify(plan, kGrid); });
  }
}

TEST(PlanVerify, RejectsASumThatLoopsCannotAdd) {
  Plan plan = in_place(OpKind::reduce_scatter, 1);
  plan.slots[plan.program.result(1)] = {Place::tile, 0};
  EXPECT_THROW(verify(plan, kGrid), Error);
}

TEST(PlanVerify, RejectsAnOperandThatIsOverwrittenWhileOthersAddIt) {
  Plan plan = in_place(OpKind::reduce_scatter, 0);
  ASSERT_EQ(plan.steps.back().kind, StepKind::barrier);
  plan.steps.pop_back();
  EXPECT_THROW(verify(plan, kGrid), Error);
}

TEST(Plan, GivesNoPlaceToWhatOnlyALoopReads) {
  const Plan plan = plan_of(R"(program(%0: f32[4] data "x" [{}]) {
  %1 = constant {value = 2} : f32[4]
  %2 = add %0, %1 : f32[4]
  %3 = tanh %2 : f32[4]
  return %3 "y" [{}]
})");
  EXPECT_EQ(plan.slots[1].place, Place::tile);
  EXPECT_EQ(plan.slots[2].place, Place::tile);
  EXPECT_EQ(plan.temp_bytes, 0U);
}

/// Returns a plan that reshapes the result of a reverse; another reverse and `last` follow.
Plan reshaped(const std::string& last) {
  return plan_of(R"(program(%0: f32[8] data "x" [{}]) {
  %1 = reverse %0 {dims = [0]} : f32[8]
  %2 = reshape %1 : f32[2,4]
  %3 = reverse %1 {dims = [0]} : f32[8]
)" + last + "\n}");
}

TEST(Plan, ReadsAReshapedValueWhereItLies) {
  const Plan plan = reshaped(R"(  %4 = reverse %2 {dims = [1]} : f32[2,4]
  return %3 "y" [{}], %4 "z" [{}, {}])");
  EXPECT_EQ(plan.slots[2].place, Place::tile);
  EXPECT_EQ(plan.steps.size(), 3U);
  // The operand of the reshape lives as long as the reshaped value.
  EXPECT_EQ(lifetimes_of(plan.program, plan.steps, plan.slots)[1].last, 3U);
}

TEST(Plan, StoresAReshapedValueThatIsAnOutputOrThatASpreadReads) {
  EXPECT_EQ(reshaped(R"(  return %2 "y" [{}, {}], %3 "z" [{}])").slots[2].place, Place::output);
  const Plan plan = reshaped(R"(  %4 = broadcast_in_dim %2 {dims = [0, 1]} : f32[2,4,32]
  %5 = tanh %4 : f32[2,4,32]
  return %3 "y" [{}], %5 "z" [{}, {}, {}])");
  EXPECT_EQ(plan.slots[2].place, Place::temp);
}

TEST(PlanVerify, RejectsAValueWithoutAPlaceThatIsReadOutsideOfLoops) {
  Plan plan = chain();
  plan.slots[2].place = Place::tile;
  expect_error(Errc::corrupt, {"%2 has no place"}, [&] { verify(plan, kMesh); });
}

TEST(PlanVerify, RejectsOverlap) {
  Plan plan = chain();
  plan.slots[2].offset = plan.slots[1].offset;
  expect_error(Errc::corrupt, {"overlap", "%1", "%2"}, [&] { verify(plan, kMesh); });
}

TEST(PlanVerify, RejectsASlotOutsideItsRegionOrUnaligned) {
  Plan plan = chain();
  plan.slots[2].offset = 256;
  expect_error(Errc::corrupt, {"%2", "within 256 bytes"}, [&] { verify(plan, kMesh); });
  plan.slots[2].offset = ~std::uint64_t{63};
  expect_error(Errc::corrupt, {"%2"}, [&] { verify(plan, kMesh); });
  plan.slots[2].offset = 32;
  expect_error(Errc::corrupt, {"aligned"}, [&] { verify(plan, kMesh); });
}

TEST(PlanVerify, RejectsAnInputOrOutputThatIsNotWhereItIsBound) {
  Plan plan = chain();
  plan.slots[4] = {Place::output, 1};
  expect_error(Errc::corrupt, {"%4"}, [&] { verify(plan, kMesh); });
  plan = chain();
  plan.slots[0].place = Place::temp;
  expect_error(Errc::corrupt, {"%0"}, [&] { verify(plan, kMesh); });
  plan = chain();
  plan.program.outputs[0].value = 0;
  expect_error(Errc::corrupt, {"shares value %0"}, [&] { verify(plan, kMesh); });
}

TEST(PlanVerify, RejectsACollectiveThatTouchesAnInput) {
  Plan plan = plan_of(R"(program(%0: f32[4] data "x" [{"data"}]) {
  return %0 "y" [{}]
})");
  const auto gather = static_cast<std::size_t>(
      std::ranges::find(plan.program.op_kinds, OpKind::all_gather) - plan.program.op_kinds.begin());
  plan.program.operands[plan.program.operand_begin[gather]] = 0;
  expect_error(Errc::corrupt, {"all_gather", "%0"}, [&] { verify(plan, kMesh); });
}

TEST(PlanVerify, RejectsGlobalTypesAndMeshesThatDoNotFit) {
  Plan plan = chain();
  plan.input_types[0].shape = {33};
  expect_error(Errc::corrupt, {"x", "f32[33]", "f32[32]"}, [&] { verify(plan, kMesh); });
  plan = chain();
  plan.output_types.clear();
  expect_error(Errc::corrupt, {"outputs"}, [&] { verify(plan, kMesh); });
  plan = chain();
  plan.slots.pop_back();
  expect_error(Errc::corrupt, {"slots"}, [&] { verify(plan, kMesh); });
  expect_error(Errc::corrupt, {"mesh"}, [&] { verify(chain(), Mesh({1}, {"data"})); });
}

}  // namespace
}  // namespace weft::plan_test
