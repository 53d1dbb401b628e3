#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include <weft/nn/layers.hpp>
#include <weft/nn/losses.hpp>
#include <weft/optim/optimizer.hpp>
#include <weft/sharding/presets.hpp>

#include "spmd/ops/fingerprint.hpp"
#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::train_test {
namespace {

using testing::expect_error;
using testing::f32;
using testing::i32;
using testing::InterpretRuntime;
using testing::SimulateRuntime;

constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kFeatures = 4;
constexpr std::int64_t kClasses = 2;

struct Mlp : Module {
  Linear fc1{*this, "fc1", {.in_features = kFeatures, .out_features = 16}};
  Linear fc2{*this, "fc2", {.in_features = 16, .out_features = kClasses}};

  Tensor operator()(const Tensor& x) const { return fc2(relu(fc1(x))); }
};

struct Batch {
  Tensor x;
  Tensor labels;
};

/// Returns points on a lattice. Their class is 1 if the product of the first two coordinates is
/// positive.
Batch make_batch(int step) {
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < kBatch; ++i) {
    const int n = 7 * (step * static_cast<int>(kBatch) + i) + 3;
    const float a = static_cast<float>(n % 5) - 2.2F;
    const float b = static_cast<float>(n / 5 % 5) - 1.8F;
    x.insert(x.end(), {a, b, 0.5F * a, 1});
    labels.push_back(a * b > 0 ? 1 : 0);
  }
  return {f32(x, {kBatch, kFeatures}), i32(labels, {kBatch})};
}

/// The parts of a loop that are marked: nothing; the batch; the batch and the weights, for
/// Megatron's pair of layers, for FSDP, or for both.
enum class Marks { none, batch, megatron, fsdp, megatron_and_fsdp };

std::vector<double> train(Runtime& runtime, int steps, Marks marks) {
  const RuntimeScope scope(runtime);
  Mlp net;
  AdamW optimizer(net.parameters(), {.lr = 0.03});
  if (marks == Marks::megatron || marks == Marks::megatron_and_fsdp) {
    mark_sharding(net.fc1.weight, *runtime.mesh(), {{"model"}, {}});
    mark_sharding(net.fc1.bias, *runtime.mesh(), {{"model"}});
    mark_sharding(net.fc2.weight, *runtime.mesh(), {{}, {"model"}});
  }
  if (marks == Marks::fsdp || marks == Marks::megatron_and_fsdp) fsdp(net, *runtime.mesh());
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const Batch batch = make_batch(step);
    if (marks != Marks::none) {
      mark_sharding(batch.x, *runtime.mesh(), {{"data"}, {}});
      mark_sharding(batch.labels, *runtime.mesh(), {{"data"}});
    }
    const Tensor loss = cross_entropy(net(batch.x), batch.labels);
    optimizer.step(grad(loss, net.parameters()));
    sync();
    losses.push_back(loss.item());
  }
  return losses;
}

TEST(Train, ReducesTheLoss) {
  InterpretRuntime runtime;
  const std::vector<double> losses = train(runtime, 60, Marks::none);
  EXPECT_NEAR(losses.front(), std::log(2), 0.4);
  EXPECT_LT(losses.back(), 0.25 * losses.front());
}

TEST(Train, TracesTheSameProgramFromTheSecondStepOn) {
  const Mesh mesh({2, 2}, {"data", "model"});
  InterpretRuntime runtime(mesh);
  train(runtime, 4, Marks::none);
  ASSERT_EQ(runtime.programs.size(), 4U);
  EXPECT_EQ(fingerprint(runtime.programs[1]), fingerprint(runtime.programs[2]));
  EXPECT_EQ(fingerprint(runtime.programs[1]), fingerprint(runtime.programs[3]));
}

