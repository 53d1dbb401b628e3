#include "spmd/plan/overlap.hpp"

#include <array>

#include <gtest/gtest.h>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/ops/row.hpp"
#include "tests/support/chip_plan.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/target.hpp"

namespace weft::overlap_test {
namespace {

using testing::expect_error;
using testing::kinds_of;

/// A chip's program with three layers, whose gradients are matrix products of 1 MiB. Right after
/// each gradient, its sum and the update of a parameter follow.
class OverlapTest : public ::testing::Test {
 protected:
  OverlapTest() {
    for (const char* name : {"w0", "w1", "w2"}) {
      parameters_.push_back(
          program_.add_input(kMatrix, InputKind::param, name, Sharding::closed()));
    }
  }
  ValueId product(ValueId a, ValueId b) { return b_.dot_general(a, b, {{}, {}, {1}, {0}}); }
  ValueId sum(ValueId x, const Mesh& mesh) {
    return b_.all_reduce(mesh, x, mesh.axis_atoms(0), ReduceKind::add);
  }
  /// Adds the gradients and updates of all layers. With `decays`, an update has two ops, and the
  /// first one doesn't need the gradient's sum.
  void train(const Mesh& mesh, bool decays = false) {
    ValueId gradient = parameters_[0];
    for (std::size_t layer = parameters_.size(); layer-- > 0;) {
      gradient = product(gradient, parameters_[layer]);
      ValueId weight = parameters_[layer];
      if (decays) weight = b_.binary(OpKind::multiply, weight, weight);
      const ValueId update = b_.binary(OpKind::subtract, weight, sum(gradient, mesh));
      program_.add_output(update, program_.inputs[layer].name, Sharding::closed(),
                          static_cast<std::int32_t>(layer));
    }
  }
  Plan plan(const Mesh& mesh, const testing::Thresholds& thresholds = {}) const {
    return testing::chip_plan(program_, mesh, testing::cpu_target_with(thresholds));
  }
  /// Expects that verify() refuses the plan after `edit`.
  void refuses(std::initializer_list<std::string_view> words,
               const std::function<void(Plan&)>& edit) const {
    Plan spoilt = plan(kHosts);
    edit(spoilt);
    expect_error(Errc::corrupt, words, [&] { verify(spoilt, kHosts); });
  }

