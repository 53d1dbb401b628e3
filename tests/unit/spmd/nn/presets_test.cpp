/// Compares the collectives in compiled training steps of the presets with those that textbooks
/// give for each kind of parallelism.

#include <weft/nn/attention.hpp>
#include <weft/nn/conv_layers.hpp>
#include <weft/nn/losses.hpp>
#include <weft/sharding/presets.hpp>

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include <weft/nn/layers.hpp>
#include <weft/nn/transforms.hpp>
#include <weft/ops/elementwise.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::presets_test {
namespace {

using testing::expect_error;
using testing::SimulateRuntime;
using Floats = std::vector<float>;
using Style = TensorParallelStyle;

constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kLength = 16;
constexpr std::int64_t kSize = 32;
constexpr std::int64_t kHeads = 4;

struct Mlp : Module {
  Linear fc1{*this, "fc1", {.in_features = kSize, .out_features = 64, .bias = false}};
  Linear fc2{*this, "fc2", {.in_features = 64, .out_features = kSize, .bias = false}};
  Tensor operator()(const Tensor& x) const { return fc2(relu(fc1(x))); }
};

/// One block of a GPT without biases, so that a step has only large collectives.
struct Block : Module {
  Linear in{*this, "in", square()};  ///< makes the input of q, k and v need a gradient
  Linear q{*this, "q", square()}, k{*this, "k", square()}, v{*this, "v", square()};
  Linear proj{*this, "proj", square()};
  Linear up{*this, "up", {.in_features = kSize, .out_features = 4 * kSize, .bias = false}};
  Linear down{*this, "down", {.in_features = 4 * kSize, .out_features = kSize, .bias = false}};

  static Linear::Options square() {
    return {.in_features = kSize, .out_features = kSize, .bias = false};
  }
  static Tensor heads(const Tensor& x) {
    return permute(reshape(x, {kBatch, kLength, kHeads, kSize / kHeads}), {0, 2, 1, 3});
  }
  static Tensor normed(const Tensor& x) {
    const Tensor ones = full({kSize}, 1);
    return rms_norm(x, ones);
  }
  template <typename Residual>
  Tensor forward(Tensor x, Residual residual) const {
    x = residual(in(x));
    const Tensor n = normed(x);
    const Tensor mixed = attention(heads(q(n)), heads(k(n)), heads(v(n)), {.causal = true});
    x = residual(x + proj(reshape(permute(mixed, {0, 2, 1, 3}), {kBatch, kLength, kSize})));
    return residual(x + down(gelu(up(normed(x)), Gelu::tanh)));
  }
};

constexpr std::int64_t kChannels = 8;
constexpr std::int64_t kImage = 8;  // the height and the width in pixels

/// Two convolutions with an activation between them, a pool and a linear layer.
struct ConvBlock : Module {
  Conv2d in{*this, "in", channels(4, kChannels)};  ///< makes the block's input need a gradient
  Conv2d conv1{*this, "conv1", channels(kChannels, 2 * kChannels)};
  Conv2d conv2{*this, "conv2", channels(2 * kChannels, kChannels)};
  Linear fc{*this, "fc", {.in_features = 16 * kChannels, .out_features = 16, .bias = false}};