// The sharding of an unmarked parameter is open until the first run and fixed from then on. The
// first program differs in nothing else.
TEST(Train, TheFirstProgramDiffersOnlyInTheShardingsOfStateThatWasOpen) {
  const Mesh mesh({2, 2}, {"data", "model"});
  InterpretRuntime runtime(mesh);
  train(runtime, 2, Marks::none);
  Program first = runtime.programs[0];
  const Program& second = runtime.programs[1];
  EXPECT_NE(fingerprint(first), fingerprint(second));
  ASSERT_EQ(first.inputs.size(), second.inputs.size());
  for (std::size_t i = 0; i < first.inputs.size(); ++i) {
    if (first.inputs[i].sharding == second.inputs[i].sharding) continue;
    EXPECT_TRUE(first.inputs[i].kind == InputKind::param ||
                first.inputs[i].kind == InputKind::opt_state);
    first.inputs[i].sharding = second.inputs[i].sharding;
  }
  for (std::size_t i = 0; i < first.outputs.size(); ++i) {
    if (first.outputs[i].updates >= 0) first.outputs[i].sharding = second.outputs[i].sharding;
  }
  EXPECT_EQ(fingerprint(first), fingerprint(second));
}

TEST(Train, OutputsAreTheUpdatesAndTheLoss) {
  InterpretRuntime runtime;
  train(runtime, 1, Marks::none);
  int updates = 0;
  for (const ProgramOutput& output : runtime.programs[0].outputs) updates += output.updates >= 0;
  EXPECT_EQ(updates, 14);
  ASSERT_EQ(runtime.programs[0].outputs.size(), 15U);
  EXPECT_EQ(runtime.programs[0].outputs.back().name, "out.0");
}

class TrainOnMesh : public ::testing::TestWithParam<Marks> {};

TEST_P(TrainOnMesh, GivesTheLossesOfOneDevice) {
  InterpretRuntime one_device;
  const std::vector<double> expected = train(one_device, 10, Marks::none);
  SimulateRuntime mesh(Mesh({2, 2}, {"data", "model"}));
  const std::vector<double> losses = train(mesh, 10, GetParam());
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(losses[step], expected[step], 1e-9 * expected[step]) << "step " << step;
  }
  EXPECT_EQ(mesh.plans.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Marks, TrainOnMesh,
                         ::testing::Values(Marks::none, Marks::batch, Marks::megatron, Marks::fsdp,
                                           Marks::megatron_and_fsdp));

/// Returns sorted lines such as "all_gather 256".
std::vector<std::string> collectives_of(SimulateRuntime& runtime) {
  std::vector<std::string> all;
  for (const CollectiveSummary& collective : collectives(*runtime.plans.front(), *runtime.mesh())) {
    all.push_back(fmt::format("{} {}", to_string(collective.kind), collective.bytes));
  }
  std::sort(all.begin(), all.end());
  return all;
}

// fc1.weight has 256 bytes, fc1.bias 64, and fc2.weight 128. The 2 elements of fc2.bias can't be
// divided among 4 chips.
TEST(Fsdp, GathersEachWeightAndScattersItsGradient) {
  SimulateRuntime runtime(Mesh({4}, {"data"}));
  train(runtime, 1, Marks::fsdp);
  EXPECT_EQ(collectives_of(runtime),
            (std::vector<std::string>{"all_gather 128", "all_gather 256", "all_gather 64",
                                      "all_reduce 12", "reduce_scatter 128", "reduce_scatter 256",
                                      "reduce_scatter 64"}));
}

TEST(Fsdp, TakesTheLargestDimThatIsFreeAndDivides) {
  const Mesh mesh({2, 2}, {"data", "model"});
  InterpretRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  Mlp net;
  mark_sharding(net.fc1.weight, mesh, {{"model"}, {}});
  fsdp(net, mesh);
  const Tensor y = net(make_batch(0).x);
  sync();
  std::vector<std::string> shardings;
  for (const ProgramInput& input : runtime.programs[0].inputs) {
    if (input.kind != InputKind::param) continue;
    const int num_dims = runtime.programs[0].shape(input.value).size();
    shardings.push_back(fmt::format("{} {}", input.name, input.sharding.to_string(mesh, num_dims)));
  }
  EXPECT_EQ(shardings,
            (std::vector<std::string>{R"(fc1.weight [{"model"}, {"data"}] priority{"data"=2})",
                                      R"(fc1.bias [{"data"}] priority{"data"=2})",
                                      R"(fc2.weight [{?}, {"data"}] priority{"data"=2})",
                                      R"(fc2.bias [{"data"}] priority{"data"=2})"}));
}

