#include <weft/ops/elementwise.hpp>

#include "spmd/ops/fingerprint.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include <weft/nn/module.hpp>
#include <weft/ops/along_dim.hpp>

#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::random_test {
namespace {

using testing::expect_error;
using testing::f32;
using testing::InterpretRuntime;
using testing::SimulateRuntime;
using Floats = std::vector<float>;

class RandomTensors : public testing::TensorTest {
 protected:
  ~RandomTensors() override { manual_seed(0); }
};

TEST_F(RandomTensors, RandIsUniform) {
  const Floats x = rand({10000}).to_vector();
  double mean = 0;
  std::array<int, 10> tenths{};
  for (const float element : x) {
    ASSERT_GE(element, 0);
    ASSERT_LT(element, 1);
    mean += element / 10000.0;
    ++tenths[static_cast<std::size_t>(element * 10)];
  }
  // The tolerance is five standard deviations.
  EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(1 / 12.0 / 10000));
  for (const int count : tenths) EXPECT_NEAR(count, 1000, 5 * std::sqrt(900));
}

TEST_F(RandomTensors, RandnIsNormal) {
  constexpr std::size_t kCount = 20000;
  const Floats x = randn({kCount}).to_vector();
  std::array<double, 4> moments{};
  for (const float element : x) {
    for (std::size_t i = 0; i < moments.size(); ++i) {
      moments[i] += std::pow(element, static_cast<double>(i + 1)) / kCount;
    }
  }
  // The first four moments are 0, 1, 0 and 3; the tolerance of each is five standard deviations.
  EXPECT_NEAR(moments[0], 0, 5 * std::sqrt(1.0 / kCount));
  EXPECT_NEAR(moments[1], 1, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(moments[2], 0, 5 * std::sqrt(15.0 / kCount));
  EXPECT_NEAR(moments[3], 3, 5 * std::sqrt(96.0 / kCount));
}

TEST_F(RandomTensors, RandintGivesAllNumbersFromLowToBelowHigh) {
  std::array<int, 5> counts{};
  for (const float x : cast(randint(-2, 3, {5000}), DType::f32).to_vector()) {
    ASSERT_EQ(x, std::round(x));
    ++counts.at(static_cast<std::size_t>(x + 2));
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 5 * std::sqrt(800));
  expect_error(Errc::invalid_argument, {"randint", "low = 3 and high = 3", "random_test.cpp"},
               [] { (void)randint(3, 3, {2}); });
  expect_error(Errc::invalid_argument, {"randint", "16777216"},
               [] { (void)randint(0, 1 << 25, {2}); });
}

TEST_F(RandomTensors, RandpermHasEachNumberOnce) {
  Floats x = cast(randperm(1000), DType::f32).to_vector();
  EXPECT_FALSE(std::ranges::is_sorted(x));
  std::ranges::sort(x);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], i);
}

TEST_F(RandomTensors, MultinomialChoosesByWeight) {
  const Tensor weights = broadcast_to(f32({1, 0, 3}, {3}), {2, 3});
  std::array<int, 3> counts{};
  for (const float x : cast(multinomial(weights, 2000, true), DType::f32).to_vector()) {
    ++counts.at(static_cast<std::size_t>(x));
  }
  EXPECT_NEAR(counts[0], 1000, 5 * std::sqrt(750));
  EXPECT_EQ(counts[1], 0);
  // Without replacement, index 2 is drawn first with probability 3/4. Index 1 has the weight 0, so
  // the other draw is index 0.
  const Tensor rows = broadcast_to(f32({1, 0, 3}, {3}), {4000, 3});
  const Floats both = cast(multinomial(rows, 2), DType::f32).to_vector();
  int first = 0;
  for (std::size_t i = 0; i < both.size(); i += 2) {
    ASSERT_EQ(both[i] + both[i + 1], 2);
    first += both[i] == 2;
  }
  EXPECT_NEAR(first, 3000, 5 * std::sqrt(750));
  expect_error(Errc::invalid_argument, {"multinomial", "count = 4", "0 to 3"},
               [&] { (void)multinomial(weights, 4); });
}

