#include <gtest/gtest.h>

#include <set>

#include "spmd/ops/fingerprint.hpp"
#include "tests/unit/spmd/ops/every_op.hpp"

namespace weft::fingerprint_test {
namespace {

class FingerprintTest : public ::testing::Test {
 protected:
  /// Expects that the program after `edit` has a fingerprint that no earlier edit has given.
  void changes(std::string_view what, const std::function<void(Program&)>& edit) {
    Program edited = program_;
    edit(edited);
    EXPECT_TRUE(seen_.insert(fingerprint(edited).to_string()).second) << what;
  }

  const Mesh mesh_{{4, 2}, {"data", "model"}};
  const Program program_ = testing::every_op(mesh_);
  std::set<std::string> seen_{fingerprint(program_).to_string()};
};

TEST_F(FingerprintTest, HasThirtyTwoDigits) {
  EXPECT_EQ((Fingerprint{.low = 0xab, .high = 1}).to_string(), "000000000000000100000000000000ab");
  EXPECT_EQ(fingerprint(program_), fingerprint(testing::every_op(mesh_)));
}

TEST_F(FingerprintTest, IgnoresLocations) {
  Program other = program_;
  other.locs = {"", "elsewhere.cpp:1"};
  for (LocId& loc : other.op_locs) loc = 1;
  EXPECT_EQ(fingerprint(other), fingerprint(program_));
}

TEST_F(FingerprintTest, IgnoresWhereConstantsAndConstraintsLie) {
  const auto build = [](bool moved) {
    Program program;
    Builder builder(program);
    if (moved) {
      program.const_pool.resize(24);
      program.constraints.push_back(Sharding::open(1));
    }
    const ValueId value = builder.constant(2, {DType::f32, {3}});
    program.add_output(builder.sharding_constraint(value, Sharding::closed()), "y", {});
    return fingerprint(program);
  };
  EXPECT_EQ(build(false), build(true));
}

TEST_F(FingerprintTest, TellsEveryFieldApart) {
  changes("dtype", [](Program& p) { p.value_types[0].dtype = DType::f64; });
  changes("shape", [](Program& p) { p.value_types[0].shape[1] = 7; });
  changes("rank", [](Program& p) { p.value_types[0].shape = Shape{8}; });
  for (OpId op = 0; op < program_.num_ops(); ++op) {
    const std::string name = fmt::format("op {} {}", op, to_string(program_.kind(op)));
    changes(name + " kind", [op](Program& p) {
      p.op_kinds[op] = p.kind(op) == OpKind::copy ? OpKind::reshape : OpKind::copy;
    });
    changes(name + " result", [op](Program& p) { p.results[op] += 1000; });
    for (std::uint32_t i = program_.operand_begin[op]; i < program_.operand_begin[op + 1]; ++i) {
      changes(name + " operand", [i](Program& p) { p.operands[i] += 1000; });
    }
    const OpKind kind = program_.kind(op);
    if (kind == OpKind::constant || kind == OpKind::sharding_constraint) continue;
    if (kind == OpKind::custom_call) continue;
    for (std::uint32_t i = program_.attr_begin[op]; i < program_.attr_begin[op + 1]; ++i) {
      changes(name + " attribute", [i](Program& p) { p.attrs[i] += 1000; });
    }
  }
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    changes("input value", [i](Program& p) { p.inputs[i].value += 1000; });
    changes("input name", [i](Program& p) { p.inputs[i].name += 'x'; });
    changes("input sharding", [i](Program& p) { p.inputs[i].sharding.dims[0] = {3}; });
    changes("input kind", [i](Program& p) {
      p.inputs[i].kind = p.inputs[i].kind == InputKind::data ? InputKind::param : InputKind::data;
    });
  }
  for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
    changes("output value", [i](Program& p) { p.outputs[i].value += 1000; });
    changes("output name", [i](Program& p) { p.outputs[i].name += 'x'; });
    changes("output sharding", [i](Program& p) { p.outputs[i].sharding.dims[0] = {3}; });
    changes("output updates", [i](Program& p) { p.outputs[i].updates += 10; });
  }
  changes("fewer outputs", [](Program& p) { p.outputs.pop_back(); });
}

TEST_F(FingerprintTest, TellsEveryByteOfAConstantApart) {
  for (OpId op = 0; op < program_.num_ops(); ++op) {
    if (program_.kind(op) != OpKind::constant) continue;
    const auto first = static_cast<std::size_t>(program_.op_attrs(op)[0]);
    for (std::size_t i = 0; i < static_cast<std::size_t>(program_.op_attrs(op)[1]); ++i) {
      changes("constant", [&](Program& p) { p.const_pool[first + i] ^= std::byte{1}; });
    }
  }
}

TEST_F(FingerprintTest, TellsCustomTargetsApart) {
  changes("name", [](Program& p) { p.custom_targets[0].name += 'x'; });
  changes("rule", [](Program& p) { p.custom_targets[0].rule += ' '; });
}

TEST_F(FingerprintTest, TellsEveryFieldOfAShardingApart) {
  const auto edit = [&](std::string_view what, const std::function<void(Sharding&)>& body) {
    changes(what, [&](Program& p) { body(p.constraints[0]); });
  };
  for (std::size_t dim = 0; dim < kDimCountMax; ++dim) {
    edit("dim", [dim](Sharding& s) { s.dims[dim] = {3}; });
  }
  edit("provenance", [](Sharding& s) { s.set_priority(1, 5); });
  edit("unreduced", [](Sharding& s) { s.unreduced ^= 2; });
  edit("replicated", [](Sharding& s) { s.replicated ^= 4; });
  edit("open", [](Sharding& s) { s.open_mask ^= 2; });
  edit("reduce kind", [](Sharding& s) { s.reduce_kind = ReduceKind::max; });
}

}  // namespace
}  // namespace weft::fingerprint_test