  static Conv2d::Options channels(std::int64_t in, std::int64_t out) {
    return {.in_channels = in,
            .out_channels = out,
            .kernel_size = 3,
            .window = {.padding = 1},
            .bias = false};
  }
  Tensor operator()(const Tensor& x) const {
    const Tensor pooled = max_pool2d(conv2(relu(conv1(in(x)))), {.kernel_size = 2});
    return fc(reshape(pooled, {-1, 16 * kChannels}));
  }
};

/// Returns sorted lines such as "2x all_reduce model 16384". Collectives of fewer than `least`
/// bytes, such as those of the loss or a norm, are left out.
std::vector<std::string> collectives_of(const SimulateRuntime& runtime, std::int64_t least = 64) {
  std::map<std::string, int> counts;
  for (const CollectiveSummary& found : collectives(*runtime.plans.back(), *runtime.mesh())) {
    if (found.bytes < least) continue;
    ++counts[fmt::format("{} {} {}", to_string(found.kind), fmt::join(found.axes, ","),
                         found.bytes)];
  }
  std::vector<std::string> lines;
  for (const auto& [line, count] : counts) lines.push_back(fmt::format("{}x {}", count, line));
  return lines;
}

using Lines = std::vector<std::string>;

class Presets : public ::testing::Test {
 protected:
  /// Compiles one step of SGD on `net`, and returns its collectives.
  template <typename Net, typename Forward>
  Lines step_of(SimulateRuntime& runtime, Net& net, const Shape& shape, Forward forward,
                bool momentum = false) {
    SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = momentum ? 0.9 : 0});
    if (momentum) zero1(optimizer, *runtime.mesh());
    const Tensor x = to_device(Floats(static_cast<std::size_t>(shape.num_elements()), 0.1F), shape);
    data_parallel(std::vector{x}, *runtime.mesh());
    const Tensor y = forward(x);
    optimizer.step(grad(sum(y * y), net.parameters()));
    sync();
    return collectives_of(runtime);
  }
  /// Compiles one step of SGD on a net that `annotate` has marked, and returns its collectives.
  template <typename Net, typename Forward>
  Lines annotated_step(const Mesh& mesh, const std::function<void(Net&)>& annotate,
                       const Shape& shape, Forward forward, bool momentum = false) {
    SimulateRuntime runtime(mesh);
    const RuntimeScope scope(runtime);
    Net net;
    annotate(net);
    return step_of(
        runtime, net, shape, [&](const Tensor& x) { return forward(net, x); }, momentum);
  }
  Lines mlp_step(const Mesh& mesh, const std::function<void(Mlp&)>& annotate,
                 bool momentum = false) {
    return annotated_step<Mlp>(
        mesh, annotate, {64, kSize}, [](const Mlp& net, const Tensor& x) { return net(x); },
        momentum);
  }
  Lines block_step(
      const Mesh& mesh, const std::function<void(Block&)>& annotate,
      const std::function<Tensor(const Tensor&)>& residual = [](const Tensor& x) { return x; }) {
    return annotated_step<Block>(
        mesh, annotate, {kBatch, kLength, kSize},
        [&](const Block& net, const Tensor& x) { return net.forward(x, residual); });
  }
  Lines conv_step(
      const Mesh& mesh, const std::function<void(ConvBlock&)>& annotate = [](ConvBlock&) {},
      bool momentum = false) {
    return annotated_step<ConvBlock>(
        mesh, annotate, {16, 4, kImage, kImage},
        [](const ConvBlock& net, const Tensor& x) { return net(x); }, momentum);
  }

  static void megatron(const Module& net, const Mesh& mesh) {
    tensor_parallel(net, mesh,
                    {{"q", Style::columns},
                     {"k", Style::columns},
                     {"v", Style::columns},
                     {"proj", Style::rows},
                     {"up", Style::columns},
                     {"down", Style::rows}});
  }

  const Mesh data_{{4}, {"data"}};
  const Mesh both_{{2, 2}, {"data", "model"}};
};

// fc1.weight and fc2.weight have 64 * 32 * 4 = 8192 bytes each.
TEST_F(Presets, DataParallelReducesAllGradientsAsOne) {
  EXPECT_EQ(mlp_step(data_, [](Mlp&) {}), (Lines{"1x all_reduce data 16384"}));
}

TEST_F(Presets, Zero1ScattersGradientsAndGathersParameters) {
  EXPECT_EQ(mlp_step(
                data_, [](Mlp&) {}, /*momentum=*/true),
            (Lines{"2x all_gather data 8192", "2x reduce_scatter data 8192"}));
}

// The backward pass needs no gradient of the input, so it doesn't gather the first layer's weight
// again.
TEST_F(Presets, FsdpGathersForwardAndScattersGradients) {
  EXPECT_EQ(mlp_step(data_, [&](Mlp& net) { fsdp(net, data_); }),
            (Lines{"2x all_gather data 8192", "2x reduce_scatter data 8192"}));
}

// A chip's activation has 64 / 2 * 32 * 4 = 4096 bytes.
TEST_F(Presets, TensorParallelMlpMeetsOnceForwardAndGradientsOverTheBatch) {
  EXPECT_EQ(mlp_step(both_,
                     [&](Mlp& net) {
                       tensor_parallel(net, both_, {{"fc1", Style::columns}, {"fc2", Style::rows}});
                     }),
            (Lines{"1x all_reduce data 8192", "1x all_reduce model 4096"}));
}

// A chip's activation has 4 * 16 * 32 * 4 = 8192 bytes. The forward pass has two all_reduces (after
// proj and down), and so has the backward pass (before q, k, v and up).
TEST_F(Presets, TensorParallelBlockMeetsTwiceInEachDirection) {
  EXPECT_EQ(block_step(both_, [&](Block& net) { megatron(net, both_); }),
            (Lines{"1x all_reduce data 28672", "4x all_reduce model 8192"}));
}