TEST_F(RandomTensors, BernoulliGivesOnesWithTheProbabilityOfEachElement) {
  const Floats x = bernoulli(broadcast_to(f32({0, 0.25, 1}, {3}), {4000, 3})).to_vector();
  std::array<double, 3> sums{};
  for (std::size_t i = 0; i < x.size(); ++i) sums[i % 3] += x[i];
  EXPECT_EQ(sums[0], 0);
  EXPECT_NEAR(sums[1], 1000, 5 * std::sqrt(750));
  EXPECT_EQ(sums[2], 4000);
}

TEST_F(RandomTensors, DifferByCallStepAndSeed) {
  std::set<Floats> seen;
  for (const std::uint64_t seed : {0ULL, 1ULL, 1ULL << 40}) {
    manual_seed(seed);
    for (int step = 0; step < 3; ++step) {
      const Tensor a = rand({8});
      const Tensor b = rand({8});
      seen.insert(a.to_vector());
      seen.insert(b.to_vector());
      seen.insert(rand({8}).to_vector());  // the read above has run the step's first ops
      sync();
    }
  }
  EXPECT_EQ(seen.size(), 27U);
}

Floats numbers_of_step(int step) {
  InterpretRuntime runtime;
  const RuntimeScope scope(runtime);
  for (int i = 0; i < step; ++i) sync();
  return rand({8}).to_vector();
}

TEST_F(RandomTensors, AreTheSameWhenTheStepRunsAgain) {
  EXPECT_EQ(numbers_of_step(3), numbers_of_step(3));
  EXPECT_NE(numbers_of_step(3), numbers_of_step(2));
}

TEST_F(RandomTensors, AStepIsNoNewProgram) {
  std::set<std::string> programs;
  for (int step = 0; step < 4; ++step) {
    const Tensor x = rand({4}) + dropout(f32({1, 2, 3, 4}, {4}), 0.25);
    const double total = sum(x).item();
    EXPECT_TRUE(std::isfinite(total));
    const Tensor y = rand({4});
    sync();
  }
  for (const Program& program : runtime_.programs) {
    programs.insert(fingerprint(program).to_string());
  }
  EXPECT_EQ(runtime_.programs.size(), 8U);
  EXPECT_EQ(programs.size(), 2U);
}

TEST_F(RandomTensors, ATraceHasOneInputForAll) {
  const Tensor x = rand({2}) + rand({2}) + rand({2});
  sync();
  const Program& program = runtime_.programs.back();
  ASSERT_EQ(program.inputs.size(), 1U);
  EXPECT_EQ(program.inputs[0].kind, InputKind::runtime_scalar);
  EXPECT_EQ(program.inputs[0].sharding, Sharding::closed());
}

struct Dropped {
  Floats numbers, kept, gradient;
  friend bool operator==(const Dropped&, const Dropped&) = default;
};

Dropped drop(InterpretRuntime& runtime, const PartitionSpec& spec) {
  const RuntimeScope scope(runtime);
  sync();
  Floats elements(8 * 6);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i) + 1;
  const Tensor x = f32(elements, {8, 6});
  const Tensor r = rand({8, 6});
  if (runtime.mesh() != nullptr) {
    mark_sharding(x, *runtime.mesh(), spec);
    mark_sharding(r, *runtime.mesh(), spec);
  }
  const Tensor y = dropout(x, 0.5);
  const Tensor g = grad(sum(y * y), std::vector{x})[0];
  sync();
  return {r.to_vector(), y.to_vector(), g.to_vector()};
}

TEST_F(RandomTensors, AreTheSameOnEveryMesh) {
  InterpretRuntime alone;
  const Dropped expected = drop(alone, {});
  EXPECT_EQ(std::set<float>(expected.numbers.begin(), expected.numbers.end()).size(), 48U);
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{2, 1}, {4, 2}, {2, 3}, {1, 3}}) {
    const Mesh mesh(shape, {"data", "model"});
    for (const PartitionSpec& spec : {PartitionSpec{{"data"}, {"model"}}, PartitionSpec{{}, {}},
                                      PartitionSpec{{"data"}, {}}, PartitionSpec{{}, {"model"}}}) {
      SimulateRuntime runtime(mesh);
      EXPECT_EQ(drop(runtime, spec), expected) << mesh.to_string();
    }
  }
}

