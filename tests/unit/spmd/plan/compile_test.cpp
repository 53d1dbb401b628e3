// Compares the collectives of plans, with their bytes per chip, with those that follow from the
// program and its shardings.

#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/fingerprint.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/mlp.hpp"

namespace weft::compile_test {
namespace {

using testing::Mlp;
using Lines = std::vector<std::string>;

const Mesh kData4({4}, {"data"});
const Mesh kData4Model2({4, 2}, {"data", "model"});
const PartitionSpec kBatch{{"data"}, {}};
const PartitionSpec kRows{{"data"}, {}};
const PartitionSpec kReplicated{{}, {}};

/// Returns lines such as "all_reduce data 4096 multiply": the kind, axes and bytes of a collective,
/// and the op or input that computes its operand.
Lines golden(const Program& program, const Mesh& mesh) {
  const Plan plan = compile(program, mesh, kCpuTarget);
  Lines lines;
  for (const CollectiveSummary& call : collectives(plan, mesh)) {
    lines.push_back(fmt::format("{} {} {} {}", to_string(call.kind), fmt::join(call.axes, "+"),
                                call.bytes, call.value));
  }
  return lines;
}

Lines golden(const Mlp& mlp, const Mesh& mesh) { return golden(mlp.program(mesh), mesh); }
Lines golden(const std::string& text, const Mesh& mesh) {
  return golden(parse_program(text, mesh), mesh);
}

/// Returns an Mlp whose fc1.weight has 4 Mi elements (16 MiB) and whose fc2.weight has 2 Mi (8
/// MiB).
Mlp mlp(std::int64_t batch) {
  Mlp mlp;
  mlp.batch = batch;
  mlp.in = 1024;
  mlp.hidden = 4096;
  mlp.out = 512;
  mlp.x = kBatch;
  mlp.y = kBatch;
  return mlp;
}

TEST(Compile, DataParallelReducesEachGradientAndTheLoss) {
  Mlp dp = mlp(64);
  dp.fc1 = dp.fc2 = kReplicated;
  const Lines expected{
      "all_reduce data 8388612 reduce and 1 more",  // the loss and fc2.weight
      // fc1.bias is updated before the next gradient is reduced.
      "all_reduce data 16384 multiply",
      "all_reduce data 16777216 multiply",  // fc1.weight
  };
  EXPECT_EQ(golden(dp, kData4), expected);
  dp.fc1 = dp.fc2 = std::nullopt;
  EXPECT_EQ(golden(dp, kData4), expected) << "unmarked weights stay whole";
}

TEST(Compile, MegatronReducesOnceForwardAndOnceBackward) {
  Mlp tp = mlp(64);
  tp.fc1 = PartitionSpec{{"model"}, {}};
  tp.fc2 = PartitionSpec{{}, {"model"}};
  const Lines without_input_gradient{
      "all_reduce model 32768 dot_general",
      "all_reduce data 4194308 reduce and 1 more",
      "all_reduce data 8192 multiply",
      "all_reduce data 8388608 multiply",
  };
  EXPECT_EQ(golden(tp, kData4Model2), without_input_gradient);
  tp.input_gradient = true;
  Lines with_input_gradient = without_input_gradient;
  with_input_gradient.push_back("all_reduce model 65536 dot_general");
  EXPECT_EQ(golden(tp, kData4Model2), with_input_gradient);
}

TEST(Compile, FsdpGathersWeightsAndScattersGradients) {
  Mlp fsdp = mlp(64);
  fsdp.fc1 = fsdp.fc2 = kRows;
  fsdp.priority = 2;
  const Lines expected{
      "all_gather data 16777216 input \"fc1.weight\"",
      "all_gather data 8388608 input \"fc2.weight\"",
      "reduce_scatter data 8388608 dot_general",
      "all_reduce data 16388 reduce and 1 more",
      "reduce_scatter data 16777216 dot_general",
  };
  EXPECT_EQ(golden(fsdp, kData4), expected);
  fsdp.momentum = true;
  fsdp.fc1_momentum = fsdp.fc2_momentum = std::nullopt;
  EXPECT_EQ(golden(fsdp, kData4), expected) << "the optimizer's state follows its parameter";
}

/// Compiles an embedding of 1024 rows, with sharding `weight`, and its gradient, for a batch that
/// is sharded over four chips. Returns the collectives.
Lines embedding_golden(std::string_view weight) {
  const std::string text = R"(program(%0: f32[1024,64] param "w" [ROWS, {}],
      %1: i32[32] data "i" [{"data"}],
      %2: f32[32,64] data "g" [{"data"}, {}]) {
  %3 = gather %0, %1 {atoms = {}} : f32[32,64]
  %4 = scatter %1, %2 {rows = 1024, atoms = {}} : f32[1024,64]
  return %3 "y" [{"data"}, {}], %4 "w" [ROWS, {}] updates 0
})";
  std::string marked = text;
  for (std::size_t at; (at = marked.find("ROWS")) != std::string::npos;) {
    marked.replace(at, 4, weight);
  }
  return golden(marked, kData4Model2);
}