TEST_F(Presets, SequenceParallelBlockGathersAndScattersInstead) {
  const Lines lines = block_step(
      both_, [&](Block& net) { megatron(net, both_); },
      [&](const Tensor& x) { return sequence_parallel(x, both_); });
  EXPECT_EQ(lines, (Lines{"4x all_gather model 8192", "1x all_reduce data 24576",
                          "1x all_reduce data,model 4096", "4x reduce_scatter model 8192"}));
}

TEST_F(Presets, FsdpTimesTensorParallelDoesBoth) {
  EXPECT_EQ(mlp_step(both_,
                     [&](Mlp& net) {
                       tensor_parallel(net, both_, {{"fc1", Style::columns}, {"fc2", Style::rows}});
                       fsdp(net, both_);
                     }),
            (Lines{"2x all_gather data 4096", "1x all_reduce model 4096",
                   "2x reduce_scatter data 4096"}));
}

// `in` has 8 * 4 * 3 * 3 * 4 = 1152 bytes, conv1 and conv2 have 16 * 8 * 3 * 3 * 4 = 4608 each, and
// fc has 16 * 128 * 4 = 8192.
TEST_F(Presets, DataParallelConvolutionsReduceAllGradientsAsOne) {
  EXPECT_EQ(conv_step(data_), (Lines{"1x all_reduce data 18560"}));
}

TEST_F(Presets, Zero1ConvolutionsScatterGradientsAndGatherParameters) {
  EXPECT_EQ(conv_step(
                data_, [](ConvBlock&) {}, /*momentum=*/true),
            (Lines{"1x all_gather data 1152", "2x all_gather data 4608", "1x all_gather data 8192",
                   "1x reduce_scatter data 1152", "2x reduce_scatter data 4608",
                   "1x reduce_scatter data 8192"}));
}

TEST_F(Presets, FsdpConvolutionsGatherForwardAndScatterGradients) {
  EXPECT_EQ(conv_step(data_, [&](ConvBlock& net) { fsdp(net, data_); }),
            (Lines{"1x all_gather data 1152", "2x all_gather data 4608", "1x all_gather data 8192",
                   "1x reduce_scatter data 1152", "2x reduce_scatter data 4608",
                   "1x reduce_scatter data 8192"}));
}

// conv1 is sharded over its output channels, conv2 over its input channels. The input of conv1 and
// the output of conv2 have 8 * 8 * 8 * 8 * 4 = 16384 bytes on a chip.
TEST_F(Presets, ChannelParallelConvolutionsMeetOnceInEachDirection) {
  EXPECT_EQ(
      conv_step(both_,
                [&](ConvBlock& net) {
                  tensor_parallel(net, both_, {{"conv1", Style::columns}, {"conv2", Style::rows}});
                }),
      (Lines{"1x all_reduce data 13952", "2x all_reduce model 16384"}));
}

// 4 chips are on 2 hosts. No gradient has more than 16 KiB, so none is scattered before it crosses
// the network.
TEST_F(Presets, DataParallelHostsReduceWithinThemFirst) {
  const Mesh hosts = HybridMesh{{2}, {2}, {"data"}}.mesh();
  EXPECT_EQ(mlp_step(hosts, [](Mlp&) {}),
            (Lines{"1x all_reduce data:dcn 16384", "1x all_reduce data:ici 16384"}));
  EXPECT_EQ(conv_step(hosts),
            (Lines{"1x all_reduce data:dcn 18560", "1x all_reduce data:ici 18560"}));
}

// Only collectives along "data" cross the network.
TEST_F(Presets, TensorParallelHostsReduceActivationsWithinThem) {
  const Mesh hosts = HybridMesh{{2, 2}, {2, 1}, {"data", "model"}}.mesh();
  EXPECT_EQ(mlp_step(hosts,
                     [&](Mlp& net) {
                       tensor_parallel(net, hosts, {{"fc1", Style::columns}, {"fc2", Style::rows}});
                     }),
            (Lines{"1x all_reduce data:dcn 8192", "1x all_reduce data:ici 8192",
                   "1x all_reduce model 2048"}));
}

/// Returns the sharding that `annotate` requests for the weight [64, 32] of layer fc1.
Sharding asked_after(const std::function<void(const Mlp&, const Optimizer&)>& annotate,
                     const Mesh& mesh) {
  SimulateRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  const Mlp net;
  const SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  annotate(net, optimizer);
  return net.fc1.weight.node()->marked.value_or(Sharding::closed());
}

