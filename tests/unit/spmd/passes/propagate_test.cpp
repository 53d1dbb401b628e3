#include "spmd/passes/propagate.hpp"

#include <gtest/gtest.h>

#include "spmd/text/text.hpp"
#include "tests/support/mlp.hpp"

namespace weft::propagate_test {
namespace {

using testing::Mlp;

const Mesh kMesh({4, 2}, {"data", "model"});

std::string text(const Program& program, const std::vector<Sharding>& shardings, ValueId value,
                 const Mesh& mesh = kMesh) {
  Sharding sharding = shardings[value];
  sharding.open_mask = 0;
  return sharding.to_string(mesh, program.shape(value).size());
}

/// Returns the sharding of every value in order, without marks of open dims.
std::vector<std::string> propagated(const std::string& program_text, const Mesh& mesh = kMesh) {
  const Program program = parse_program(program_text, mesh);
  const std::vector<Sharding> shardings = propagate(program, mesh);
  std::vector<std::string> lines;
  for (ValueId value = 0; value < program.num_values(); ++value) {
    lines.push_back(text(program, shardings, value, mesh));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Propagate, GoesForwardAndBackwardThroughElementwiseOps) {
  EXPECT_EQ(propagated(R"(program(%0: f32[8,8] data "x" [{"data"}, {}],
                                  %1: f32[8,8] data "y" [{?}, {?}]) {
  %2 = add %0, %1 : f32[8,8]
  return %2 "z" [{?}, {"model"}]
})"),
            (Lines{"[{\"data\"}, {}]", "[{\"data\"}, {\"model\"}]", "[{\"data\"}, {\"model\"}]"}));
}

TEST(Propagate, NeverExtendsAClosedDimNorUsesAReplicatedAxis) {
  EXPECT_EQ(propagated(R"(program(%0: f32[8,8] data "x" [{"data"}, {"model"}],
                                  %1: f32[8,8] data "y" [{}, {?}],
                                  %2: f32[8,8] data "w" [{?}, {?}] replicated{"data"}) {
  %3 = add %0, %1 : f32[8,8]
  %4 = add %0, %2 : f32[8,8]
  return %3 "z" [{?}, {?}], %4 "v" [{?}, {?}]
})"),
            (Lines{"[{\"data\"}, {\"model\"}]", "[{}, {\"model\"}]",
                   "[{}, {\"model\"}] replicated{\"data\"}", "[{\"data\"}, {\"model\"}]",
                   "[{\"data\"}, {\"model\"}]"}));
}

TEST(Propagate, PinsTheClosedDimsOfAConstraintOnItsResultOnly) {
  EXPECT_EQ(propagated(R"(program(%0: f32[8,8] data "x" [{"data"}, {?}]) {
  %1 = sharding_constraint %0 {sharding = [{}, {"model"?}]} : f32[8,8]
  %2 = tanh %1 : f32[8,8]
  return %2 "z" [{?}, {?}]
})"),
            (Lines{"[{\"data\"}, {\"model\"}]", "[{}, {\"model\"}]", "[{}, {\"model\"}]"}));
}

TEST(Propagate, InAConflictTheLargerSourceWins) {
  // "data" could shard either free dim of the product. It shards the dim of the larger operand.
  const auto product = [](int rows, int columns) {
    return propagated(fmt::format(
        R"(program(%0: f32[{0},8] data "x" [{{"data"}}, {{}}],
                   %1: f32[8,{1}] data "w" [{{}}, {{"data"}}]) {{
  %2 = dot_general %0, %1 {{contracting = [1] x [0]}} : f32[{0},{1}]
  return %2 "z" [{{?}}, {{?}}]
}})",
        rows, columns))[2];
  };
  EXPECT_EQ(product(16, 8), "[{\"data\"}, {}]");
  EXPECT_EQ(product(8, 16), "[{}, {\"data\"}]");
  EXPECT_EQ(product(8, 8), "[{\"data\"}, {}]");
}

TEST(Propagate, ContractionsPassShardingsBetweenTheirOperands) {
  EXPECT_EQ(propagated(R"(program(%0: f32[4,8] data "x" [{}, {"model"}],
                                  %1: f32[8,6] param "w" [{?}, {?}]) {
  %2 = dot_general %0, %1 {contracting = [1] x [0]} : f32[4,6]
  return %2 "z" [{?}, {?}]
})"),
            (Lines{"[{}, {\"model\"}]", "[{\"model\"}, {}]", "[{}, {}]"}));
}