TEST(Compile, EmbeddingsOfAShardedTableMoveTheirResultNotTheTable) {
  EXPECT_EQ(embedding_golden(R"({"model"})"), (Lines{
                                                  "all_reduce model 2048 gather",
                                                  "all_reduce data 131072 scatter",
                                              }));
  EXPECT_EQ(embedding_golden("{}"), (Lines{"all_reduce data 262144 scatter"}));
}

TEST(Compile, WithoutAPriorityShardedWeightsStayWhereThatMovesLess) {
  Mlp small = mlp(64);
  small.fc1 = small.fc2 = kRows;
  EXPECT_EQ(golden(small, kData4), (Lines{
                                       "all_gather data 262144 input \"x\"",
                                       "all_gather data 1048576 select",
                                       "all_to_all data 32768 dot_general",
                                       "all_to_all data 32768 multiply",
                                       "reduce_scatter data 1048576 dot_general",
                                       "all_reduce data 4 reduce",
                                   }));
  Mlp large = mlp(65536);
  large.fc1 = large.fc2 = kRows;
  EXPECT_EQ(golden(large, kData4), (Lines{
                                       "all_gather data 16777216 input \"fc1.weight\"",
                                       "all_gather data 8388608 input \"fc2.weight\"",
                                       "reduce_scatter data 8388608 dot_general",
                                       "all_reduce data 16388 reduce and 1 more",
                                       "reduce_scatter data 16777216 dot_general",
                                   }));
}

TEST(Compile, Zero1ScattersGradientsAndGathersUpdatedWeights) {
  Mlp zero = mlp(64);
  zero.fc1 = zero.fc2 = kReplicated;
  zero.momentum = true;
  zero.fc1_momentum = zero.fc2_momentum = kRows;
  zero.priority = 2;
  EXPECT_EQ(golden(zero, kData4), (Lines{
                                      "reduce_scatter data 8388608 dot_general",
                                      "all_reduce data 16388 reduce and 1 more",
                                      "reduce_scatter data 16777216 dot_general",
                                      "all_gather data 8388608 subtract",
                                      "all_gather data 16777216 subtract",
                                  }));
}

TEST(Compile, FsdpWithMegatronGathersOnlyOverData) {
  Mlp both = mlp(64);
  both.fc1 = PartitionSpec{{"model"}, {"data"}};
  both.fc2 = PartitionSpec{{"data"}, {"model"}};
  both.priority = 2;
  EXPECT_EQ(golden(both, kData4Model2), (Lines{
                                            "all_gather data 8388608 input \"fc1.weight\"",
                                            "all_gather data 4194304 input \"fc2.weight\"",
                                            "all_reduce model 32768 dot_general",
                                            "reduce_scatter data 4194304 dot_general",
                                            "all_reduce data 8196 reduce and 1 more",
                                            "reduce_scatter data 8388608 dot_general",
                                        }));
}