  static inline const TensorType kMatrix{DType::f32, {512, 512}};
  static inline const Mesh kHosts = HybridMesh{{1}, {2}, {"data"}}.mesh();
  Program program_;
  Builder b_{program_};
  std::vector<ValueId> parameters_;
};

TEST_F(OverlapTest, SumsOfGradientsGoOnDuringTheBackwardPass) {
  train(kHosts);
  EXPECT_EQ(kinds_of(plan(kHosts)),
            "compute collective compute collective compute collective wait update_wait loop wait "
            "loop wait loop");
}

TEST_F(OverlapTest, AnUpdateStaysOneLoop) {
  train(kHosts, true);
  const Plan plan = this->plan(kHosts);
  for (const PlanStep& step : plan.steps) {
    EXPECT_EQ(step.count, step.kind == StepKind::loop ? 2U : std::min(step.count, 1U));
  }
}

/// On two hosts of two chips, gradients are first added up within each host. Two of the results
/// fill a bucket, which begins before the last product.
TEST_F(OverlapTest, AReduceScatterStandsBehindItsGradient) {
  const Mesh mesh = HybridMesh{{2}, {2}, {"data"}}.mesh();
  const AtomList hosts = mesh.list(mesh.dcn_atoms());
  const AtomList chips = mesh.list(static_cast<AtomMask>(mesh.all_atoms() & ~mesh.dcn_atoms()));
  const ValueId first = product(parameters_[0], parameters_[1]);
  const ValueId second = product(first, parameters_[2]);
  const ValueId third = product(second, parameters_[0]);
  for (const ValueId gradient : {first, second}) {
    const ValueId part = b_.reduce_scatter(mesh, gradient, chips, ReduceKind::add, 0);
    const ValueId sum = b_.all_reduce(mesh, part, hosts, ReduceKind::add);
    const ValueId total = b_.all_gather(mesh, sum, chips, 0);
    program_.add_output(b_.binary(OpKind::add, total, total), "total", Sharding::closed());
  }
  program_.add_output(b_.binary(OpKind::add, third, third), "third", Sharding::closed());
  const Plan plan = this->plan(mesh);
  std::vector<std::string_view> ops;
  for (const OpKind kind : plan.program.op_kinds) ops.push_back(to_string(kind));
  EXPECT_EQ(ops,
            (std::vector<std::string_view>{
                "dot_general", "reduce_scatter", "dot_general", "reduce_scatter", "all_reduce",
                "all_reduce", "dot_general", "add", "all_gather", "add", "all_gather", "add"}));
  EXPECT_EQ(flights(plan.steps).size(), 1U);
}

TEST_F(OverlapTest, OneHostWaitsAtOnce) {
  const Mesh mesh({2}, {"data"});
  train(mesh);
  const Plan waiting = plan(mesh, {.overlap_work_min = Target::kNever});
  const Plan plan = this->plan(mesh, {.overlap_work_min = 0});
  EXPECT_EQ(plan.steps, waiting.steps);
  EXPECT_EQ(plan.program.op_kinds, waiting.program.op_kinds);
  EXPECT_EQ(kinds_of(plan).find("compute collective update_wait loop"), 0U) << kinds_of(plan);
}

TEST_F(OverlapTest, ALayerDoesntWaitForTheNextOne) {
  const ValueId activation = sum(product(parameters_[0], parameters_[1]), kHosts);
  program_.add_output(product(activation, parameters_[2]), "y", Sharding::closed());
  EXPECT_EQ(kinds_of(plan(kHosts)), "compute collective compute");
}

TEST_F(OverlapTest, LittleWorkIsntWorthAnotherThread) {
  train(kHosts);
  EXPECT_EQ(flights(plan(kHosts).steps).size(), 3U);
  EXPECT_TRUE(flights(plan(kHosts, {.overlap_work_min = 1 << 30}).steps).empty());
  EXPECT_TRUE(flights(plan(kHosts, {.overlap_work_min = Target::kNever}).steps).empty());
}

/// The operands and results of a sum have 2 MiB.
TEST_F(OverlapTest, TheOldestSumsEndBeforeTheirMemoryIsTooMuch) {
  train(kHosts);
  const Plan whole = plan(kHosts);
  const Plan two = plan(kHosts, {.overlap_bytes_max = 4 << 20});
  EXPECT_EQ(kinds_of(two),
            "compute collective compute collective compute wait collective update_wait loop wait "
            "loop wait loop");
  const Plan one = plan(kHosts, {.overlap_bytes_max = (4 << 20) - 1});
  EXPECT_EQ(kinds_of(one),
            "compute collective compute wait collective compute wait collective update_wait loop "
            "loop wait loop");
  EXPECT_EQ(flights(plan(kHosts, {.overlap_bytes_max = 0}).steps).size(), 3U) << "one at a time";
  EXPECT_GT(whole.temp_bytes, two.temp_bytes);
  EXPECT_GE(two.temp_bytes, one.temp_bytes);
}

TEST_F(OverlapTest, ALoopOfTheProgramMayLieInBetween) {
  const ValueId total = sum(product(parameters_[0], parameters_[1]), kHosts);
  const ValueId loop = b_.loop(3, false);
  const ValueId carry = b_.border(OpKind::carry, {loop, parameters_[2]});
  const ValueId body = product(carry, parameters_[0]);
  const ValueId next = b_.border(OpKind::next, {loop, carry, body});
  program_.add_output(b_.binary(OpKind::add, next, total), "y", Sharding::closed());
  EXPECT_EQ(kinds_of(plan(kHosts)), "compute collective begin compute compute repeat wait loop");
}

TEST_F(OverlapTest, NothingGoesOnInALoopOfTheProgram) {
  const ValueId loop = b_.loop(3, false);
  const ValueId carry = b_.border(OpKind::carry, {loop, parameters_[2]});
  const ValueId total = sum(carry, kHosts);
  const ValueId value = product(carry, parameters_[0]);
  const ValueId both = b_.binary(OpKind::add, value, total);
  const ValueId next = b_.border(OpKind::next, {loop, carry, both});
  program_.add_output(b_.binary(OpKind::add, next, next), "y", Sharding::closed());
  EXPECT_TRUE(flights(plan(kHosts, {.overlap_work_min = 0}).steps).empty());
}

TEST_F(OverlapTest, OperandsKeepTheirMemoryUntilTheWait) {
  train(kHosts);
  const Plan right = plan(kHosts);
  const Flight flight = flights(right.steps).front();
  const PlanStep& collective = right.steps[flight.start];
  const ValueId later = right.program.result(right.steps[flight.start + 1].first);
  for (const ValueId value :
       {right.program.op_operands(collective.first)[0], right.program.result(collective.first)}) {
    const std::string names[] = {fmt::format("%{}", value), fmt::format("%{}", later)};
    refuses({names[0], names[1], "memory overlaps"},
            [&](Plan& plan) { plan.slots[later] = plan.slots[value]; });
  }
}

TEST_F(OverlapTest, RefusesWaitsThatAreWrong) {
  train(kHosts);
  const auto wait_at = [](Plan& plan, std::size_t number) {
    return plan.steps.begin() + static_cast<std::ptrdiff_t>(flights(plan.steps)[number].wait);
  };
  refuses({"waits for step 1, whose result step"}, [&](Plan& plan) {
    const PlanStep wait = *wait_at(plan, 0);
    plan.steps.erase(wait_at(plan, 0));
    const auto second = wait_at(plan, 0);
    plan.steps.insert(second, wait);
  });
  refuses({"waits for step 1 after step 3; expected the order"}, [&](Plan& plan) {
    const PlanStep second = *wait_at(plan, 1);
    plan.steps.erase(wait_at(plan, 1));
    plan.steps.insert(wait_at(plan, 0), second);
  });
  refuses({"waits for op", "which no collective before it runs"}, [&](Plan& plan) {
    const PlanStep wait = *wait_at(plan, 0);
    plan.steps.insert(plan.steps.begin(), wait);
  });
  refuses({"waits for step 1 after step 1"}, [&](Plan& plan) {
    const PlanStep wait = *wait_at(plan, 0);
    plan.steps.insert(wait_at(plan, 0), wait);
  });
  refuses({"waits for 1 ops"}, [&](Plan& plan) { wait_at(plan, 0)->count = 1; });
}

TEST_F(OverlapTest, RefusesAWaitForACollectiveOfAHost) {
  const Mesh mesh = HybridMesh{{2, 1}, {1, 2}, {"model", "data"}}.mesh();
  train(mesh);  // adds along "model"
  Plan plan = this->plan(mesh);
  const auto collective = std::ranges::find(plan.steps, StepKind::collective, &PlanStep::kind);
  const OpId first = collective->first;
  plan.steps.insert(collective + 1, {StepKind::wait, first, 0});
  expect_error(Errc::corrupt, {"(all_reduce), which isn't a collective between hosts"},
               [&] { verify(plan, mesh); });
}

/// If another collective between hosts also reads an operand of a bucket, the complete bucket lives
/// until both collectives have ended.
TEST_F(OverlapTest, ABucketLivesAsLongAsTheLongestOfItsValues) {
  const TensorType small{DType::f32, {256, 256}};  // so that two sums fit into a bucket
  const ValueId a = program_.add_input(small, InputKind::param, "a", Sharding::closed());
  const ValueId b = program_.add_input(small, InputKind::param, "b", Sharding::closed());
  const ValueId first = product(a, b);
  const ValueId second = product(b, a);
  const ValueId first_sum = sum(first, kHosts);
  const ValueId second_sum = sum(second, kHosts);
  const ValueId gathered = b_.all_gather(kHosts, second, kHosts.axis_atoms(0), 0);
  const ValueId square = product(a, a);
  const ValueId read_early = product(first_sum, square);
  const ValueId fourth = product(square, square);
  const ValueId sixth = product(product(fourth, read_early), fourth);
  program_.add_output(product(read_early, product(sixth, second_sum)), "last", Sharding::closed());
  program_.add_output(b_.binary(OpKind::add, gathered, gathered), "twice", Sharding::closed());
  EXPECT_FALSE(flights(plan(kHosts).steps).empty()) << kinds_of(plan(kHosts));
}

}  // namespace
}  // namespace weft::overlap_test