TEST(Propagate, AReshapedMinorPartIsShardedOnlyBehindAFullMajorPart) {
  EXPECT_EQ(propagated(R"(program(%0: f32[4,6] data "x" [{"data"}, {"model"}]) {
  %1 = reshape %0 : f32[24]
  return %1 "z" [{?}]
})")[1],
            "[{\"data\", \"model\"}]");
  EXPECT_EQ(propagated(R"(program(%0: f32[8,6] data "x" [{"data"}, {"model"}]) {
  %1 = reshape %0 : f32[48]
  return %1 "z" [{?}]
})")[1],
            "[{\"data\"}]");
}

TEST(Propagate, AnAxisThatCutsAReshapedPartUnevenlyStaysBehind) {
  EXPECT_EQ(propagated(R"(program(%0: f32[12] data "x" [{"model"}]) {
  %1 = reshape %0 : f32[3,4]
  return %1 "z" [{?}, {?}]
})")[1],
            "[{}, {}]");
}

TEST(Propagate, NothingIsAddedBehindAnAxisThatCutsAReshapedPartUnevenly) {
  EXPECT_EQ(propagated(R"(program(%0: f32[12] data "x" [{"two"?}]) {
  %1 = reshape %0 : f32[3,4]
  return %1 "z" [{"three"}, {?}]
})",
                       Mesh({2, 3}, {"two", "three"})),
            (Lines{"[{\"two\"}]", "[{\"three\"}, {}]"}));
}

TEST(Propagate, BroadcastsGoForwardOnlyAfterEverythingElse) {
  // x shards dim 0 of the sum over "data" before the bias could shard dim 1 over "data".
  EXPECT_EQ(propagated(R"(program(%0: f32[8] param "bias" [{"data"}],
                                  %1: f32[4,8] data "x" [{"data"}, {}],
                                  %2: f32[8] param "scale" [{"model"}]) {
  %3 = broadcast_in_dim %0 {dims = [1]} : f32[4,8]
  %4 = add %1, %3 : f32[4,8]
  %5 = broadcast_in_dim %2 {dims = [1]} : f32[4,8]
  %6 = multiply %4, %5 : f32[4,8]
  return %6 "z" [{?}, {?}]
})"),
            (Lines{"[{\"data\"}]", "[{\"data\"}, {}]", "[{\"model\"}]", "[{\"data\"}, {\"model\"}]",
                   "[{\"data\"}, {\"model\"}]", "[{\"data\"}, {\"model\"}]",
                   "[{\"data\"}, {\"model\"}]"}));
}

TEST(Propagate, AParamAndItsNextVersionAreOneEdge) {
  EXPECT_EQ(propagated(R"(program(%0: f32[8] param "p" [{?}], %1: f32[8] data "x" [{"data"}]) {
  %2 = tanh %1 : f32[8]
  return %2 "p" [{?}] updates 0
})")[0],
            "[{\"data\"}]");
  EXPECT_EQ(propagated(R"(program(%0: f32[8] param "p" [{"model"}], %1: f32[8] data "x" [{?}]) {
  %2 = tanh %1 : f32[8]
  return %2 "p" [{"model"}] updates 0
})")[1],
            "[{\"model\"}]");
}

TEST(Propagate, BetterPrioritiesGoFirstAndAreCarriedAlong) {
  const Lines lines = propagated(R"(program(
        %0: f32[8,8] data "x" [{"data"}, {}],
        %1: f32[8,64] param "w" [{}, {"data", "model"}] priority{"data"=2, "model"=2}) {
  %2 = dot_general %0, %1 {contracting = [1] x [0]} : f32[8,64]
  %3 = tanh %1 : f32[8,64]
  return %2 "z" [{?}, {?}], %3 "v" [{?}, {?}]
})");
  EXPECT_EQ(lines[2], "[{\"data\"}, {}]");
  EXPECT_EQ(lines[3], "[{}, {\"data\", \"model\"}] priority{\"data\"=2, \"model\"=2}");
}

TEST(Propagate, AnEarlierPriorityDoesNotTouchADimThatALaterOneShards) {
  EXPECT_EQ(propagated(R"(program(
        %0: f32[8] data "x" [{"model"}],
        %1: f32[8] param "w" [{"data"?}] priority{"data"=1}) {
  %2 = add %0, %1 : f32[8]
  return %2 "z" [{?}]
})"),
            (Lines{"[{\"model\"}]", "[{\"data\"}] priority{\"data\"=1}", "[{\"model\"}]"}));
}

