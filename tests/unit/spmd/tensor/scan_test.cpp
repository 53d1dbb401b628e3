#include <weft/ops/control_flow.hpp>

#include <numeric>

#include <weft/nn/transforms.hpp>
#include <weft/ops/random.hpp>
#include <weft/ops/shapes.hpp>

#include "spmd/control/loops.hpp"
#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::scan_test {
namespace {

using testing::expect_near;
using testing::expect_refusal;
using testing::f32;

class Scan : public testing::TensorTest {};

Tensor ones(std::int64_t size) { return full({size}, 1); }

TEST_F(Scan, CarriesAndStacks) {
  const Tensor x = f32({1, 2, 3, 4}, {4});
  const auto [sum, sums] = scan(
      [](const Tensor& carry, const Tensor& item) {
        const Tensor next = carry + item;
        return std::pair(next, next * 2.0);
      },
      full({}, 10), x);
  expect_near(reshape(sum, {1}), {20});
  expect_near(sums, {22, 26, 32, 40});
}

TEST_F(Scan, GoesBackwards) {
  const Tensor x = f32({1, 2, 3}, {3});
  const auto [last, all] = scan(
      [](const Tensor& carry, const Tensor& item) { return std::pair(carry * 2.0 + item, carry); },
      full({}, 0), x, {.reverse = true});
  expect_near(all, {8, 3, 0});
  expect_near(reshape(last, {1}), {17});
}

struct Walk {
  Tensor place;
  std::vector<Tensor> speeds;
};

TEST_F(Scan, TakesStructures) {
  const Tensor items = f32({1, 2, 3, 4, 5, 6}, {3, 2});
  const auto [last, none] = scan(
      [](Walk walk, const std::pair<Tensor, Tensor>& item) {
        walk.place = walk.place + walk.speeds[0] * item.first;
        std::swap(walk.speeds[0], walk.speeds[1]);
        walk.speeds[1] = walk.speeds[1] + item.second;
        return std::pair(walk, std::tuple<>());
      },
      Walk{full({2}, 0), {full({2}, 1), full({2}, 10)}}, std::pair(items, ones(3)));
  expect_near(last.place, {1 + 30 + 2 * 5, 2 + 40 + 2 * 6});
  expect_near(last.speeds[0], {11, 11});
  expect_near(last.speeds[1], {3, 3});
}

TEST_F(Scan, RefusesItemsWithoutRows) {
  const auto body = [](const Tensor& carry, const Tensor&) { return std::pair(carry, carry); };
  const Tensor carry = full({}, 0);
  testing::expect_error(Errc::invalid_argument,
                        {"scan: there are 0 iterations: expected 1 or more"}, [&] {
                          (void)scan(body, carry, full({0, 4}, 1));
                        });
  const auto two = [](const Tensor& h, const std::vector<Tensor>&) { return std::pair(h, h); };
  const std::vector<Tensor> items{full({0, 4}, 1), full({3, 4}, 1)};
  testing::expect_error(Errc::invalid_argument,
                        {"scan: item 1", "has size 3 in dim 0", "the previous items have size 0"},
                        [&] { (void)scan(two, carry, items); });
}

TEST_F(Scan, CountsWithoutItems) {
  const auto [power, none] =
      scan([](const Tensor& carry, std::tuple<>) { return std::pair(carry * 2.0, std::tuple<>()); },
           full({1}, 1), std::tuple<>(), {.length = 10});
  expect_near(power, {1024});
}

TEST_F(Scan, StandsInAnother) {
  const Tensor x = f32({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto [sum, rows] = scan(
      [](const Tensor& total, const Tensor& row) {
        const auto [of_row, parts] =
            scan([&](const Tensor& carry,
                     const Tensor& item) { return std::pair(carry + item * total, carry); },
                 full({}, 0), row);
        return std::pair(total + of_row, parts);
      },
      full({}, 1), x);
  expect_near(reshape(sum, {1}), {7 + 7 * 15});
  expect_near(reshape(rows, {6}), {0, 1, 3, 0, 28, 63});
}

TEST_F(Scan, ReadsWhatIsOutside) {
  const Tensor w = f32({2, 3}, {2});
  Parameter p = make_parameter("p", std::vector<float>{5, 7}, {2});
  const auto [last, none] =
      scan([&](const Tensor& carry,
               const Tensor& item) { return std::pair(carry + w * item + p, std::tuple<>()); },
           full({2}, 0), ones(3));
  p.assign(p + last);
  sync();
  expect_near(p, {5 + 21, 7 + 30});
}

TEST_F(Scan, BeginsWithAParameter) {
  const Parameter p = make_parameter("p", std::vector<float>{5, 7}, {2});
  const auto [last, all] = scan(
      [](const Tensor& carry, const Tensor& item) { return std::pair(carry * item, carry); }, p, p);
  static_assert(std::is_same_v<decltype(last), const Tensor>);
  expect_near(last, {5 * 35, 7 * 35});
}

TEST_F(Scan, DrawsOtherNumbersInEachIteration) {
  const auto draw = [](std::tuple<>, std::tuple<>) {
    const auto [carry, inner] = scan(
        [](std::tuple<>, std::tuple<>) {
          return std::pair(std::tuple<>(), std::pair(rand({2}), rand({2})));
        },
        std::tuple<>(), std::tuple<>(), {.length = 3});
    return std::pair(std::tuple<>(), std::pair(inner, rand({2})));
  };
  const auto [carry, drawn] = scan(draw, std::tuple<>(), std::tuple<>(), {.length = 2});
  std::vector<Tensor> all{drawn.first.first, drawn.first.second, drawn.second, rand({2})};
  sync();
  std::set<float> numbers;
  std::size_t count = 0;
  for (const Tensor& tensor : all) {
    for (const float number : tensor.to_vector()) {
      numbers.insert(number);
      ++count;
    }
  }
  EXPECT_EQ(count, 12U + 12U + 4U + 2U);
  EXPECT_EQ(numbers.size(), count);
}

TEST_F(Scan, RecordsItsFunctionOnce) {
  int calls = 0;
  const auto run = [&](std::int64_t length) {
    const auto scanned = scan(
        [&](const Tensor& carry, const Tensor& item) {
          ++calls;
          return std::pair(carry + item, carry);
        },
        full({}, 0), ones(length));
    sync();
    return runtime_.programs.back().num_ops();
  };
  const std::uint32_t ops = run(3);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(run(1000), ops);
}

/// Computes h = tanh(x_t w + h u + b) for each t, and a loss of all h and of the last h, as a loop
/// or as unrolled ops.
struct Recurrent {
  Tensor w = f32({0.5, -0.25, 0.125, 0.75, 0.25, -0.5}, {3, 2});
  Tensor u = f32({0.25, 0.5, -0.75, 0.125}, {2, 2});
  Tensor b = f32({0.125, -0.25}, {2});
  Tensor x = f32({1, 2, 3, 4, 5, 6, 1, 0, 1, 0, 1, 0, 2, 2, 2, 1, 3, 1}, {3, 2, 3}) * 0.25;
  Tensor h0 = f32({0.5, 0, -0.5, 1}, {2, 2});

  Tensor cell(const Tensor& h, const Tensor& x_t) const {
    return tanh(matmul(x_t, w) + matmul(h, u) + b);
  }
  Tensor loss(const Tensor& last, const Tensor& all) const {
    return sum(last * last) + sum(all * all * all);
  }
  Tensor unrolled(bool reverse = false) const {
    Tensor h = h0;
    std::vector<Tensor> all(3);
    for (std::int64_t i = 0; i < 3; ++i) {
      const std::int64_t t = reverse ? 2 - i : i;
      h = cell(h, reshape(slice(x, 0, t, t + 1), {2, 3}));
      all[static_cast<std::size_t>(t)] = h;
    }
    return loss(h, stack(all, 0));
  }
  template <typename Body>
  Tensor scanned(const Body& body, bool reverse = false) const {
    const auto [last, all] = scan(body, h0, x, {.reverse = reverse});
    return loss(last, all);
  }
  std::vector<Tensor> wrt() const { return {w, u, b, x, h0}; }
};

void expect_alike(const std::vector<Tensor>& expected, const std::vector<Tensor>& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::vector<float> elements = expected[i].to_vector();
    SCOPED_TRACE(i);
    expect_near(actual[i], std::vector<double>(elements.begin(), elements.end()));
  }
}

TEST_F(Scan, HasTheGradientOfItsIterations) {
  for (const bool reverse : {false, true}) {
    const Recurrent net;
    const auto body = [&](const Tensor& h, const Tensor& x_t) {
      const Tensor next = net.cell(h, x_t);
      return std::pair(next, next);
    };
    const auto expected = grad(net.unrolled(reverse), net.wrt());
    const auto actual = grad(net.scanned(body, reverse), net.wrt());
    sync();
    expect_alike(expected, actual);
  }
}

TEST_F(Scan, HasTheSameGradientFromValuesThatAreComputedAgain) {
  const Recurrent net;
  const auto body = [&](const CheckpointOptions& options) {
    return [&net, options](const Tensor& h, const Tensor& x_t) {
      const Tensor next =
          checkpoint([&] { return checkpoint_name(tanh(net.cell(h, x_t)), "name") * h; }, options);
      return std::pair(next, next);
    };
  };
  const auto plain = [&](const Tensor& h, const Tensor& x_t) {
    const Tensor next = tanh(net.cell(h, x_t)) * h;
    return std::pair(next, next);
  };
  const auto expected = grad(net.scanned(plain), net.wrt());
  sync();
  for (const CheckpointOptions& options :
       {CheckpointOptions{}, {.save_dots = true}, {.save_names = {"name"}}}) {
    const auto actual = grad(net.scanned(body(options)), net.wrt());
    sync();
    expect_alike(expected, actual);
  }
  // The region is the whole loop, so the backward pass runs the loop again.
  const Tensor loss = checkpoint([&] { return net.scanned(plain); });
  const auto actual = grad(loss, net.wrt());
  sync();
  expect_alike(expected, actual);
}

TEST_F(Scan, HasTheGradientOfALoopInALoop) {
  const Tensor w = f32({0.5, 0.25, -0.5}, {3});
  const Tensor x = f32({1, 2, 3, 4, 5, 6}, {2, 3}) * 0.125;
  const auto cell = [&](const Tensor& c, const Tensor& item, const Tensor& total) {
    return sin(c * total) + item * sum(w) + c;
  };
  const auto scanned = [&](bool again) {
    const auto row = [&](const Tensor& total, const Tensor& items) {
      const auto inner = [&] {
        return scan(
            [&](const Tensor& c, const Tensor& item) {
              const Tensor next = cell(c, item, total);
              return std::pair(next, next * c);
            },
            total * 0.5, items);
      };
      const auto scanned_row = again ? checkpoint(inner) : inner();
      return std::pair(total + scanned_row.carry * sum(scanned_row.stacked), scanned_row.stacked);
    };
    const auto [total, all] = scan(row, full({}, 1), x);
    return total + sum(all * all);
  };
  Tensor total = full({}, 1);
  Tensor of_all = full({}, 0);
  for (std::int64_t i = 0; i < 2; ++i) {
    Tensor c = total * 0.5;
    Tensor of_row = full({}, 0);
    for (std::int64_t j = 0; j < 3; ++j) {
      const Tensor item = reshape(slice(slice(x, 0, i, i + 1), 1, j, j + 1), {});
      const Tensor next = cell(c, item, total);
      const Tensor y = next * c;
      of_row = of_row + y;
      of_all = of_all + y * y;
      c = next;
    }
    total = total + c * of_row;
  }
  const std::vector<Tensor> wrt{w, x};
  const auto expected = grad(total + of_all, wrt);
  const auto kept = grad(scanned(false), wrt);
  const auto again = grad(scanned(true), wrt);
  sync();
  expect_alike(expected, kept);
  expect_alike(expected, again);
}

TEST_F(Scan, HasSecondGradients) {
  const Tensor x = f32({0.5, 1, 1.5}, {3});
  const Tensor w = f32({0.75}, {});
  const auto body = [&](const Tensor& c, const Tensor& item) {
    const Tensor next = sin(c * w) * item + c;
    return std::pair(next, next);
  };
  const auto twice = [&](const Tensor& loss) {
    const Tensor first = grad(loss, std::vector{w})[0];
    return grad(first * first, std::vector{w, x});
  };
  const auto [last, all] = scan(body, full({}, 1), x);
  Tensor c = full({}, 1);
  for (std::int64_t i = 0; i < 3; ++i) c = body(c, reshape(slice(x, 0, i, i + 1), {})).first;
  const auto expected = twice(c * c);
  const auto actual = twice(last * last);
  sync();
  expect_alike(expected, actual);
}

TEST_F(Scan, TakesGradientsInItsFunction) {
  // The function of the scan is a step of gradient descent.
  const Tensor target = f32({1, 2}, {2});
  const auto [w, losses] = scan(
      [&](const Tensor& w_t, const Tensor& rate) {
        const Tensor error = w_t * w_t - target;
        const Tensor loss = sum(error * error);
        const Tensor gradient = grad(loss, std::vector{w_t})[0];
        return std::pair(w_t - rate * gradient, loss);
      },
      full({2}, 0.5), full({3}, 0.125));
  double expected[] = {0.5, 0.5};
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 2; ++i) {
      const double at = expected[i];
      expected[i] -= 0.125 * 2 * (at * at - (i + 1)) * 2 * at;
    }
  }
  expect_near(w, {expected[0], expected[1]});
}

