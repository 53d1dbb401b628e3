#include "spmd/ops/verify.hpp"
#include "spmd/ops/fingerprint.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "spmd/text/text.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/unit/spmd/ops/every_op.hpp"

namespace weft::verify_test {
namespace {

using testing::expect_error;

class VerifyTest : public ::testing::Test {
 protected:
  /// Expects that verify() refuses the program after `edit` as corrupt, with these words.
  void refuses(std::initializer_list<std::string_view> words,
               const std::function<void(Program&)>& edit) const {
    Program edited = program_;
    edit(edited);
    expect_error(Errc::corrupt, words, [&] { verify(edited, mesh_); });
  }

  OpId find(OpKind kind) const {
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      if (program_.kind(op) == kind) return op;
    }
    ADD_FAILURE() << "no " << to_string(kind);
    return 0;
  }

  const Mesh mesh_{{4, 2}, {"data", "model"}};
  const Program program_ = testing::every_op(mesh_);
};

TEST_F(VerifyTest, AcceptsAProgramOfEveryKind) {
  verify(program_, mesh_);
  verify(Program{}, mesh_);
}

TEST_F(VerifyTest, RefusesArraysOfOtherSizes) {
  refuses({"value_ops"}, [](Program& p) { p.value_ops.pop_back(); });
  refuses({"value_ops"}, [](Program& p) { p.value_types.pop_back(); });
  refuses({"results"}, [](Program& p) { p.results.pop_back(); });
  refuses({"op_locs"}, [](Program& p) { p.op_locs.push_back(0); });
  refuses({"operand_begin"}, [](Program& p) { p.operand_begin.push_back(0); });
  refuses({"operand_begin"}, [](Program& p) { p.operand_begin.clear(); });
  refuses({"operand_begin", "ascend"}, [](Program& p) { p.operands.pop_back(); });
  refuses({"attr_begin", "ascend"}, [](Program& p) { p.attrs.push_back(0); });
  refuses({"attr_begin", "ascend"}, [](Program& p) { p.attr_begin[1] = 100000; });
  refuses({"attr_begin", "ascend"}, [](Program& p) { p.attr_begin[0] = 1; });
  refuses({"locs"}, [](Program& p) { p.locs.clear(); });
  refuses({"line break"}, [](Program& p) { p.locs[1] += "\n"; });
  refuses({"location 9"}, [](Program& p) { p.op_locs[2] = 9; });
}

TEST_F(VerifyTest, RefusesTypesThatAreNone) {
  refuses({"%0", "dtype 10"}, [](Program& p) { p.value_types[0].dtype = static_cast<DType>(10); });
  refuses({"%1", "size -1"}, [](Program& p) { p.value_types[1].shape[0] = -1; });
  refuses({"%1", "2^53"}, [](Program& p) {
    p.value_types[1].shape[0] = p.value_types[1].shape[1] = std::int64_t{1} << 40;
  });
}

TEST_F(VerifyTest, RefusesValuesWithoutOneDefinition) {
  refuses({"op 1", "again"}, [](Program& p) { p.results[1] = p.results[0]; });
  refuses({"op 0", "there are"}, [](Program& p) { p.results[0] = kNoId; });
  refuses({"input 1", "again"}, [](Program& p) { p.inputs[1].value = 0; });
  refuses({"input 0", "there are"}, [](Program& p) { p.inputs[0].value = 5000; });
  refuses({"input 0", "value_ops"}, [](Program& p) { p.inputs[0].value = p.results[0]; });
  refuses({"value_ops"}, [](Program& p) { p.value_ops[p.results[3]] = 4; });
  refuses({"value_ops"}, [](Program& p) { p.value_ops[p.results[3]] = kNoId; });
  refuses({"%3", "no input or op"}, [](Program& p) {
    p.value_types.insert(p.value_types.begin() + 3, TensorType{});
    p.value_ops.insert(p.value_ops.begin() + 3, kNoId);
    for (ValueId& value : p.results) ++value;
    for (ProgramInput& input : p.inputs) input.value += input.value >= 3 ? 1 : 0;
  });
}

TEST_F(VerifyTest, RefusesUseBeforeDefinition) {
  const OpId op = find(OpKind::negate);
  const std::string name = fmt::format("op {} (negate at train.cpp:41)", op);
  const auto operand = [&](Program& p) -> ValueId& { return p.operands[p.operand_begin[op]]; };
  refuses({name, "not before"}, [&](Program& p) { operand(p) = p.results[op]; });
  refuses({name, "not before"}, [&](Program& p) { operand(p) = p.results[op + 1]; });
  refuses({name, "doesn't exist"}, [&](Program& p) { operand(p) = p.num_values(); });
}

TEST_F(VerifyTest, RefusesKindsAndCountsThatDoNotFit) {
  const OpId op = find(OpKind::tanh);
  refuses({"isn't an OpKind"}, [&](Program& p) { p.op_kinds[op] = static_cast<OpKind>(999); });
  refuses({"has 1 operands; it takes 2"}, [&](Program& p) { p.op_kinds[op] = OpKind::add; });
  refuses({"has 0 attribute words; it takes 2"},
          [&](Program& p) { p.op_kinds[op] = OpKind::all_gather; });
}

TEST_F(VerifyTest, RefusesResultsOfAnotherType) {
  const OpId op = find(OpKind::dot_general);
  refuses({"dot_general", "the result is f32[8,5]", "f32[8,6]"},
          [&](Program& p) { p.value_types[p.results[op]].shape[1] = 6; });
  const OpId compare = find(OpKind::compare);
  refuses({"the result is pred[8,6]", "f32[8,6]"},
          [&](Program& p) { p.value_types[p.results[compare]].dtype = DType::f32; });
}

TEST_F(VerifyTest, RefusesConstantsOutsideThePool) {
  const OpId op = find(OpKind::constant);
  const auto attr = [&](Program& p, std::uint32_t i) -> std::int64_t& {
    return p.attrs[p.attr_begin[op] + i];
  };
  for (const std::int64_t offset : {std::int64_t{-8}, std::int64_t{4}, std::int64_t{1} << 40,
                                    std::numeric_limits<std::int64_t>::max() - 7}) {
    refuses({"constant pool"}, [&](Program& p) { attr(p, 0) = offset; });
  }
  refuses({"constant pool"}, [&](Program& p) { p.const_pool.clear(); });
  refuses({"bytes"}, [&](Program& p) { attr(p, 1) = -1; });
}

TEST_F(VerifyTest, RefusesConstraintsOutsideTheTable) {
  const OpId op = find(OpKind::sharding_constraint);
  for (const std::int64_t index : {-1, 1}) {
    refuses({"constraint", "table of 1"}, [&](Program& p) { p.attrs[p.attr_begin[op]] = index; });
  }
}

TEST_F(VerifyTest, RefusesShardingsThatAreNone) {
  const auto refuses_sharding = [&](std::initializer_list<std::string_view> words,
                                    const std::function<void(Sharding&)>& edit) {
    refuses(words, [&](Program& p) { edit(p.inputs[0].sharding); });
    refuses(words, [&](Program& p) { edit(p.outputs.back().sharding = {}); });
    refuses(words, [&](Program& p) { edit(p.constraints[0] = {}); });
  };
  refuses_sharding({"not a list of atoms"}, [](Sharding& s) { s.dims[0] = {4}; });
  refuses_sharding({"not a list of atoms"}, [](Sharding& s) { s.dims[0] = {1, 1}; });
  refuses_sharding({"0x10", "not a list of atoms"},
                   [](Sharding& s) { s.dims[0] = AtomList::from_bits(0x10); });
  refuses_sharding({"atoms for dim 3"}, [](Sharding& s) { s.dims[3] = {3}; });
  refuses_sharding({"mesh (4,2)", "1..3"}, [](Sharding& s) { s.replicated = 0x10; });
  refuses_sharding({"mesh (4,2)", "1..3"}, [](Sharding& s) { s.unreduced = 1; });
  refuses_sharding({"priority for atom 4"}, [](Sharding& s) { s.set_priority(4, 1); });
  refuses_sharding({"opens dims"}, [](Sharding& s) { s.open_mask = 0b100; });
  refuses_sharding({"reduce kind 3"},
                   [](Sharding& s) { s.reduce_kind = static_cast<ReduceKind>(3); });
}

TEST_F(VerifyTest, RefusesAnAtomThatStandsTwice) {
  refuses({"input 0", "twice"}, [](Program& p) { p.inputs[0].sharding.dims[1] = {1}; });
  refuses({"input 0", "twice"}, [](Program& p) { p.inputs[0].sharding.replicated = 0b10; });
  refuses({"op", "twice"}, [](Program& p) { p.constraints[0].replicated |= 0b1000; });
}

TEST_F(VerifyTest, RefusesUnreducedInputsAndOutputs) {
  refuses({"input 0 \"x\"", "unreduced"}, [](Program& p) { p.inputs[0].sharding.unreduced = 8; });
  refuses({"\"m\"", "unreduced"}, [](Program& p) { p.outputs.back().sharding.unreduced = 8; });
}

TEST_F(VerifyTest, RefusesInputsAndOutputsThatAreNone) {
  refuses({"input 0 \"x\"", "kind 5"},
          [](Program& p) { p.inputs[0].kind = static_cast<InputKind>(5); });
  refuses({"\"m\"", "there are"}, [](Program& p) { p.outputs.back().value = kNoId; });
}

TEST_F(VerifyTest, RefusesUpdatesThatDoNotFit) {
  const auto last = [](Program& p) -> ProgramOutput& { return p.outputs.back(); };
  refuses({"updates input 8"}, [&](Program& p) { last(p).updates = 8; });
  refuses({"updates input -2"}, [&](Program& p) { last(p).updates = -2; });
  refuses({"updates \"x\"", "is data"}, [&](Program& p) { last(p).updates = 0; });
  refuses({"is i64[] but updates", "f32[5,6]"}, [&](Program& p) { last(p).updates = 1; });
  refuses({"input 2 a second time"}, [](Program& p) { p.outputs.push_back(p.outputs.back()); });
  refuses({"sharded in another way"}, [](Program& p) {
    p.inputs[1].sharding = Sharding::closed();
    p.outputs[p.outputs.size() - 2].sharding = Sharding::closed();
    p.outputs[p.outputs.size() - 2].sharding.dims[1] = {3};
  });
}

/// A program with any one word changed is refused, or can still be printed and parsed.
TEST_F(VerifyTest, NoWordBreaksIt) {
  const auto try_values = [&]<typename T>(std::vector<T> Program::*array) {
    for (std::size_t i = 0; i < (program_.*array).size(); ++i) {
      for (const std::int64_t value :
           {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{17},
            std::int64_t{0x12}, std::int64_t{1} << 20, std::numeric_limits<std::int64_t>::max(),
            std::numeric_limits<std::int64_t>::min()}) {
        Program edited = program_;
        (edited.*array)[i] = static_cast<T>(value);
        try {
          verify(edited, mesh_);
        } catch (const Error& error) {
          EXPECT_EQ(to_string(error.code()), "corrupt");
          continue;
        }
        EXPECT_EQ(fingerprint(parse_program(to_text(edited, mesh_), mesh_)), fingerprint(edited));
      }
    }
  };
  try_values(&Program::value_ops);
  try_values(&Program::op_kinds);
  try_values(&Program::operand_begin);
  try_values(&Program::operands);
  try_values(&Program::results);
  try_values(&Program::attr_begin);
  try_values(&Program::attrs);
  try_values(&Program::op_locs);
}

}  // namespace
}  // namespace weft::verify_test
