#include "spmd/passes/pad_uneven.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/reference/interpret.hpp"
#include "spmd/text/text.hpp"

namespace weft::pad_uneven_test {
namespace {

const Mesh kMesh({4}, {"model"});

Sharding by(const Mesh& mesh, const PartitionSpec& spec, const Shape& shape) {
  return Sharding::from_spec(mesh, spec, shape, "test");
}

std::size_t count(const Program& program, OpKind kind) {
  return static_cast<std::size_t>(std::ranges::count(program.op_kinds, kind));
}

/// Computes the scores of 10 words, whose rows in a table are sharded over 4 chips.
struct Words {
  Program program;
  Builder build{program};
  ValueId table = program.add_input({DType::f32, {10, 8}}, InputKind::param, "table",
                                    by(kMesh, {{"model"}, {}}, {10, 8}));
  ValueId hidden = program.add_input({DType::f32, {3, 8}}, InputKind::data, "hidden", {});

  ValueId scores() {
    return build.dot_general(
        hidden, table,
        {.lhs_batch = {}, .rhs_batch = {}, .lhs_contracting = {1}, .rhs_contracting = {1}});
  }
};

std::vector<Elements> run(const Plan& plan, std::span<const Elements> inputs) {
  return simulate(plan.program, kMesh, plan.input_types, plan.output_types, inputs);
}

Elements numbers(std::int64_t count) {
  Elements elements;
  for (std::int64_t i = 0; i < count; ++i) elements.push_back(static_cast<double>(i % 7) - 3);
  return elements;
}

TEST(PadUneven, LeavesWhatIsDivided) {
  Program program;
  program.add_input({DType::f32, {8}}, InputKind::param, "w", by(kMesh, {{"model"}}, {8}));
  EXPECT_FALSE(pad_uneven(program, kMesh));
}

TEST(PadUneven, RoundsTheShapesUpThatAFactorReaches) {
  Words words;
  words.program.add_output(words.scores(), "scores", Sharding::open(2));
  const auto padded = pad_uneven(words.program, kMesh);
  ASSERT_TRUE(padded);
  EXPECT_EQ(padded->shape(words.table), (Shape{12, 8}));
  EXPECT_EQ(padded->shape(words.hidden), (Shape{3, 8}));
  EXPECT_EQ(padded->shape(padded->result(0)), (Shape{3, 12}));
  EXPECT_EQ(padded->shape(padded->outputs[0].value), (Shape{3, 10}));
}

/// Neither the table's rows nor the scores are gathered: each chip reduces the scores of its own
/// words.
TEST(PadUneven, ReducesWhatIsInsideOnly) {
  Words words;
  const std::array<std::int64_t, 1> words_dim{1};
  words.program.add_output(words.build.reduce(ReduceKind::max, words.scores(), words_dim), "best",
                           Sharding::closed());
  const Plan plan = compile(words.program, kMesh, kCpuTarget);
  EXPECT_EQ(count(plan.program, OpKind::all_gather), 0U);
  EXPECT_EQ(count(plan.program, OpKind::all_reduce), 1U);
  const std::vector<Elements> inputs{numbers(80), numbers(24)};
  EXPECT_EQ(run(plan, inputs), interpret(words.program, inputs));
}

/// The composite softmax would count the padding, so it is expanded into ops that don't.
TEST(PadUneven, ExpandsACompositeOfAPaddedRow) {
  Words words;
  words.program.add_output(words.build.softmax(words.scores()), "p", Sharding::open(2));
  const auto padded = pad_uneven(words.program, kMesh);
  ASSERT_TRUE(padded);
  EXPECT_EQ(count(*padded, OpKind::softmax), 0U);
  EXPECT_EQ(count(*padded, OpKind::exponential), 1U);
}

/// The padding has arbitrary integers, and dividing by these must not fail.
TEST(PadUneven, DividesIntegers) {
  Program program;
  Builder build(program);
  const TensorType type{DType::i32, {6}};
  const Sharding sharded = by(kMesh, {{"model"}}, {6});
  const ValueId x = program.add_input(type, InputKind::data, "x", sharded);
  const ValueId y = program.add_input(type, InputKind::data, "y", sharded);
  program.add_output(build.binary(OpKind::divide, x, y), "q", sharded);
  const std::vector<Elements> inputs{{9, 8, 7, 6, 5, 4}, {1, 2, 3, 3, 2, 1}};
  EXPECT_EQ(run(compile(program, kMesh, kCpuTarget), inputs), interpret(program, inputs));
}

TEST(PadUneven, DrawsTheNumbersOfTheWhole) {
  Program program;
  Builder build(program);
  const ValueId state = program.add_input({DType::u32, {4}}, InputKind::runtime_scalar, "key", {});
  program.add_output(build.rng_bit_generator(state, {5, 3}), "bits",
                     by(kMesh, {{}, {"model"}}, {5, 3}));
  const std::vector<Elements> inputs{{1, 2, 3, 4}};
  EXPECT_EQ(run(compile(program, kMesh, kCpuTarget), inputs), interpret(program, inputs));
}

/// The dims of a sum are sharded over 2 and over 3 chips, so the sum is padded for both.
TEST(PadUneven, SatisfiesAllMarks) {
  const Mesh mesh({2, 3}, {"a", "b"});
  Program program;
  Builder build(program);
  const TensorType type{DType::f32, {7}};
  const auto sharded = [&](const char* axis) { return by(mesh, {{axis}}, {7}); };
  const ValueId x = program.add_input(type, InputKind::param, "x", sharded("a"));
  const ValueId y = program.add_input(type, InputKind::param, "y", sharded("b"));
  const ValueId sum = build.binary(OpKind::add, x, y);
  program.add_output(sum, "sum", sharded("b"));
  const auto padded = pad_uneven(program, mesh);
  ASSERT_TRUE(padded);
  EXPECT_EQ(padded->shape(x), (Shape{8}));
  EXPECT_EQ(padded->shape(y), (Shape{9}));
  EXPECT_EQ(padded->shape(padded->outputs[0].value), (Shape{9}));
  const std::vector<Elements> inputs{numbers(7), numbers(7)};
  const Plan plan = compile(program, mesh, kCpuTarget);
  EXPECT_EQ(simulate(plan.program, mesh, plan.input_types, plan.output_types, inputs),
            interpret(program, inputs));
}

}  // namespace
}  // namespace weft::pad_uneven_test