TEST_F(Presets, GoTogetherInAnyOrder) {
  const auto tp = [&](const Mlp& net) { tensor_parallel(net, both_, {{"fc1", Style::columns}}); };
  const Sharding tp_fsdp = asked_after(
      [&](const Mlp& net, const Optimizer&) {
        tp(net);
        fsdp(net, both_);
      },
      both_);
  const Sharding fsdp_tp = asked_after(
      [&](const Mlp& net, const Optimizer&) {
        fsdp(net, both_);
        tp(net);
      },
      both_);
  EXPECT_EQ(tp_fsdp.to_string(both_, 2), fsdp_tp.to_string(both_, 2));
  const Sharding alone =
      asked_after([&](const Mlp& net, const Optimizer&) { fsdp(net, data_); }, data_);
  const Sharding behind_zero1 = asked_after(
      [&](const Mlp& net, const Optimizer& optimizer) {
        zero1(optimizer, data_);
        fsdp(net, data_);
      },
      data_);
  EXPECT_EQ(behind_zero1.to_string(data_, 2), alone.to_string(data_, 2));
}

TEST_F(Presets, FsdpShardsWithinHostsUnlessAskedOtherwise) {
  const Mesh hosts = HybridMesh{{2, 1}, {2, 4}, {"data", "far"}}.mesh();
  const auto dims = [&](const FsdpOptions& options) {
    return asked_after([&](const Mlp& net, const Optimizer&) { fsdp(net, hosts, options); }, hosts)
        .dims[0];
  };
  EXPECT_EQ(dims({}), AtomList{2});
  EXPECT_EQ(dims({.across_hosts = true}), (AtomList{1, 2}));
  EXPECT_EQ(dims({.axis = "far", .across_hosts = true}), (AtomList{3, 4}));
  const auto with_zero1 =
      asked_after([&](const Mlp&, const Optimizer& optimizer) { zero1(optimizer, hosts); }, hosts);
  EXPECT_EQ(with_zero1.replicated, AtomList{2}.mask());
  expect_error(Errc::invalid_argument,
               {"fsdp", "axis \"far\" has 4 hosts with one chip on each", "across_hosts = true"},
               [&] { dims({.axis = "far"}); });
}

TEST_F(Presets, LeaveWhatIsMarkedByHand) {
  const Sharding marked = asked_after(
      [&](const Mlp& net, const Optimizer&) {
        mark_sharding(net.fc1.weight, both_, {{"data"}, {}});
        tensor_parallel(net, both_, {{"fc1", Style::columns}});
      },
      both_);
  const Shape shape{64, kSize};
  EXPECT_EQ(marked, Sharding::from_spec(both_, {{"data"}, {}}, shape, ""));
}

/// A checkpointed region is recomputed only when the backward pass reaches it, and a micro-batch
/// begins when the previous one has ended. Moving the all_reduces of tensor parallelism must not
/// make a region or a micro-batch begin earlier.
TEST_F(Presets, MicroBatchesUnderTensorParallelismTakeTheMemoryOfOne) {
  const auto temp_bytes = [&](std::int64_t count) {
    SimulateRuntime runtime(both_);
    const RuntimeScope scope(runtime);
    Block net;
    megatron(net, both_);
    SGD optimizer(net.parameters(), {.lr = 0.1});
    const Tensor x = to_device(Floats(static_cast<std::size_t>(count * kBatch * kLength * kSize)),
                               {count * kBatch, kLength, kSize});
    const auto [loss, grads] =
        micro_batches(count, std::vector{x}, net.parameters(), [&](std::span<const Tensor> part) {
          return mean(net.forward(part[0], [](const Tensor& y) { return y; }));
        });
    optimizer.step(grads);
    sync();
    return runtime.plans.back()->temp_bytes;
  };
  EXPECT_LT(static_cast<double>(temp_bytes(8)), 1.5 * static_cast<double>(temp_bytes(2)));
}

TEST_F(Presets, DataParallelTakesAListOfTensors) {
  SimulateRuntime runtime(data_);
  const RuntimeScope scope(runtime);
  const Tensor x = to_device(Floats(64, 0.1F), {64});
  const Tensor y = to_device(Floats(64, 0.2F), {64});
  data_parallel({x, y}, data_);
  EXPECT_EQ(x.node()->marked, Sharding::from_spec(data_, {{"data"}}, x.shape(), "x"));
  EXPECT_EQ(y.node()->marked, x.node()->marked);
}

