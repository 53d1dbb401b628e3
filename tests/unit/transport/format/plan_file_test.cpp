#include "transport/format/plan_file.hpp"
#include "spmd/ops/fingerprint.hpp"

#include <algorithm>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include <weft_schema/plan_generated.h>

#include "spmd/ops/verify.hpp"
#include "tests/support/golden.hpp"
#include "tests/unit/transport/format/damage.hpp"
#include "tests/unit/transport/format/sample_plan.hpp"

namespace weft::plan_file_test {
namespace {

using testing::AlignedCopy;
using testing::expect_golden;
using testing::read_golden;

/// Encodes the plan after `spoil` has changed it, and expects that reading it fails with `why`.
void expect_refused_for(std::string_view why, const std::function<void(Plan&)>& spoil) {
  Plan plan = sample_plan();
  spoil(plan);
  testing::expect_error(Errc::corrupt, {why}, [&] { decode_plan(encode_plan(plan)); });
}

TEST(PlanFile, SampleIsAPlan) {
  const Plan plan = sample_plan();
  EXPECT_NO_THROW(verify(plan, mesh_of(plan)));
}

TEST(PlanFile, ReadsWhatWasWritten) {
  const Plan plan = sample_plan();
  const Plan read = decode_plan(encode_plan(plan));
  EXPECT_EQ(fingerprint(read.program), fingerprint(plan.program));
  EXPECT_EQ(read.program.locs, plan.program.locs);
  EXPECT_EQ(read.program.op_locs, plan.program.op_locs);
  EXPECT_EQ(read.input_types, plan.input_types);
  EXPECT_EQ(read.output_types, plan.output_types);
  EXPECT_EQ(read.mesh_shape, plan.mesh_shape);
  EXPECT_EQ(read.axis_names, plan.axis_names);
  EXPECT_EQ(read.temp_bytes, plan.temp_bytes);
  EXPECT_EQ(read.temp_bytes_bound, plan.temp_bytes_bound);
  EXPECT_NO_THROW(verify(read, mesh_of(read)));
  EXPECT_EQ(as_text(encode_plan(read)), as_text(encode_plan(plan)));
}

TEST(PlanFile, KeepsTheHostsOfTheMesh) {
  Plan plan = sample_plan();
  EXPECT_TRUE(decode_plan(encode_plan(plan)).dcn_shape.empty());
  plan.dcn_shape = {2, 1};
  const Plan read = decode_plan(encode_plan(plan));
  EXPECT_EQ(read.dcn_shape, plan.dcn_shape);
  EXPECT_NO_THROW(verify(read, mesh_of(read)));
  expect_refused_for("hosts[0] is 3", [](Plan& spoilt) { spoilt.dcn_shape = {3, 1}; });
  expect_refused_for("has 1 entries", [](Plan& spoilt) { spoilt.dcn_shape = {2}; });
  expect_refused_for("hosts[1] is 0", [](Plan& spoilt) { spoilt.dcn_shape = {1, 0}; });
}

TEST(PlanFile, KeepsEveryDtype) {
  for (std::size_t dtype = 0; dtype < kDTypeCount; ++dtype) {
    Plan plan = sample_plan();
    plan.program.value_types[0].dtype = static_cast<DType>(dtype);
    plan.input_types[0].dtype = static_cast<DType>(dtype);
    const Plan read = decode_plan(encode_plan(plan));
    EXPECT_EQ(read.program.value_types, plan.program.value_types);
    EXPECT_EQ(read.input_types, plan.input_types);
  }
}

TEST(PlanFile, KeepsWhatACustomCallCalls) {
  Plan plan = sample_plan();
  // This plan has a custom call instead of the dot_general x^T x.
  plan.program.op_kinds[0] = OpKind::custom_call;
  plan.program.custom_targets = {{"other", "s -> s"}, {"gram", "b i, b j -> i j reduction={b}"}};
  plan.program.attrs.erase(plan.program.attrs.begin(),
                           plan.program.attrs.begin() + plan.program.attr_begin[1] - 1);
  const std::uint32_t fewer = plan.program.attr_begin[1] - 1;
  for (std::uint32_t& begin : plan.program.attr_begin) begin -= std::min(begin, fewer);
  plan.program.attrs[0] = 1;
  const Plan read = decode_plan(encode_plan(plan));
  EXPECT_NO_THROW(verify(read, mesh_of(read)));
  EXPECT_EQ(read.program.custom_targets, plan.program.custom_targets);
  EXPECT_EQ(fingerprint(read.program), fingerprint(plan.program));
}

TEST(PlanFile, BytesAreThoseOfVersionTwo) {
  expect_golden("plan-v2.bin", as_text(encode_plan(sample_plan())));
}

TEST(PlanFile, ReadsVersionTwo) {
  const std::string golden = read_golden("plan-v2.bin");
  const Plan plan = decode_plan(AlignedCopy(std::as_bytes(std::span(golden))).bytes());
  const Plan expected = sample_plan();
  EXPECT_NO_THROW(verify(plan, mesh_of(plan)));
  EXPECT_EQ(fingerprint(plan.program), fingerprint(expected.program));
  EXPECT_EQ(plan.steps, expected.steps);
  EXPECT_EQ(plan.tiles, expected.tiles);
  EXPECT_EQ(plan.held, expected.held);
  EXPECT_EQ(plan.donated, expected.donated);
}

/// The format had no steps in version one.
TEST(PlanFile, RefusesVersionOneAndSaysWhatToDo) {
  const std::string golden = read_golden("plan-v1.bin");
  const AlignedCopy copy(std::as_bytes(std::span(golden)));
  testing::expect_error(Errc::version,
                        {"plan file", "has version 1, of an older weft", "version 2", "it again"},
                        [&] { decode_plan(copy.bytes()); });
}

TEST(PlanFile, RefusesEveryTruncation) {
  expect_truncations_refused(encode_plan(sample_plan()), decode_plan);
}

TEST(PlanFile, RefusesEveryFlippedBit) {
  expect_bit_flips_refused(encode_plan(sample_plan()), decode_plan);
}

TEST(PlanFile, DamageBehindTheSealIsRefusedOrInRange) {
  const auto accepted = [](const Plan& plan) {
    EXPECT_NO_THROW(decode_plan(encode_plan(plan)));
    verify(plan, mesh_of(plan));
  };
  const int refused =
      flip_behind_the_seal(kPlanFormat, encode_plan(sample_plan()), decode_plan, accepted);
  EXPECT_GT(refused, 0);
}

TEST(PlanFile, RefusesWhatIsOutOfRange) {
  expect_refused_for("operands has the number 7, expected less than 7",
                     [](Plan& p) { p.program.operands.back() = 7; });
  expect_refused_for("results has the number 9", [](Plan& p) { p.program.results[0] = 9; });
  expect_refused_for("value_ops has the number 5", [](Plan& p) { p.program.value_ops.back() = 5; });
  expect_refused_for("operand_begin", [](Plan& p) { p.program.operand_begin[1] = 9; });
  expect_refused_for("attr_begin", [](Plan& p) { p.program.attr_begin.pop_back(); });
  expect_refused_for("op_locs has the number 3", [](Plan& p) { p.program.op_locs[0] = 3; });
  expect_refused_for("op kind 999", [](Plan& p) { p.program.op_kinds[0] = OpKind(999); });
  expect_refused_for("inputs has", [](Plan& p) { p.program.inputs[0].value = 7; });
  expect_refused_for("kind of input", [](Plan& p) { p.program.inputs[0].kind = InputKind(5); });
  expect_refused_for("outputs has", [](Plan& p) { p.program.outputs[0].value = kNoId; });
  expect_refused_for("updates input 2 of 2", [](Plan& p) { p.program.outputs[0].updates = 2; });
  expect_refused_for("dtype", [](Plan& p) { p.program.value_types[0].dtype = DType(10); });
  expect_refused_for("2^53",
                     [](Plan& p) { p.program.value_types[0].shape[0] = std::int64_t{1} << 52; });
  expect_refused_for("slots has 6", [](Plan& p) { p.slots.pop_back(); });
  expect_refused_for("place 6", [](Plan& p) { p.slots[0].place = Place(6); });
  expect_refused_for("a slot is at 7, but its region ends at 7", [](Plan& p) {
    p.slots[2] = {Place::part, 7};
  });
  expect_refused_for("a slot is at 64, but its region ends at 0", [](Plan& p) {
    p.slots[4] = {Place::shared, 64};
  });
  expect_refused_for("a slot is at 2, but its region ends at 2",
                     [](Plan& p) { p.slots[0].offset = 2; });
  expect_refused_for("a slot is at 256, but its region ends at 128",
                     [](Plan& p) { p.slots[2].offset = 256; });
  expect_refused_for("kind of step 11", [](Plan& p) { p.steps[0].kind = StepKind(11); });
  expect_refused_for("3 ops beginning at op 3, but there are 5 ops",
                     [](Plan& p) { p.steps[4].count = 3; });
  expect_refused_for("1 ops beginning at op 6, but there are 5 ops",
                     [](Plan& p) { p.steps[0].first = 6; });
  expect_refused_for("in step 5", [](Plan& p) { p.tiles[0].step = 5; });
  expect_refused_for("of value 7", [](Plan& p) { p.tiles[0].value = 7; });
  expect_refused_for("held has the number 1, expected less than 1", [](Plan& p) { p.held = {1}; });
}

TEST(PlanFile, RefusesAShardingThatIsNotOfItsMesh) {
  expect_refused_for("atom 2 of 1",
                     [](Plan& p) { p.program.inputs[0].sharding.dims[1] = AtomList{2}; });
  expect_refused_for("atom 0 of 1", [](Plan& p) {
    p.program.inputs[0].sharding.dims[1] = AtomList::from_bits(0x10);
  });
  expect_refused_for("an atom twice",
                     [](Plan& p) { p.program.inputs[0].sharding.dims[1] = AtomList{1}; });
  expect_refused_for("masks", [](Plan& p) { p.program.inputs[0].sharding.unreduced = 1; });
  expect_refused_for("masks", [](Plan& p) { p.program.inputs[0].sharding.replicated = 4; });
  expect_refused_for("masks", [](Plan& p) { p.program.inputs[0].sharding.open_mask = 64; });
  expect_refused_for("reduction 3",
                     [](Plan& p) { p.program.inputs[0].sharding.reduce_kind = ReduceKind(3); });
}

TEST(PlanFile, RefusesAMeshThatIsNone) {
  expect_refused_for("mesh axis of size 0", [](Plan& p) { p.mesh_shape[0] = 0; });
  expect_refused_for("at most 65536", [](Plan& p) { p.mesh_shape[0] = 65537; });
  expect_refused_for("plan file", [](Plan& p) { p.axis_names.pop_back(); });
  expect_refused_for("plan file", [](Plan& p) { p.axis_names[1] = "data"; });
}

}  // namespace
}  // namespace weft::plan_file_test
