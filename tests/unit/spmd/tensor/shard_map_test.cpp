#include <weft/sharding/shard_map.hpp>

#include <algorithm>
#include <array>

#include <weft/nn/transforms.hpp>
#include <weft/ops/control_flow.hpp>
#include <weft/ops/random.hpp>
#include <weft/ops/shapes.hpp>

#include "tests/unit/spmd/tensor/as_whole.hpp"

namespace weft::shard_map_test {
namespace {

using testing::counted;
using testing::expect_as_whole;
using testing::expect_refusal;
using testing::f32;
using testing::values_of;
using P = PartitionSpec;
using testing::Results;
using testing::Values;

const Mesh kLine({4}, {"stage"});
const Mesh kGrid({2, 4}, {"data", "stage"});

Tensor squared(const Tensor& x) { return x * x; }

TEST(ShardMap, GivesEachChipItsPart) {
  const auto program = [] {
    const auto local = shard_map(
        [](const Tensor& x) {
          EXPECT_EQ(x.shape(), (Shape{2, 3}));
          return x * 2.0 + cast(axis_index("stage"), DType::f32);
        },
        kLine, {P{"stage"}}, P{"stage"});
    return Results{local(counted({8, 3}))};
  };
  expect_as_whole(kLine, program, [] {
    return Results{counted({8, 3}) * 2.0 + f32({0, 0, 1, 1, 2, 2, 3, 3}, {8, 1})};
  });
}

TEST(ShardMap, SumsOverTheGroup) {
  const auto program = [] {
    const auto norms = shard_map(
        [](const Tensor& x) {
          const Tensor total = psum(sum(x * x), "stage");
          return std::tuple(total, pmax(amax(x), "stage"), pmin(amin(x), "stage"),
                            pmean(x, "stage"), x / total);
        },
        kLine, {P{{}, "stage"}}, {P{}, P{}, P{}, P{}, P{{}, "stage"}});
    const auto [total, most, least, mean, scaled] = norms(counted({2, 8}));
    return Results{total, most, least, mean, scaled};
  };
  expect_as_whole(kLine, program, [] {
    const Tensor x = counted({2, 8});
    return Results{sum(x * x), amax(x), amin(x), mean(reshape(x, {2, 4, 2}), {1}), x / sum(x * x)};
  });
}

/// Shards the inner dim of a product, so that chips have partial sums, and compares gradients too.
TEST(ShardMap, HasGradientsOfSums) {
  const auto step = [](const std::function<Tensor(Tensor, Tensor, Tensor)>& model) {
    const Tensor x = counted({4, 8});
    const Tensor w = counted({8, 3});
    const Tensor b = counted({3});
    const Tensor loss = sum(squared(model(x, w, b)));
    const Results grads = grad(loss, std::array{x, w, b});
    return Results{loss, grads[0], grads[1], grads[2]};
  };
  const auto program = [&] {
    return step([](const Tensor& x, const Tensor& w, const Tensor& b) {
      return shard_map(
          [&](const Tensor& own_x, const Tensor& own_w) {
            // Every chip uses b both before and after the sum.
            const Tensor part = matmul(own_x, own_w) + b * 0.25;
            return tanh(psum(part, "stage")) * b;
          },
          kLine, {P{{}, "stage"}, P{"stage"}}, P{})(x, w);
    });
  };
  expect_as_whole(kLine, program, [&] {
    return step([](const Tensor& x, const Tensor& w, const Tensor& b) {
      return tanh(matmul(x, w) + b) * b;
    });
  });
}

/// Each chip multiplies its copy of w by another number, so the gradients of the copies must be
/// added up.
TEST(ShardMap, AddsUpTheGradientsOfCopies) {
  const auto step = [](const std::function<Tensor(Tensor)>& model) {
    const Tensor w = counted({3});
    const Tensor y = model(w);
    return Results{y, grad(sum(squared(y)), std::array{w})[0]};
  };
  const auto program = [&] {
    return step([](const Tensor& w) {
      return shard_map(
          [](const Tensor& copy) {
            return reshape(copy * (cast(axis_index("stage"), DType::f32) + 1.0), {1, 3});
          },
          kLine, {P{}}, P{"stage"})(w);
    });
  };
  expect_as_whole(kLine, program, [&] {
    return step([](const Tensor& w) { return f32({1, 2, 3, 4}, {4, 1}) * reshape(w, {1, 3}); });
  });
}

TEST(ShardMap, MovesPartsBetweenChips) {
  const auto step = [](const std::function<Results(Tensor)>& model) {
    const Tensor x = counted({8, 4});
    Results results = model(x);
    Tensor loss = full({}, 0);
    double weight = 1;
    for (const Tensor& y : results) loss = loss + weight++ * sum(squared(y) * y);
    results.push_back(grad(loss, std::array{x})[0]);
    return results;
  };
  const auto program = [&] {
    return step([](const Tensor& x) {
      return shard_map(
          [](const Tensor& part) {
            return Results{ring_shift(part, "stage", 1), ppermute(part, "stage", {{0, 2}, {3, 1}}),
                           all_to_all(part, "stage", 1, 0),
                           all_to_all(all_gather(part, "stage"), "stage"),
                           reduce_scatter(all_gather(part, "stage", 1) * 0.5, "stage", -1)};
          },
          kLine, {P{"stage"}}, {P{"stage"}, P{"stage"}, P{{}, "stage"}, P{"stage"}, P{"stage"}})(x);
    });
  };
  expect_as_whole(kLine, program, [&] {
    return step([](const Tensor& x) {
      const std::vector<Tensor> part = chunk(x, 4, 0);
      const Tensor none = part[0] * 0.0;
      return Results{
          cat({part[3], part[0], part[1], part[2]}, 0), cat({none, part[3], part[0], none}, 0), x,
          reshape(permute(reshape(broadcast_to(reshape(x, {1, 8, 4}), {4, 8, 4}), {4, 4, 2, 4}),
                          {1, 0, 2, 3}),
                  {32, 4}),
          x * 2.0};
    });
  });
}

/// Data parallelism inside and outside of the function is left to propagation.
TEST(ShardMap, LeavesOtherAxesToPropagation) {
  const auto step = [](const std::function<Tensor(Tensor, Tensor)>& model, bool marks) {
    const Tensor x = counted({8, 12}, 0.01F);
    const Tensor w = counted({12, 6}, 0.01F);
    if (marks) mark_sharding(x, {{"data"}, {}});
    const Tensor loss = mean(squared(model(x, w)));
    return Results{loss, grad(loss, std::array{w})[0]};
  };
  const auto model = [](const Tensor& x, const Tensor& w) {
    return shard_map(
        [](const Tensor& own_x, const Tensor& own_w) {
          EXPECT_EQ(own_x.shape(), (Shape{8, 3}));
          return softmax(psum(matmul(own_x, own_w), "stage"));
        },
        kGrid, {P{{}, "stage"}, P{"stage"}}, P{})(tanh(x), w);
  };
  expect_as_whole(
      kGrid, [&] { return step(model, true); },
      [&] {
        return step([](const Tensor& x, const Tensor& w) { return softmax(matmul(tanh(x), w)); },
                    false);
      });
  // The chips along "stage" sum the terms of the product. Then one all_reduce over "data" sums the
  // gradient and the loss.
  testing::SimulateRuntime runtime(kGrid);
  (void)values_of(runtime, [&] { return step(model, true); });
  std::vector<std::string> all;
  for (const CollectiveSummary& each : collectives(*runtime.plans.at(0), kGrid)) {
    all.push_back(
        fmt::format("{} {} {}", to_string(each.kind), fmt::join(each.axes, ","), each.bytes));
  }
  EXPECT_EQ(all, (std::vector<std::string>{"all_reduce stage 96", "all_reduce data 76"}));
}

/// Tests a pipeline of stages and micro-batches, made with scan and ring_shift, and its gradient.
TEST(ShardMap, PipelinesWithScan) {
  constexpr std::int64_t kStages = 4;
  constexpr std::int64_t kBatches = 6;
  const auto stage_of = [](const Tensor& w, const Tensor& x) { return tanh(matmul(x, w)); };
  const auto step = [](const std::function<Tensor(Tensor, Tensor)>& model) {
    const Tensor w = counted({kStages, 3, 3}, 0.02F);
    const Tensor x = counted({kBatches, 2, 3}, 0.05F);
    const Tensor y = model(w, x);
    const Results grads = grad(sum(squared(y)), std::array{w, x});
    return Results{y, grads[0], grads[1]};
  };
  const auto pipeline = [&](const Tensor& w, const Tensor& x) {
    return shard_map(
        [&](const Tensor& own, const Tensor& batches) {
          const Tensor stage = axis_index("stage");
          const auto tick = [&](const Tensor& arrived, const Tensor& t) {
            const Tensor number = minimum(t, kBatches - 1);
            const Tensor first = reshape(index_select(batches, 0, reshape(number, {1})), {2, 3});
            const Tensor y = checkpoint([&] {
              return stage_of(reshape(own, {3, 3}), where(equal(stage, 0), first, arrived));
            });
            return std::pair(ring_shift(y, "stage"), y);
          };
          const auto [left, made] =
              scan(tick, vary(full({2, 3}, 0), "stage"), iota({kBatches + kStages - 1}, 0));
          const Tensor last = slice(made, 0, kStages - 1, kBatches + kStages - 1);
          return psum(where(equal(stage, kStages - 1), last, 0.0), "stage");
        },
        kGrid, {P{"stage"}, P{}}, P{})(w, x);
  };
  expect_as_whole(
      kGrid, [&] { return step(pipeline); },
      [&] {
        return step([&](const Tensor& w, Tensor x) {
          for (const Tensor& own : chunk(w, kStages, 0)) x = stage_of(reshape(own, {3, 3}), x);
          return x;
        });
      });
}

TEST(ShardMap, TakesWhatTheFunctionSees) {
  const auto program = [] {
    const Tensor x = counted({8});
    const Tensor scale = counted({2, 1});
    const Tensor outside = x * 3.0;
    const auto local = shard_map(
        [&](const Tensor& part) { return sum(scale) * part + sum(outside) + full({2}, 1); }, kLine,
        {P{"stage"}}, P{"stage"});
    const Tensor y = local(x);
    return Results{y, outside, grad(sum(squared(y)), std::array{scale})[0]};
  };
  expect_as_whole(kLine, program, [] {
    const Tensor x = counted({8});
    const Tensor scale = counted({2, 1});
    const Tensor y = sum(scale) * x + sum(x * 3.0) + 1.0;
    return Results{y, x * 3.0, grad(sum(squared(y)), std::array{scale})[0]};
  });
}

/// The function reads the table, which isn't its operand. The table is sharded over the function's
/// axis, but each chip must use all of it.
TEST(ShardMap, TakesATableThatIsShardedOverItsAxis) {
  const auto rows = [] { return iota({4, 8}, 0, DType::f32); };
  const auto program = [rows] {
    Tensor table = rows();
    mark_sharding(table, kLine, P{"stage", {}});
    const auto local = shard_map([&](const Tensor& part) { return matmul(table, part); }, kLine,
                                 {P{{}, "stage"}}, P{{}, "stage"});
    return Results{local(counted({8, 12}))};
  };
  expect_as_whole(kLine, program, [rows] { return Results{matmul(rows(), counted({8, 12}))}; });
}

/// A carry that begins as a constant isn't a constant for a function that reads it.
TEST(ShardMap, SeesTheCarryOfALoopAroundIt) {
  const auto step = [](const std::function<Tensor(Tensor, Tensor)>& add) {
    const Tensor x = counted({8});
    const auto [last, none] = scan(
        [&](const Tensor& carry, const Tensor& t) {
          return std::pair(tanh(add(x, carry) * (t + 1.0)), std::tuple<>());
        },
        full({8}, 0), cast(iota({3}, 0), DType::f32));
    return Results{last, grad(sum(squared(last)), std::array{x})[0]};
  };
  const auto program = [&] {
    return step([](const Tensor& x, const Tensor& carry) {
      return shard_map([&](const Tensor& part) { return part + sum(carry); }, kLine, {P{"stage"}},
                       P{"stage"})(x);
    });
  };
  expect_as_whole(kLine, program, [&] {
    return step([](const Tensor& x, const Tensor& carry) { return x + sum(carry); });
  });
}

/// A gradient in the function is the gradient of the sum of all chips' losses.
TEST(ShardMap, TakesGradientsInTheFunction) {
  const auto program = [] {
    const auto local = shard_map(
        [](const Tensor& part, const Tensor& w) {
          const auto [last, all] = scan(
              [&](const Tensor& carry, const Tensor& item) {
                const Tensor next = tanh(carry * w + item);
                return std::pair(next, next);
              },
              vary(full({}, 0.5), "stage"), part);
          const Tensor loss = last * 2.0 + sum(all);
          const Results grads = grad(loss, std::array{part, w});
          return std::tuple(grads[0], grads[1]);
        },
        kLine, {P{"stage"}, P{}}, {P{"stage"}, P{}});
    const auto [of_x, of_w] = local(counted({12}), full({}, 0.7));
    return Results{of_x, of_w};
  };
  expect_as_whole(kLine, program, [] {
    const Tensor x = counted({12});
    const Tensor w = full({}, 0.7) * 1.0;
    Tensor loss = full({}, 0);
    for (const Tensor& part : chunk(x, 4, 0)) {
      Tensor carry = full({}, 0.5);
      for (const Tensor& item : chunk(part, 3, 0)) {
        carry = tanh(carry * w + reshape(item, {}));
        loss = loss + carry;
      }
      loss = loss + carry * 2.0;
    }
    const Results grads = grad(loss, std::array{x, w});
    return Results{grads[0], grads[1]};
  });
}

TEST(ShardMap, NestsOverOtherAxes) {
  const auto program = [] {
    const Tensor x = counted({8, 8});
    const auto outer = shard_map(
        [](const Tensor& rows) {
          const auto inner = shard_map(
              [&](const Tensor& block) {
                EXPECT_EQ(block.shape(), (Shape{4, 2}));
                return psum(block, {"data", "stage"}) + sum(rows);
              },
              kGrid, {P{{}, "stage"}}, P{{}});
          return inner(rows);
        },
        kGrid, {P{"data"}}, P{"data"});
    const Tensor y = outer(x);
    return Results{y, grad(sum(squared(y)), std::array{x})[0]};
  };
  expect_as_whole(kGrid, program, [] {
    const Tensor x = counted({8, 8});
    const Tensor all = sum(reshape(x, {2, 4, 4, 2}), {0, 2});
    const Tensor y = reshape(broadcast_to(reshape(all, {1, 4, 2}), {2, 4, 2}) +
                                 reshape(sum(reshape(x, {2, 32}), {1}), {2, 1, 1}),
                             {8, 2});
    return Results{y, grad(sum(squared(y)), std::array{x})[0]};
  });
}

TEST(ShardMap, DrawsOtherNumbersOnEachChip) {
  testing::SimulateRuntime runtime(kLine);
  const auto drawn = values_of(runtime, [] {
    const auto draw = shard_map([](const Tensor& x) { return rand(Shape{2}) + x * 0.0; }, kLine,
                                {P{"stage"}}, P{"stage"});
    return Results{draw(counted({8})), draw(counted({8}))};
  });
  Values all = drawn[0];
  all.insert(all.end(), drawn[1].begin(), drawn[1].end());
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

/// On a mesh of one chip each group has one chip.
TEST(ShardMap, WorksOnOneChip) {
  const Mesh one({1}, {"stage"});
  const auto program = [&] {
    const auto local = shard_map(
        [](const Tensor& x) {
          const Tensor moved = all_to_all(all_gather(ring_shift(x, "stage"), "stage"), "stage");
          return psum(moved, "stage") + pmean(vary(x, "stage"), "stage") +
                 cast(axis_index("stage"), DType::f32);
        },
        one, {P{"stage"}}, P{});
    return Results{local(counted({4}))};
  };
  expect_as_whole(one, program, [] { return Results{counted({4}) * 2.0}; });
}

// The tests below cover what shard_map() refuses.

class ShardMapRefusal : public ::testing::Test {
 protected:
  template <typename Fn>
  void expect_refused(std::initializer_list<std::string_view> words, Fn fn, const Tensor& x,
                      const ShardMapSpecs& in, const ShardMapSpecs& out,
                      const ShardMapOptions& options = {}) {
    testing::expect_error(Errc::invalid_argument, words,
                          [&] { (void)shard_map(fn, kGrid, in, out, options)(x); });
  }
  testing::InterpretRuntime runtime_{kGrid};
  RuntimeScope scope_{runtime_};
};

TEST_F(ShardMapRefusal, Specs) {
  const auto same = [](const Tensor& x) { return x; };
  const Tensor x = full({6, 4}, 1);
  expect_refused({"shard_map: argument 0", "dim 0 has size 6", "4 chips", "stage"}, same, x,
                 P{"stage"}, P{"stage"});
  expect_refused({"shard_map: argument 0, f32[6,4], has 2 dims", "has 3 entries"}, same, x,
                 P{"stage", {}, {}}, P{});
  expect_refused({"in spec 0, {{\"model\"}}, names axis \"model\"; the mesh is (2,4)"}, same, x,
                 P{"model"}, P{});
  expect_refused({"2 specs are given for 1 arguments"}, same, x, {P{}, P{}}, P{"stage"});
  expect_refused({"result 0", "may differ between chips along \"data\"", "psum"}, same, x,
                 P{"data"}, P{});
  expect_refused({"the result has 2 parts, but 3 out specs"},
                 [](const Tensor& part) { return std::pair(part, part); }, x, P{"data"},
                 {P{"data"}, P{"data"}, P{"data"}});
}

TEST_F(ShardMapRefusal, SumsOfWhatChipsHaveAlike) {
  const Tensor x = full({8}, 1);
  expect_refused(
      {"psum: f32[] is the same on all chips along \"stage\"", "4 times x", "vary(x, \"stage\")"},
      [](const Tensor& part) { return psum(psum(sum(part), "stage"), "stage"); }, x, P{"stage"},
      P{});
  expect_refused({"psum: f32[2] is the same on all chips along \"data\"", "2 times x"},
                 [](const Tensor& part) {
                   return psum(part, {"stage", "data"});
                 },
                 x, P{"stage"}, P{}, {.axes = {"data"}});
  testing::expect_error(
      Errc::invalid_argument, {"reduce_scatter: f32[4] is the same on all chips along \"stage\""},
      [&] {
        (void)shard_map(
            [](const Tensor& own, const Tensor&) { return reduce_scatter(own, "stage"); }, kGrid,
            {P{}, P{"stage"}}, P{"stage"})(full({4}, 1), x);
      });
}

TEST_F(ShardMapRefusal, SecondSumOfAGradient) {
  const Tensor x = full({8}, 1);
  const Tensor w = full({}, 2);
  const auto refused = [&](std::initializer_list<std::string_view> words, auto sums) {
    const auto step = [&](const Tensor& own, const Tensor& part) {
      return sums(grad(mean(part * own), std::array{own})[0]);
    };
    testing::expect_error(Errc::invalid_argument, words, [&] {
      (void)shard_map(step, kGrid, {P{}, P{"stage"}}, P{})(w, x);
    });
  };
  const std::string_view summed =
      "f32[] is the gradient of a value that the chips along \"stage\" share, so grad() at "
      "shard_map_test.cpp:";
  refused({"psum:", summed, "4 times too large", "axis_size(\"stage\")"},
          [](const Tensor& g) { return psum(g, "stage"); });
  refused({"psum: bf16[] is the gradient", "4 times too large"},
          [](const Tensor& g) { return psum(cast(g * 0.5, DType::bf16), "stage"); });
  refused({"pmean:", summed, "pmean(loss, \"stage\")"},
          [](const Tensor& g) { return pmean(g + g, "stage"); });
}

TEST(ShardMap, SumsGradientsByWhatChipsShare) {
  const auto program = [] {
    const auto step = shard_map(
        [](const Tensor& w, const Tensor& part) {
          const Tensor local = mean(part * w);
          const Tensor own = vary(w, "stage");
          const Tensor global = pmean(local, "stage");
          return std::tuple(grad(local, std::array{w})[0],
                            psum(grad(mean(part * own), std::array{own})[0], "stage"),
                            pmean(grad(mean(part * own), std::array{own})[0], "stage"),
                            grad(global, std::array{w})[0],
                            // If chips share the loss, they have equal gradients, and the mean of
                            // these is the gradient itself.
                            pmean(grad(global, std::array{w})[0], "stage"));
        },
        kLine, {P{}, P{"stage"}}, {P{}, P{}, P{}, P{}, P{}});
    const auto [sum, by_hand, mean, of_mean, again] = step(f32({2}, {}), counted({8}));
    return Results{sum, by_hand, mean, of_mean, again};
  };
  expect_as_whole(kLine, program, [] {
    const Tensor average = mean(counted({8}));
    return Results{average * 4.0, average * 4.0, average, average, average};
  });
}

TEST(ShardMap, CountsChipsAndCopies) {
  const auto program = [] {
    const auto counts = shard_map(
        [](const Tensor& x, const Tensor& shared) {
          return std::tuple(psum(full({1}, 1), "stage") + x * 0.0,
                            psum(vary(shared, "stage"), "stage"), pmean(shared, "stage"),
                            psum(cast(axis_index("stage"), DType::f32), "stage"));
        },
        kLine, {P{"stage"}, P{}}, {P{"stage"}, P{}, P{}, P{}});
    const auto [ones, copies, alike, numbers] = counts(counted({4}), f32({3}, {}));
    return Results{ones, copies, alike, numbers};
  };
  expect_as_whole(kLine, program, [] {
    return Results{full({4}, 4), full({}, 12), full({}, 3), full({}, 6)};
  });
}

TEST_F(ShardMapRefusal, Groups) {
  const Tensor x = full({8}, 1);
  testing::expect_error(Errc::invalid_argument, {"psum", "in the function of a shard_map()"},
                        [&] { (void)psum(x, "data"); });
  expect_refused(
      {"psum: axis \"data\" isn't manual in the shard_map() at", "axes"},
      [](const Tensor& part) { return psum(part, "data"); }, x, P{"stage"}, P{});
  expect_refused(
      {"all_gather: the call names axis \"model\"; the mesh is (2,4)"},
      [](const Tensor& part) { return all_gather(part, "model"); }, x, P{"stage"}, P{});
  expect_refused(
      {"reduce_scatter: dim 0", "size 2", "4 chips"},
      [](const Tensor& part) { return reduce_scatter(part, "stage"); }, x, P{"stage"}, P{"stage"});
  expect_refused(
      {"ppermute: chip 1 receives from two chips, 0 and 2"},
      [](const Tensor& part) {
        return ppermute(part, "stage", {{0, 1}, {2, 1}});
      },
      x, P{"stage"}, P{"stage"});
  expect_refused(
      {"ppermute: the pair (0, 4) names chip 4: expected 0 to 3"},
      [](const Tensor& part) {
        return ppermute(part, "stage", {{0, 4}});
      },
      x, P{"stage"}, P{"stage"});
}

TEST_F(ShardMapRefusal, WhatIsNotOfTheFunction) {
  const Tensor x = full({8}, 1);
  Tensor kept;
  (void)shard_map(
      [&](const Tensor& part) {
        kept = part * 2.0;
        return kept;
      },
      kGrid, P{"stage"}, P{"stage"})(x);
  testing::expect_error(Errc::invalid_argument,
                        {"belongs to the function of a shard_map()", "return it"},
                        [&] { (void)(kept + 1.0); });
  expect_refused(
      {"is in the function of shard_map() at", "return the tensor"},
      [](const Tensor& part) {
        (void)part.to_vector();
        return part;
      },
      x, P{"stage"}, P{"stage"});
  expect_refused(
      {"mark_sharding", "manual over {\"stage\"}"},
      [](const Tensor& part) {
        const Tensor y = part * 2.0;
        mark_sharding(y, {{"stage"}});
        return y;
      },
      x, P{"stage"}, P{"stage"});
  expect_refused(
      {"scan: carry 0 is at first the same on all chips along \"stage\"", "vary"},
      [](const Tensor& part) {
        return scan([&](const Tensor& h,
                        const Tensor& item) { return std::pair(h + part * item, h); },
                    full({2}, 0), full({3}, 1))
            .carry;
      },
      x, P{"stage"}, P{"stage"});
}

}  // namespace
}  // namespace weft::shard_map_test