TEST_F(Presets, MicroBatchesReduceOncePerStep) {
  const auto step = [&](std::int64_t count) {
    SimulateRuntime runtime(data_);
    const RuntimeScope scope(runtime);
    manual_seed(2);
    Mlp net;
    SGD optimizer(net.parameters(), {.lr = 0.1});
    const Tensor x = to_device(Floats(64 * kSize, 0.1F), {64, kSize});
    data_parallel(std::vector{x}, data_);
    const auto [loss, grads] = micro_batches(
        count, std::vector{x}, net.parameters(),
        [&](std::span<const Tensor> part) { return mse_loss(net(part[0]), part[0]); });
    optimizer.step(grads);
    sync();
    return std::pair(collectives_of(runtime), loss.item());
  };
  const auto whole = step(1);
  const auto parts = step(4);
  EXPECT_EQ(whole.first, (Lines{"1x all_reduce data 16388"}));
  EXPECT_EQ(parts.first, whole.first);
  EXPECT_NEAR(parts.second, whole.second, 1e-9);
}

TEST_F(Presets, EveryKindGivesTheLossOfOneChip) {
  const auto losses = [](const Mesh& mesh, const std::function<void(Mlp&)>& annotate, bool zero) {
    SimulateRuntime runtime(mesh);
    const RuntimeScope scope(runtime);
    manual_seed(5);
    Mlp net;
    annotate(net);
    AdamW optimizer(net.parameters(), {.lr = 0.01});
    if (zero) zero1(optimizer, mesh);
    std::vector<double> found;
    for (int step = 0; step < 4; ++step) {
      Floats elements(8 * kSize);
      for (std::size_t i = 0; i < elements.size(); ++i) {
        elements[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(step)) % 11) / 11;
      }
      const Tensor x = to_device(elements, {8, kSize});
      data_parallel(std::vector{x}, mesh);
      const Tensor loss = mse_loss(net(x), x);
      optimizer.step(grad(loss, net.parameters()));
      sync();
      found.push_back(loss.item());
    }
    return found;
  };
  const std::vector<double> expected = losses(
      Mesh({1}, {"data"}), [](Mlp&) {}, false);
  const std::vector<std::function<void(Mlp&)>> kinds{
      [](Mlp&) {}, [&](Mlp& net) { fsdp(net, both_); },
      [&](Mlp& net) {
        tensor_parallel(net, both_, {{"fc1", Style::columns}, {"fc2", Style::rows}});
      }};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    for (const bool zero : {false, true}) {
      const std::vector<double> found = losses(both_, kinds[kind], zero);
      for (std::size_t step = 0; step < expected.size(); ++step) {
        EXPECT_NEAR(found[step], expected[step], 1e-9) << "kind " << kind << " step " << step;
      }
    }
  }
}

TEST_F(Presets, MarkAWholeModuleByTheNumberOfDims) {
  SimulateRuntime runtime(both_);
  const RuntimeScope scope(runtime);
  Mlp net;
  mark_sharding(net, both_, {{"data"}, {"model"}});
  EXPECT_EQ(net.fc1.weight.node()->marked,
            Sharding::from_spec(both_, {{"data"}, {"model"}}, net.fc1.weight.shape(), ""));
  expect_error(Errc::invalid_argument,
               {"no parameter of the module has 3 dims", "presets_test.cpp"}, [&] {
                 mark_sharding(net, both_, {{}, {}, {}});
               });
}

TEST_F(Presets, RefuseWhatFitsNothing) {
  SimulateRuntime runtime(both_);
  const RuntimeScope scope(runtime);
  Mlp net;
  expect_error(Errc::invalid_argument,
               {"tensor_parallel: rule \"fc3\": no layer of that name", "presets_test.cpp:"}, [&] {
                 tensor_parallel(net, both_, {{"fc3", Style::rows}});
               });
  expect_error(Errc::not_found, {"expert"}, [&] {
    tensor_parallel(net, both_, {{"fc1", Style::rows}}, "expert");
  });
  expect_error(Errc::invalid_argument, {"data_parallel: a scalar has no batch"},
               [&] { data_parallel(std::vector{to_device(Floats{1}, {})}, both_); });
  expect_error(Errc::invalid_argument,
               {"sequence_parallel: f32[2]: expected [batch, length, size]"}, [&] {
                 sequence_parallel(to_device(Floats{1, 2}, {2}), both_);
               });
}

}  // namespace
}  // namespace weft::presets_test