TEST_F(RandomTensors, DropoutDropsAndScalesTheRest) {
  const Tensor x = full({10000}, 3);
  const Floats y = dropout(x, 0.2).to_vector();
  const auto dropped = std::ranges::count(y, 0.0F);
  EXPECT_NEAR(static_cast<double>(dropped), 2000, 5 * std::sqrt(10000 * 0.2 * 0.8));
  EXPECT_EQ(std::ranges::count(y, 3.75F) + dropped, 10000);
}

TEST_F(RandomTensors, TheGradientOfDropoutGoesToWhatIsKept) {
  const Tensor x = f32(Floats(100, 2), {100});
  const Tensor y = dropout(x, 0.5);
  const Floats g = grad(sum(y), std::vector{x})[0].to_vector();
  const Floats kept = y.to_vector();
  for (std::size_t i = 0; i < g.size(); ++i) EXPECT_EQ(g[i], kept[i] / 2);
}

TEST_F(RandomTensors, DropoutOfNothingAndOfAll) {
  const Tensor x = f32({1, 2, INFINITY}, {3});
  EXPECT_EQ(dropout(x, 0).to_vector(), (Floats{1, 2, INFINITY}));
  EXPECT_EQ(dropout(x, 1).to_vector(), (Floats{0, 0, 0}));
  const Tensor w = f32({1, 2}, {2});
  EXPECT_EQ(grad(sum(dropout(w, 0)), std::vector{w})[0].to_vector(), (Floats{1, 1}));
  EXPECT_EQ(grad(sum(dropout(w, 1)), std::vector{w})[0].to_vector(), (Floats{0, 0}));
}

TEST_F(RandomTensors, DropoutOfChannelsDropsThemWhole) {
  const Floats y = dropout2d(full({50, 40, 2, 3}, 3), 0.25).to_vector();
  int dropped = 0;
  for (std::size_t channel = 0; channel < 2000; ++channel) {
    const float first = y[6 * channel];
    dropped += first == 0;
    for (std::size_t i = 0; i < 6; ++i) ASSERT_EQ(y[6 * channel + i], first);
    ASSERT_TRUE(first == 0 || first == 4) << first;
  }
  EXPECT_NEAR(dropped, 500, 5 * std::sqrt(2000 * 0.25 * 0.75));
  EXPECT_EQ(dropout1d(full({4, 5}, 1)).shape(), (Shape{4, 5}));
  EXPECT_EQ(dropout3d(full({2, 4, 5, 1, 2}, 1)).shape(), (Shape{2, 4, 5, 1, 2}));
  expect_error(Errc::invalid_argument, {"dropout2d", "3 dims", "unsqueeze(x, 0)"}, [] {
    dropout2d(full({2, 3, 4}, 1));
  });
  expect_error(Errc::invalid_argument, {"dropout1d", "4 dims", "without N"}, [] {
    dropout1d(full({2, 3, 4, 5}, 1));
  });
}

TEST_F(RandomTensors, AlphaDropoutKeepsMeanAndVariance) {
  const Tensor y = alpha_dropout(randn({40000}), 0.3);
  const Tensor center = mean(y);
  const Tensor spread = var(y);
  EXPECT_NEAR(center.item(), 0, 0.03);
  EXPECT_NEAR(spread.item(), 1, 0.04);
}

TEST_F(RandomTensors, DropoutRefusesWhatIsNoProbability) {
  const Tensor x = f32({1, 2}, {2});
  for (const double p : {-0.1, 1.5, std::nan("")}) {
    expect_error(Errc::invalid_argument, {"dropout: p = ", "from 0 to 1", "random_test.cpp:"},
                 [&] { dropout(x, p); });
  }
  expect_error(Errc::invalid_argument, {"dropout: i32[1] isn't floating"},
               [] { dropout(testing::i32({1}, {1})); });
}

}  // namespace
}  // namespace weft::random_test