TEST(Fsdp, RefusesAModuleThatLiesOnTheChipsAndAnAxisThatThereIsNot) {
  const Mesh mesh({2}, {"data"});
  InterpretRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  Mlp net;
  expect_error(Errc::not_found, {"expert"}, [&] { fsdp(net, mesh, {.axis = "expert"}); });
  expect_error(Errc::mesh_mismatch, {"fsdp: "}, [&] { fsdp(net, Mesh({3}, {"data"})); });
  const Tensor y = net(make_batch(0).x);
  sync();
  expect_error(Errc::invalid_argument,
               {"fsdp: 'fc1.weight' f32[16,4] is already on the chips", "train_test.cpp:"},
               [&] { fsdp(net, mesh); });
}

/// A runtime that has restored every parameter of an interrupted loop with ones.
struct KeepingRuntime : InterpretRuntime {
  using InterpretRuntime::InterpretRuntime;
  Restored take_restored(const std::string&, const TensorType& type) override {
    return {BufferPtr(std::make_shared<testing::ElementBuffer>(
        type, Sharding::closed(), Elements(static_cast<std::size_t>(type.num_elements()), 1)))};
  }
};

/// fsdp() after a read is allowed in a loop that wasn't interrupted, so it must be allowed here.
TEST(Fsdp, MayComeAfterParametersThatWereKeptHaveBeenRead) {
  const Mesh mesh({2}, {"data"});
  KeepingRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  Mlp net;
  const Parameter weight = net.parameters().front();
  EXPECT_EQ(weight.to_vector().front(), 1);
  EXPECT_EQ(weight.to_vector().front(), 1) << "and again";
  fsdp(net, mesh);
  const Tensor y = net(make_batch(0).x);
  sync();
  EXPECT_EQ(weight.to_vector().front(), 1);
}

/// A source of twos.
struct Twos : TensorSource {
  void read(std::span<const Target> targets) const override {
    for (const Target& target : targets) {
      const std::vector<float> twos(static_cast<std::size_t>(target.placed.room.num_elements()), 2);
      std::memcpy(target.memory, twos.data(), twos.size() * sizeof(float));
    }
  }
  std::uint64_t digest() const override { return 2; }
};

/// Restores each name only once, for the first tensor that asks for it.
struct KeepingOnce : KeepingRuntime {
  using KeepingRuntime::KeepingRuntime;
  Restored take_restored(const std::string& name, const TensorType& type) override {
    return taken.insert(name).second ? KeepingRuntime::take_restored(name, type) : Restored{};
  }
  std::set<std::string> taken;
};

TEST(Source, GivesAParameterItsValueUnlessOneWasKept) {
  const Mesh mesh({2}, {"data"});
  const auto loaded = [&](auto& runtime) {
    const RuntimeScope scope(runtime);
    Mlp net;
    const Parameter weight = net.parameters().front();
    set_source(weight, std::make_shared<Twos>(), {}, std::source_location::current());
    const float before = weight.to_vector().front();
    const Tensor y = net(make_batch(0).x);
    sync();
    EXPECT_EQ(weight.to_vector().front(), before);
    set_source(weight, std::make_shared<Twos>(), {}, std::source_location::current());
    const Tensor again = net(make_batch(0).x);
    sync();
    EXPECT_EQ(weight.to_vector().front(), 2) << "the loop itself has asked for it later";
    return before;
  };
  InterpretRuntime runtime(mesh);
  EXPECT_EQ(loaded(runtime), 2);
  KeepingOnce keeping(mesh);
  EXPECT_EQ(loaded(keeping), 1);
}

}  // namespace
}  // namespace weft::train_test