TEST_F(Scan, DrawsTheSameNumbersForItsGradient) {
  manual_seed(3);
  const Tensor x = full({4, 8}, 1);
  const auto [carry, kept] = scan(
      [](std::tuple<>, const Tensor& row) { return std::pair(std::tuple<>(), dropout(row, 0.5)); },
      std::tuple<>(), x);
  const Tensor gradient = grad(sum(kept), std::vector{x})[0];
  sync();
  EXPECT_EQ(gradient.to_vector(), kept.to_vector());
  EXPECT_NE(gradient.to_vector(), std::vector<float>(32, 2));
}

/// The gradients of the recurrent net on a mesh, and their plan.
struct OnMesh {
  std::vector<std::vector<float>> gradients;
  Plan plan;
};

OnMesh train(const Mesh& mesh, const PartitionSpec& rows) {
  testing::SimulateRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  const std::int64_t size = 8;
  const auto numbers = [](std::int64_t count, int step) {
    std::vector<float> elements(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < elements.size(); ++i) {
      elements[i] = static_cast<float>(i * static_cast<std::size_t>(step) % 17) / 64 - 0.125F;
    }
    return elements;
  };
  const Tensor w = f32(numbers(size * size, 5), {size, size});
  const Tensor x = f32(numbers(6 * 8 * size, 7), {6, 8, size});
  const Tensor h0 = f32(numbers(8 * size, 3), {8, size});
  mark_sharding(x, mesh, rows);
  const auto [last, all] = scan(
      [&](const Tensor& h, const Tensor& x_t) {
        const Tensor next = tanh(matmul(x_t + h, w));
        return std::pair(next, mean(next * next));
      },
      h0, x);
  const std::vector<Tensor> gradients = grad(mean(last) + sum(all), std::vector{w, x, h0});
  sync();
  OnMesh made{.gradients = {}, .plan = *runtime.plans.front()};
  for (const Tensor& gradient : gradients) made.gradients.push_back(gradient.to_vector());
  return made;
}