TEST(Compile, SequenceParallelScattersWhatAConstraintPins) {
  EXPECT_EQ(golden(R"(program(%0: f32[8,16] data "x" [{}, {"model"}],
                              %1: f32[16,32] param "w" [{"model"}, {}]) {
  %2 = dot_general %0, %1 {contracting = [1] x [0]} : f32[8,32]
  %3 = sharding_constraint %2 {sharding = [{"model"}, {}]} : f32[8,32]
  %4 = tanh %3 : f32[8,32]
  return %4 "y" [{?}, {?}]
})",
                   kData4Model2),
            (Lines{"reduce_scatter model 1024 dot_general"}));
}

TEST(Compile, PendingSumsAreAddedBeforeTheyAreReduced) {
  EXPECT_EQ(
      golden(
          R"(program(%0: f32[8,16] data "x" [{"data"}, {}], %1: f32[8,16] data "y" [{"data"}, {}]) {
  %2 = reduce %0 {kind = add, dims = [0]} : f32[16]
  %3 = reduce %1 {kind = add, dims = [0]} : f32[16]
  %4 = add %2, %3 : f32[16]
  %5 = reduce %4 {kind = add, dims = [0]} : f32[]
  %6 = constant {value = 0.25} : f32[]
  %7 = multiply %5, %6 : f32[]
  return %7 "z" []
})",
          kData4),
      (Lines{"all_reduce data 4 multiply"}));
}

/// Returns the op whose result is summed over chips if `op` reads the partial sum %2 and perhaps
/// %3, which isn't partial.
std::string reduced_after(const std::string& op, const std::string& dtype = "f32") {
  const std::string text = fmt::format(R"(program(%0: {0}[8,4,4] data "x" [{{"data"}}, {{}}, {{}}],
                                                  %1: {0}[4,4] data "y" [{{}}, {{}}]) {{
  %2 = reduce %0 {{kind = add, dims = [0]}} : {0}[4,4]
  %3 = abs %1 : {0}[4,4]
  %4 = {1} : {0}[4,4]
  return %4 "z" [{{}}, {{}}]
}})",
                                       dtype, op);
  const auto found = collectives(compile(parse_program(text, kData4), kData4, kCpuTarget), kData4);
  return found.size() == 1 ? found[0].value : fmt::format("{} collectives", found.size());
}

TEST(Compile, OnlyLinearOpsTakePartialSums) {
  EXPECT_EQ(reduced_after("negate %2"), "negate");
  EXPECT_EQ(reduced_after("transpose %2 {perm = [1, 0]}"), "transpose");
  EXPECT_EQ(reduced_after("multiply %2, %3"), "multiply");
  EXPECT_EQ(reduced_after("multiply %3, %2"), "multiply");
  EXPECT_EQ(reduced_after("divide %2, %3"), "divide");
  for (const char* op :
       {"divide %3, %2", "add %2, %3", "subtract %3, %2", "maximum %2, %3", "minimum %2, %3",
        "power %2, %3", "multiply %2, %2", "abs %2", "sign %2", "exponential %2", "log %2",
        "tanh %2", "logistic %2", "sqrt %2", "rsqrt %2"}) {
    EXPECT_EQ(reduced_after(op), "reduce") << op;
  }
  EXPECT_EQ(reduced_after("multiply %2, %3", "i32"), "multiply");
  EXPECT_EQ(reduced_after("divide %2, %3", "i32"), "reduce") << "integers round";
}

TEST(Compile, ASumThatTwoOpsReadIsReducedOnceAndAtOnce) {
  EXPECT_EQ(golden(R"(program(%0: f32[8,16] data "x" [{"data"}, {}]) {
  %1 = reduce %0 {kind = add, dims = [0]} : f32[16]
  %2 = negate %1 : f32[16]
  %3 = tanh %1 : f32[16]
  %4 = add %2, %3 : f32[16]
  return %4 "z" [{}]
})",
                   kData4),
            (Lines{"all_reduce data 64 reduce"}));
}

TEST(Compile, ASumIsReducedBeforeItIsBroadcast) {
  EXPECT_EQ(golden(R"(program(%0: f32[8,16] data "x" [{"data"}, {}]) {
  %1 = reduce %0 {kind = add, dims = [0]} : f32[16]
  %2 = broadcast_in_dim %1 {dims = [1]} : f32[8,16]
  return %2 "z" [{}, {}]
})",
                   kData4),
            (Lines{"all_reduce data 64 reduce"}));
}

