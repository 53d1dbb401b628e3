#include <weft/nn/attention.hpp>

#include <array>

#include <weft/nn/transforms.hpp>
#include <weft/sharding/shard_map.hpp>

#include "tests/unit/spmd/tensor/as_whole.hpp"

namespace weft::ring_attention_test {
namespace {

using testing::counted;
using testing::expect_as_whole;
using testing::Results;
using P = PartitionSpec;

const Mesh kRing({4}, {"ring"});
const Mesh kGrid({2, 4}, {"data", "ring"});
const P kParts{{}, {}, "ring"};

struct Inputs {
  Tensor q, k, v;
};
using Attend = std::function<Tensor(const Inputs&)>;

/// Returns waves whose products differ in magnitude, so that the running maximum of the scores
/// changes.
Tensor waves(const Shape& shape, double scale, double pace) {
  return scale * sin(counted(shape, 1) * pace);
}

/// Returns the result of an attention and its gradients.
Results trained(const Attend& attend, const Shape& queries, const Shape& keys) {
  const Inputs in{.q = waves(queries, 3, 0.7), .k = waves(keys, 2, 0.3), .v = waves(keys, 1, 1.1)};
  const Tensor y = attend(in);
  const Results grads = grad(sum(y * y * waves(queries, 1, 0.9)), std::array{in.q, in.k, in.v});
  return {y, grads[0], grads[1], grads[2]};
}

Attend in_a_ring(const Mesh& mesh, const RingAttentionOptions& options) {
  return [&mesh, options](const Inputs& in) {
    const auto attend = [&](const Inputs& own) {
      return ring_attention(own.q, own.k, own.v, "ring", options);
    };
    return shard_map(attend, mesh, kParts, kParts)(in);
  };
}

void expect_as_attention(const Mesh& mesh, const RingAttentionOptions& options,
                         const Shape& queries, const Shape& keys) {
  expect_as_whole(
      mesh, [&] { return trained(in_a_ring(mesh, options), queries, keys); },
      [&] {
        const AttentionOptions plain{
            .causal = options.causal, .scale = options.scale, .enable_gqa = options.enable_gqa};
        return trained([&](const Inputs& in) { return attention(in.q, in.k, in.v, plain); },
                       queries, keys);
      });
}

TEST(RingAttention, IsAttentionOverTheKeysOfAllChips) {
  expect_as_attention(kRing, {}, {2, 2, 8, 4}, {2, 2, 8, 4});
}

TEST(RingAttention, OfCausalQueriesSeesKeysUpToTheirOwn) {
  expect_as_attention(kRing, {.causal = true}, {2, 2, 8, 4}, {2, 2, 8, 4});
}

TEST(RingAttention, TakesMoreKeysThanQueries) {
  expect_as_attention(kRing, {.causal = true, .scale = 0.5}, {1, 2, 4, 4}, {1, 2, 12, 4});
}

TEST(RingAttention, SharesHeadsOfKeys) {
  expect_as_attention(kRing, {.causal = true, .enable_gqa = true}, {1, 4, 8, 4}, {1, 2, 8, 4});
}

/// The function is manual only over the ring's axis, not over the axis that shards the batch or the
/// heads.
TEST(RingAttention, LeavesOtherAxesToPropagation) {
  expect_as_attention(kGrid, {.causal = true}, {2, 2, 8, 4}, {2, 2, 8, 4});
}

TEST(RingAttention, OnOneChipIsAttention) {
  const Mesh one({1}, {"ring"});
  expect_as_attention(one, {.causal = true}, {1, 2, 8, 4}, {1, 2, 8, 4});
}

/// Keys and values are sent around the ring, and then their gradients. The all_gather is there only
/// because the result is read.
TEST(RingAttention, MovesKeysAndValuesAlone) {
  testing::SimulateRuntime runtime(kRing);
  (void)testing::values_of(runtime, [&] {
    return trained(in_a_ring(kRing, {}), {1, 2, 8, 4}, {1, 2, 8, 4});
  });
  std::vector<std::string> all;
  for (const CollectiveSummary& each : collectives(*runtime.plans.at(0), kRing)) {
    all.push_back(fmt::format("{} {}", to_string(each.kind), each.bytes));
  }
  const std::string read = "all_gather 256";
  EXPECT_EQ(all, (std::vector<std::string>{"ppermute 64", "ppermute 64", "ppermute 64",
                                           "ppermute 64", read}));
}

TEST(RingAttention, KeepsTheDtypeAndSumsInF32) {
  const auto step = [](const Attend& attend) {
    const Tensor x = cast(waves({1, 1, 16, 4}, 1, 0.7), DType::bf16);
    const Tensor y = attend({x, x, x});
    EXPECT_EQ(y.type().dtype, DType::bf16);
    return Results{y};
  };
  testing::InterpretRuntime plain;
  const auto expected = testing::values_of(
      plain, [&] { return step([](const Inputs& in) { return attention(in.q, in.k, in.v); }); });
  testing::SimulateRuntime ring(kRing);
  const auto found = testing::values_of(ring, [&] { return step(in_a_ring(kRing, {})); });
  for (std::size_t i = 0; i < expected[0].size(); ++i) {
    EXPECT_NEAR(found[0][i], expected[0][i], 0.01);
  }
}

TEST(RingAttention, RefusesWhatDoesNotFit) {
  testing::InterpretRuntime runtime(kRing);
  const RuntimeScope scope(runtime);
  const Tensor x = full({1, 2, 8, 4}, 1);
  testing::expect_error(Errc::invalid_argument, {"ring_attention", "a shard_map()"},
                        [&] { (void)ring_attention(x, x, x, "ring"); });
  testing::expect_error(
      Errc::invalid_argument,
      {"ring_attention: q f32[1,2,2,4]", "have 2 and 1 heads", "enable_gqa"}, [&] {
        (void)in_a_ring(kRing,
                        {})({.q = x, .k = full({1, 1, 8, 4}, 1), .v = full({1, 1, 8, 4}, 1)});
      });
}

}  // namespace
}  // namespace weft::ring_attention_test