/// Returns the number of collectives inside loops, and of those outside.
std::pair<int, int> count_collectives(const Program& program) {
  const Loops loops(program);
  std::pair<int, int> counts;
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (!is_collective(program.kind(op))) continue;
    ++(loops.of_op(op) != kNoId ? counts.first : counts.second);
  }
  return counts;
}

TEST(ScanOnMesh, ReducesGradientsAfterTheLoop) {
  const OnMesh made = train(Mesh({4, 1}, {"data", "model"}), {{}, "data", {}});
  const auto [inside, outside] = count_collectives(made.plan.program);
  EXPECT_EQ(inside, 0);
  EXPECT_GE(outside, 1);
}

TEST(ScanOnMesh, HasTheSameGradient) {
  const OnMesh whole = train(Mesh({1, 1}, {"data", "model"}), {{}, {}, {}});
  for (const Mesh& mesh : {Mesh({4, 1}, {"data", "model"}), Mesh({2, 2}, {"data", "model"})}) {
    for (const PartitionSpec& spec :
         {PartitionSpec{{}, "data", {}}, {{}, "data", "model"}, {{}, {}, "data"}}) {
      const OnMesh made = train(mesh, spec);
      for (std::size_t i = 0; i < made.gradients.size(); ++i) {
        for (std::size_t e = 0; e < made.gradients[i].size(); ++e) {
          ASSERT_NEAR(made.gradients[i][e], whole.gradients[i][e], 1e-6) << i << " " << e;
        }
      }
    }
  }
}