TEST(Compile, MaximaAreReducedAtOnce) {
  EXPECT_EQ(golden(R"(program(%0: f32[8,16] data "x" [{"data"}, {}]) {
  %1 = reduce %0 {kind = max, dims = [0]} : f32[16]
  %2 = negate %1 : f32[16]
  %3 = reduce %2 {kind = add, dims = [0]} : f32[]
  return %3 "z" []
})",
                   kData4),
            (Lines{"all_reduce data 64 reduce"}));
}

TEST(Compile, TheSameReshardIsMadeOnce) {
  EXPECT_EQ(golden(R"(program(%0: f32[8,16] data "x" [{"data"}, {}]) {
  %1 = tanh %0 : f32[8,16]
  return %1 "y" [{}, {}], %1 "z" [{}, {}], %1 "w" [{}, {"data"}]
})",
                   kData4),
            (Lines{"all_gather data 512 tanh"}));
}

TEST(Compile, ConstantsAreMadeInTheLayoutOfTheirUse) {
  EXPECT_EQ(
      golden(R"(program(%0: f32[8,16] data "x" [{"data"}, {}], %1: f32[] runtime_scalar "s" []) {
  %2 = constant {value = 3} : f32[8,16]
  %3 = multiply %0, %2 : f32[8,16]
  %4 = iota {dim = 0} : f32[8,16]
  %5 = add %3, %4 : f32[8,16]
  %6 = broadcast_in_dim %1 {dims = []} : f32[8,16]
  %7 = add %5, %6 : f32[8,16]
  return %7 "y" [{?}, {?}], %2 "c" [{}, {"data"}], %4 "i" [{}, {}]
})",
             kData4),
      Lines{});
}

TEST(Compile, ClosedOutputsAreAsAskedForAndOpenOnesStayWhereTheyAre) {
  const Mesh& mesh = kData4Model2;
  const Plan plan = compile(parse_program(R"(program(%0: f32[8,16] data "x" [{"data"}, {}]) {
  %1 = tanh %0 : f32[8,16]
  return %1 "open" [{?}, {?}], %1 "closed" [{"model"}, {}], %1 "partly" [{"data"?}, {}]
})",
                                          mesh),
                            mesh, kCpuTarget);
  const auto text = [&](std::size_t i) {
    return plan.program.outputs[i].sharding.to_string(mesh, 2);
  };
  EXPECT_EQ(text(0), "[{\"data\"}, {}]");
  EXPECT_EQ(text(1), "[{\"model\"}, {}]");
  EXPECT_EQ(text(2), "[{\"data\"}, {}]");
}

TEST(Compile, AnUpdatedParamKeepsTheLayoutItWasGiven) {
  const Plan plan = compile(mlp(64).program(kData4), kData4, kCpuTarget);
  for (const ProgramOutput& output : plan.program.outputs) {
    if (output.updates < 0) continue;
    const auto& input = plan.program.inputs[static_cast<std::size_t>(output.updates)];
    EXPECT_EQ(output.sharding, input.sharding) << output.name;
    EXPECT_EQ(input.sharding.open_mask, 0) << "closed from now on";
  }
}

TEST(Compile, GivesTheSamePlanEveryTime) {
  Mlp both = mlp(64);
  both.fc1 = PartitionSpec{{"model"}, {"data"}};
  both.fc2 = PartitionSpec{{"data"}, {"model"}};
  const Program program = both.program(kData4Model2);
  EXPECT_EQ(fingerprint(compile(program, kData4Model2, kCpuTarget).program),
            fingerprint(compile(program, kData4Model2, kCpuTarget).program));
}

TEST(Compile, RefusesAProgramThatIsNotWellFormed) {
  Program program = mlp(64).program(kData4);
  program.outputs[0].value = program.num_values();
  testing::expect_error(Errc::corrupt, {"output"}, [&] { compile(program, kData4, kCpuTarget); });
}

}  // namespace
}  // namespace weft::compile_test
