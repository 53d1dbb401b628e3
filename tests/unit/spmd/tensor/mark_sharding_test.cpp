#include <gtest/gtest.h>

#include <weft/inspect/debug.hpp>
#include <weft/optim/optimizer.hpp>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::mark_sharding_test {
namespace {

using testing::expect_error;
using testing::f32;
using testing::InterpretRuntime;
using Floats = std::vector<float>;

class MarkSharding : public ::testing::Test {
 protected:
  Sharding spec(const PartitionSpec& partition, const Shape& shape) const {
    return Sharding::from_spec(mesh_, partition, shape, "expected");
  }
  const Program& last() const { return runtime_.programs.back(); }

  const Mesh mesh_{{2, 2}, {"data", "model"}};
  InterpretRuntime runtime_{mesh_};
  RuntimeScope scope_{runtime_};
};

TEST_F(MarkSharding, OfHostDataIsAskedForAtTheFirstUse) {
  const Tensor x = f32({1, 2, 3, 4}, {2, 2});
  mark_sharding(x, mesh_, {{"data"}, {}});
  const Tensor y = x + 1;
  sync();
  EXPECT_EQ(last().inputs[0].sharding, spec({{"data"}, {}}, {2, 2}));
}

TEST_F(MarkSharding, OfHostDataMayFollowItsFirstUse) {
  const Tensor x = f32({1, 2, 3, 4}, {2, 2});
  const Tensor y = x + 1;
  mark_sharding(x, mesh_, {{}, {"model"}});
  sync();
  EXPECT_EQ(last().inputs[0].sharding, spec({{}, {"model"}}, {2, 2}));
}

TEST_F(MarkSharding, OfOneElementCutsNothing) {
  Parameter w = make_parameter("w", Floats{1}, {1});
  const Tensor y = w + 1;
  mark_sharding(w, mesh_, {{"data"}});
  sync();
  EXPECT_EQ(last().inputs[0].sharding, Sharding::closed());
  mark_sharding(w, mesh_, {{"data"}});
}

TEST_F(MarkSharding, OfAParameterHoldsForItsUpdate) {
  Parameter w = make_parameter("w", Floats{1, 2, 3, 4}, {2, 2});
  mark_sharding(w, mesh_, {{"model"}, {"data"}});
  w.assign(w * 2);
  sync();
  EXPECT_EQ(last().inputs[0].sharding, spec({{"model"}, {"data"}}, {2, 2}));
  EXPECT_EQ(last().outputs[0].sharding, spec({{"model"}, {"data"}}, {2, 2}));
}

TEST_F(MarkSharding, OfATracedValueIsAConstraintOnWhatFollows) {
  const Tensor x = f32({1, 2}, {2});
  Tensor y = x * 2;
  mark_sharding(y, mesh_, {{"data"}});
  const Tensor z = y + 1;
  sync();
  ASSERT_EQ(last().constraints.size(), 1U);
  EXPECT_EQ(last().constraints[0], spec({{"data"}}, {2}));
  const ValueId operand = last().op_operands(last().defining_op(last().outputs[1].value))[0];
  EXPECT_EQ(last().kind(last().defining_op(operand)), OpKind::sharding_constraint);
  EXPECT_EQ(last().outputs[0].value, operand);
}

TEST_F(MarkSharding, OfAComputedValueThatIsKeptAndDoesNotDivideIsWarnedOfOnce) {
  const auto step = [&](std::int64_t size) {
    Tensor y = f32(Floats(static_cast<std::size_t>(size), 1), {size}) * 2;
    mark_sharding(y, mesh_, {{"data"}});
    sync();
  };
  step(4);
  EXPECT_TRUE(runtime_.warnings.empty());
  for (int i = 0; i < 3; ++i) step(5);
  ASSERT_EQ(runtime_.warnings.size(), 1U);
  for (const char* word : {"f32[5]", "mark_sharding_test.cpp:", "2 parts don't divide dim 0"}) {
    EXPECT_NE(runtime_.warnings[0].find(word), std::string::npos) << runtime_.warnings[0];
  }
}

TEST_F(MarkSharding, OfWhatLiesOnTheChipsIsRefusedUnlessItLiesSo) {
  const Tensor x = f32({1, 2}, {2});
  mark_sharding(x, mesh_, {{"data"}});
  const Tensor y = x + 1;
  sync();
  mark_sharding(x, mesh_, {{"data"}});
  expect_error(Errc::invalid_argument,
               {"mark_sharding: f32[2] is already on the chips with sharding [{\"data\"}]",
                "before its first sync", "mark_sharding_test.cpp:"},
               [&] { mark_sharding(x, mesh_, {{"model"}}); });
}

TEST_F(MarkSharding, OfDataIsRefusedWhereTheBatchIsntDivided) {
  const Tensor x = f32({1, 2, 3}, {3});
  expect_error(Errc::invalid_argument,
               {"mark_sharding: f32[3]: dim 0 has size 3", "the 2 parts", "a multiple of 2",
                "mark_sharding_test.cpp:"},
               [&] { mark_sharding(x, mesh_, {{"data"}}); });
}

TEST_F(MarkSharding, OfAParameterThatIsntDividedPadsIt) {
  Parameter w = make_parameter("w", Floats{1, 2, 3}, {3});
  mark_sharding(w, mesh_, {{"model"}});
  w.assign(w * 2);
  sync();
  EXPECT_EQ(last().inputs[0].sharding, spec({{"model"}}, {3}));
  EXPECT_EQ(w.to_vector(), (Floats{2, 4, 6}));
}

TEST_F(MarkSharding, TensorsInShardsAreGatheredToBeRead) {
  const Tensor x = f32({1, 2}, {2});
  mark_sharding(x, mesh_, {{"data"}});
  const Tensor y = x + 1;
  sync();
  const Tensor pending = y * 2;
  EXPECT_EQ(x.to_vector(), (Floats{1, 2}));
  ASSERT_EQ(runtime_.programs.size(), 2U);
  EXPECT_EQ(last().inputs[0].sharding, spec({{"data"}}, {2}));
  EXPECT_EQ(last().outputs[0].sharding, Sharding::closed());
  EXPECT_EQ(pending.to_vector(), (Floats{4, 6}));
}

TEST_F(MarkSharding, MomentsOfAMarkedParameterAreShardedAsItIs) {
  Parameter marked = make_parameter("marked", Floats{1, 2}, {2});
  Parameter open = make_parameter("open", Floats{1, 2}, {2});
  mark_sharding(marked, mesh_, {{"model"}});
  AdamW optimizer({marked, open}, {});
  optimizer.step(std::vector<Tensor>{full({2}, 1), full({2}, 1)});
  sync();
  for (const ProgramInput& input : last().inputs) {
    if (last().type(input.value).shape.size() == 0) continue;
    const Sharding expected =
        input.name.starts_with("marked") ? spec({{"model"}}, {2}) : Sharding::open(1);
    EXPECT_EQ(input.sharding, expected) << input.name;
  }
}

TEST_F(MarkSharding, MomentsKeepAMarkOfTheirOwn) {
  Parameter w = make_parameter("w", Floats{1, 2}, {2});
  mark_sharding(w, mesh_, {{}});
  AdamW optimizer({w}, {});
  for (const Parameter& state : optimizer.state()) {
    if (state.shape() == w.shape()) mark_sharding(state, mesh_, {{"data"}});
  }
  optimizer.step(std::vector<Tensor>{full({2}, 1)});
  sync();
  for (const ProgramInput& input : last().inputs) {
    if (input.kind != InputKind::opt_state || last().shape(input.value).size() == 0) continue;
    EXPECT_EQ(input.sharding, spec({{"data"}}, {2})) << input.name;
  }
}

TEST_F(MarkSharding, IsShownAsAGridOfChips) {
  const Parameter w = make_parameter("w", Floats(32), {4, 8});
  mark_sharding(w, mesh_, {{"model"}, {}});
  EXPECT_EQ(visualize_tensor_sharding(w),
            "'w' f32[4,8] [{\"model\"}, {}]\n"
            "rows of dim 0: 2, columns of dim 1: 8\n"
            "| 0 2 |\n"
            "| 1 3 |\n");
  const Tensor x = to_device(Floats(64), {2, 8, 4});
  mark_sharding(x, mesh_, {{}, {"data"}, {"model"}});
  EXPECT_EQ(visualize_tensor_sharding(x),
            "f32[2,8,4] [{}, {\"data\"}, {\"model\"}]\n"
            "rows of dim 1: 4, columns of dim 2: 2\n"
            "| 0 | 1 |\n"
            "| 2 | 3 |\n");
  EXPECT_EQ(visualize_tensor_sharding(scalar(1)), "f32[] []\n| 0 1 2 3 |\n");
  expect_error(Errc::invalid_argument, {"f32[4,8] isn't computed yet", "mark_sharding_test.cpp"},
               [&] { visualize_tensor_sharding(w + 1); });
}

TEST_F(MarkSharding, RefusalsNameTensorPlaceAndSizes) {
  const Parameter w = make_parameter("fc1.weight", Floats(20), {4, 5});
  const std::string_view place = "mark_sharding('fc1.weight' f32[4,5]) at mark_sharding_test.cpp:";
  expect_error(Errc::invalid_argument, {place, "{{\"data\"}}", "1 entries", "[4,5] has 2 dims"},
               [&] { mark_sharding(w, mesh_, {{"data"}}); });
  expect_error(Errc::invalid_argument, {place, "axis \"expert\"", "\"data\",\"model\""}, [&] {
    mark_sharding(w, mesh_, {{"expert"}, {}});
  });
  expect_error(Errc::invalid_argument, {place, "axis \"data\" twice"}, [&] {
    mark_sharding(w, mesh_, {{"data"}, {"data"}});
  });
}

TEST_F(MarkSharding, RefusesAnotherMesh) {
  const Tensor x = f32({1, 2}, {2});
  const Mesh other({4}, {"data"});
  expect_error(Errc::mesh_mismatch,
               {"mark_sharding: ", "(4) (\"data\")", "(2,2) (\"data\",\"model\")"},
               [&] { mark_sharding(x, other, {{"data"}}); });
}

TEST(MarkShardingWithoutMesh, IsRefused) {
  InterpretRuntime runtime;
  const RuntimeScope scope(runtime);
  const Tensor x = f32({1, 2}, {2});
  expect_error(Errc::mesh_mismatch, {"without a mesh"},
               [&] { mark_sharding(x, Mesh({2}, {"data"}), {{"data"}}); });
}

}  // namespace
}  // namespace weft::mark_sharding_test