TEST_F(Scan, RefusesATensorOfItsFunctionAfterIt) {
  Tensor kept;
  const auto [last, none] = scan(
      [&](const Tensor& carry, const Tensor& item) {
        kept = carry * item;
        return std::pair(carry + kept, std::tuple<>());
      },
      full({}, 1), ones(2));
  expect_refusal({"f32[]", "belongs to the function of scan()", "return it as carry or y"},
                 [&](int& line) {
                   line = __LINE__ + 1;
                   kept + 1.0;
                 });
  sync();
  expect_near(reshape(last, {1}), {4});
}

TEST_F(Scan, RefusesToRunInItsFunction) {
  const auto body = [&](const Tensor& carry, const Tensor& item) {
    (carry * item).item();
    return std::pair(carry, item);
  };
  testing::expect_error(
      Errc::invalid_argument,
      {"read at scan_test.cpp:", "is in the function of scan() at scan_test.cpp:"},
      [&] { scan(body, full({}, 1), ones(2)); });
  expect_near(full({1}, 3) + 1.0, {4});  // the refused op has changed nothing
}

TEST_F(Scan, RefusesToAssignInItsFunction) {
  Parameter p = make_parameter("p", std::vector<float>{1}, {1});
  expect_refusal({"assign", "'p'", "can't change in the function of scan()", "make it a carry"},
                 [&](int& line) {
                   scan(
                       [&](const Tensor& carry, const Tensor& item) {
                         line = __LINE__ + 1;
                         p.assign(p + item);
                         return std::pair(carry, item);
                       },
                       full({}, 1), ones(2));
                 });
}