// Tests the two-layer perceptron under the usual kinds of parallelism.
class PropagateMlp : public ::testing::Test {
 protected:
  /// Returns the sharding of the result of the `count`th op (from 0) of this kind.
  std::string result(OpKind kind, int count) const {
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      if (program_.kind(op) == kind && count-- == 0) {
        return text(program_, shardings_, program_.result(op));
      }
    }
    return "none";
  }
  std::string input(const std::string& name) const {
    for (const ProgramInput& input : program_.inputs) {
      if (input.name == name) return text(program_, shardings_, input.value);
    }
    return "none";
  }
  void propagate_mlp() {
    program_ = mlp_.program(kMesh);
    shardings_ = propagate(program_, kMesh);
  }
  // The dot_generals compute in this order: hidden, output, d_hidden, the gradient of fc2, the
  // gradient of fc1.

  Mlp mlp_{.batch = 64,
           .in = 16,
           .hidden = 32,
           .out = 8,
           .x = PartitionSpec{{"data"}, {}},
           .y = PartitionSpec{{"data"}, {}},
           .fc1 = {},
           .fc1_bias = {},
           .fc2 = {},
           .fc1_momentum = {},
           .fc2_momentum = {}};
  Program program_;
  std::vector<Sharding> shardings_;
};

TEST_F(PropagateMlp, DataParallelShardsActivationsAndLeavesWeights) {
  propagate_mlp();
  EXPECT_EQ(result(OpKind::dot_general, 0), "[{\"data\"}, {}]");
  EXPECT_EQ(result(OpKind::dot_general, 1), "[{\"data\"}, {}]");
  EXPECT_EQ(result(OpKind::dot_general, 2), "[{\"data\"}, {}]");
  EXPECT_EQ(result(OpKind::dot_general, 3), "[{}, {}]");
  EXPECT_EQ(result(OpKind::dot_general, 4), "[{}, {}]");
  EXPECT_EQ(input("fc1.weight"), "[{}, {}]");
  EXPECT_EQ(input("fc1.bias"), "[{}]");
}

TEST_F(PropagateMlp, MegatronShardsTheHiddenDimAndItsBias) {
  mlp_.fc1 = PartitionSpec{{"model"}, {}};
  mlp_.fc2 = PartitionSpec{{}, {"model"}};
  propagate_mlp();
  EXPECT_EQ(result(OpKind::dot_general, 0), "[{\"data\"}, {\"model\"}]");
  EXPECT_EQ(result(OpKind::select, 0), "[{\"data\"}, {\"model\"}]");
  EXPECT_EQ(result(OpKind::dot_general, 1), "[{\"data\"}, {}]");
  EXPECT_EQ(result(OpKind::dot_general, 2), "[{\"data\"}, {\"model\"}]");
  EXPECT_EQ(result(OpKind::dot_general, 3), "[{}, {\"model\"}]");
  EXPECT_EQ(result(OpKind::dot_general, 4), "[{\"model\"}, {}]");
  EXPECT_EQ(input("fc1.bias"), "[{\"model\"}]");
}

TEST_F(PropagateMlp, FsdpAtALaterPriorityLeavesActivationsToTheBatch) {
  mlp_.batch = 8;
  mlp_.fc1 = PartitionSpec{{"data"}, {}};
  mlp_.fc2 = PartitionSpec{{"data"}, {}};
  mlp_.priority = 2;
  propagate_mlp();
  EXPECT_EQ(result(OpKind::dot_general, 0), "[{\"data\"}, {}]");
  EXPECT_EQ(result(OpKind::dot_general, 1), "[{\"data\"}, {}]");
  EXPECT_EQ(result(OpKind::dot_general, 2), "[{\"data\"}, {}]");
  EXPECT_EQ(result(OpKind::dot_general, 3), "[{\"data\"}, {}] priority{\"data\"=2}");
  EXPECT_EQ(result(OpKind::dot_general, 4), "[{\"data\"}, {}] priority{\"data\"=2}");
}

TEST_F(PropagateMlp, FsdpWithoutAPriorityShardsTheSmallBatchesActivationsAsItsLargeWeights) {
  mlp_.batch = 8;
  mlp_.fc1 = PartitionSpec{{"data"}, {}};
  mlp_.fc2 = PartitionSpec{{"data"}, {}};
  propagate_mlp();
  EXPECT_EQ(result(OpKind::dot_general, 0), "[{}, {\"data\"}]");
}

}  // namespace
}  // namespace weft::propagate_test