TEST_F(Scan, RefusesAnotherTypeOfCarry) {
  expect_refusal({"scan", "carry 0 is f32[2]", "returns f32[3,2]", "cast or reshape"},
                 [](int& line) {
                   const Tensor other = full({3, 2}, 1);
                   line = __LINE__ + 1;
                   scan([&](const Tensor& c, const Tensor&) { return std::pair(c + other, c); },
                        full({2}, 0), ones(2));
                 });
}

TEST_F(Scan, RefusesItemsOfSeveralLengths) {
  const auto body = [](const Tensor& c, const std::vector<Tensor>&) { return std::pair(c, c); };
  expect_refusal({"item 1, f32[3], has size 3 in dim 0", "the previous items have size 2"},
                 [&](int& line) {
                   const std::vector<Tensor> items{ones(2), ones(3)};
                   line = __LINE__ + 1;
                   scan(body, full({}, 0), items);
                 });
  expect_refusal({"item 0, f32[2], has size 2 in dim 0", "length is 5"}, [&](int& line) {
    const std::vector<Tensor> items{ones(2)};
    line = __LINE__ + 1;
    scan(body, full({}, 0), items, {.length = 5});
  });
  expect_refusal({"scan: there are no items; set `length`"}, [&](int& line) {
    line = __LINE__ + 1;
    scan(body, full({}, 0), std::vector<Tensor>());
  });
  expect_refusal({"item 0, f32[], has no dims"}, [&](int& line) {
    const std::vector<Tensor> items{full({}, 1)};
    line = __LINE__ + 1;
    scan(body, full({}, 0), items);
  });
}

}  // namespace
}  // namespace weft::scan_test
