// Tests while_loop() and cond(): their values, gradients and errors.

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>

#include <weft/nn/transforms.hpp>
#include <weft/ops/control_flow.hpp>
#include <weft/ops/random.hpp>
#include <weft/ops/reductions.hpp>
#include <weft/ops/shapes.hpp>
#include <weft/sharding/shard_map.hpp>

#include "spmd/control/loops.hpp"
#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::branches_test {
namespace {

using testing::expect_near;
using testing::expect_refusal;
using testing::f32;

class While : public testing::TensorTest {};
class Cond : public testing::TensorTest {};

TEST_F(While, GoesOnAsLongAsItsTestHolds) {
  const Tensor a = f32({2, 9, 0.25}, {3});
  const Tensor root =
      while_loop([&](const Tensor& x) { return any(greater(abs(x * x - a), 1e-5)); },
                 [&](const Tensor& x) { return (x + a / x) * 0.5; }, full({3}, 1));
  expect_near(root, {std::numbers::sqrt2, 3, 0.5});
}

TEST_F(While, GivesTheFirstCarryIfItsTestDoesNotHold) {
  const Tensor x = f32({1, 2}, {2});
  const auto twice = [](const Tensor& carry) { return carry * 2.0; };
  const auto below = [](double limit) {
    return [limit](const Tensor& carry) { return less(amax(carry), limit); };
  };
  expect_near(while_loop(below(2), twice, x), {1, 2});
  expect_near(while_loop(below(2.5), twice, x), {2, 4});
}

struct Walk {
  Tensor place;
  std::vector<Tensor> speeds;
};

TEST_F(While, TakesStructuresWhoseTensorsChangePlaces) {
  const Walk last = while_loop([](const Walk& walk) { return less(sum(walk.place), 100.0); },
                               [](Walk walk) {
                                 walk.place = walk.place + walk.speeds[0];
                                 std::swap(walk.speeds[0], walk.speeds[1]);
                                 return walk;
                               },
                               Walk{full({2}, 0), {full({2}, 1), full({2}, 10)}});
  expect_near(last.place, {55, 55});
  expect_near(last.speeds[0], {1, 1});
}

TEST_F(While, StandsInAnotherAndInAScan) {
  // Finds the least number from which Collatz's sequence takes more than 8 steps to reach 1.
  const auto steps_of = [](const Tensor& begin) {
    return while_loop([](const std::pair<Tensor, Tensor>& c) { return greater(c.first, 1.5); },
                      [](const std::pair<Tensor, Tensor>& c) {
                        const Tensor half = floor(c.first * 0.5);
                        const Tensor is_even = equal(half * 2.0, c.first);
                        return std::pair(where(is_even, half, c.first * 3.0 + 1.0), c.second + 1.0);
                      },
                      std::pair(begin, full({}, 0)))
        .second;
  };
  const auto [none, steps] =
      scan([&](std::tuple<>, const Tensor& n) { return std::pair(std::tuple<>(), steps_of(n)); },
           std::tuple<>(), f32({1, 2, 3, 6, 7}, {5}));
  expect_near(steps, {0, 1, 7, 8, 16});
  const Tensor first = while_loop([&](const Tensor& n) { return less(steps_of(n), 8.5); },
                                  [](const Tensor& n) { return n + 1.0; }, full({}, 1));
  expect_near(reshape(first, {1}), {7});
}

TEST_F(While, DrawsOtherNumbersInEachIteration) {
  struct Drawn {
    Tensor count;
    Tensor all;
  };
  const Drawn drawn = while_loop(
      [](const Drawn& carry) { return less(carry.count, 4.0); },
      [](const Drawn& carry) {
        const auto [none, two] =
            scan([](std::tuple<>, std::tuple<>) { return std::pair(std::tuple<>(), rand({2})); },
                 std::tuple<>(), std::tuple<>(), {.length = 2});
        const Tensor here =
            reshape(equal(iota({4}, 0, DType::f32), reshape(carry.count, {1})), {4, 1});
        return Drawn{carry.count + 1.0, where(here, reshape(two, {1, 4}), carry.all)};
      },
      Drawn{full({}, 0), full({4, 4}, -1)});
  const Tensor more = rand({4});
  sync();
  std::set<float> numbers;
  for (const Tensor& tensor : {drawn.all, more}) {
    for (const float number : tensor.to_vector()) numbers.insert(number);
  }
  EXPECT_EQ(numbers.size(), 20U);
  EXPECT_GE(*numbers.begin(), 0);
}

TEST_F(While, HasNoGradient) {
  const Tensor x = f32({1, 2}, {2});
  const auto double_up = [&](const Tensor& begin) {
    return while_loop([](const Tensor& carry) { return less(sum(carry), 10.0); },
                      [](const Tensor& carry) { return carry * 2.0; }, begin);
  };
  testing::expect_error(Errc::invalid_argument,
                        {"grad: the loop at branches_test.cpp:", "has no gradient",
                         "use scan() with a cond() or where()"},
                        [&] { grad(sum(double_up(x)), std::vector{x}); });
  const Tensor loss = sum(double_up(stop_gradient(x)) * x);
  const std::vector<Tensor> gradient = grad(loss, std::vector{x});
  expect_near(gradient[0], {4, 8});
}

TEST_F(While, RefusesWhatIsNoTest) {
  const auto same = [](const Tensor& carry) { return carry; };
  expect_refusal({"while_loop: the predicate is f32[2]; expected pred[]"}, [&](int& line) {
    const Tensor x = full({2}, 1);
    line = __LINE__ + 1;
    while_loop(same, same, x);
  });
  expect_refusal({"while_loop: the carry has no tensors"}, [&](int& line) {
    const auto test = [](const std::vector<Tensor>&) { return full({}, 1); };
    const auto body = [](const std::vector<Tensor>& carry) { return carry; };
    line = __LINE__ + 1;
    while_loop(test, body, std::vector<Tensor>());
  });
  expect_near(full({1}, 3) + 1.0, {4});  // the refused op has changed nothing
}

TEST_F(While, RefusesAnotherTypeOfCarry) {
  expect_refusal({"while_loop: carry 0 is f32[2]", "returns f32[3,2]"}, [&](int& line) {
    const Tensor other = full({3, 2}, 1);
    line = __LINE__ + 1;
    while_loop([](const Tensor& carry) { return less(sum(carry), 3.0); },
               [&](const Tensor& carry) { return carry + other; }, full({2}, 0));
  });
}

TEST_F(While, RefusesToRunAndToAssignInItsFunctions) {
  Parameter p = make_parameter("p", std::vector<float>{1}, {1});
  const auto few = [](const Tensor& carry) { return less(sum(carry), 3.0); };
  testing::expect_error(
      Errc::invalid_argument,
      {"is in the function of while_loop() at branches_test.cpp:", "for all iterations"}, [&] {
        while_loop(
            few,
            [](const Tensor& carry) {
              carry.to_vector();
              return carry;
            },
            full({1}, 0));
      });
  testing::expect_error(Errc::invalid_argument,
                        {"'p'", "can't change in the function of while_loop()", "make it a carry"},
                        [&] {
                          while_loop(
                              few,
                              [&](const Tensor& carry) {
                                p.assign(p + carry);
                                return carry;
                              },
                              full({1}, 0));
                        });
}

/// Makes a tensor with a true predicate and another with a false one, and checks both.
template <typename Make, typename Check>
void in_both(const Make& make, const Check& check) {
  for (const bool holds : {true, false}) {
    SCOPED_TRACE(holds);
    const Tensor predicate = greater(full({}, holds ? 1 : 0), 0.5);
    check(holds, make(predicate));
  }
}

TEST_F(Cond, RunsOneFunction) {
  const Tensor x = f32({1, -2}, {2});
  const Tensor w = f32({3, 4}, {2});
  in_both(
      [&](const Tensor& predicate) {
        return cond(
            predicate, [&](const Tensor& v) { return std::pair(v * w, v); },
            [&](const Tensor& v) { return std::pair(v + 1.0, w); }, x);
      },
      [&](bool holds, const std::pair<Tensor, Tensor>& made) {
        expect_near(made.first, holds ? std::vector<double>{3, -8} : std::vector<double>{2, -1});
        expect_near(made.second, holds ? std::vector<double>{1, -2} : std::vector<double>{3, 4});
      });
}

TEST_F(Cond, DoesNotRunTheOther) {
  // If the branch ran, gather_rows would refuse this index.
  const Tensor table = f32({1, 2, 3}, {3});
  const Tensor index = to_device(std::vector<std::int32_t>{7}, {1});
  const Tensor is_inside = all(less(index, 3.0));
  const Tensor found = cond(
      is_inside, [&] { return index_select(table, 0, index); }, [] { return full({1}, -1); });
  expect_near(found, {-1});
}

TEST_F(Cond, HasTheGradientOfTheFunctionThatRuns) {
  const Tensor x = f32({0.5, -2}, {2});
  const Tensor w = f32({3, 4}, {2});
  const auto first = [&](const Tensor& v) { return sum(sin(v * w) * v); };
  const auto second = [&](const Tensor& v) {
    const Tensor y = exp(v);
    return sum(y * y);
  };
  in_both(
      [&](const Tensor& predicate) {
        return grad(cond(predicate, first, second, x) * 2.0, std::vector{x, w});
      },
      [&](bool holds, const std::vector<Tensor>& made) {
        const auto expected = grad((holds ? first(x) : second(x)) * 2.0, std::vector{x, w});
        sync();
        for (std::size_t i = 0; i < 2; ++i) {
          EXPECT_EQ(made[i].to_vector(), expected[i].to_vector());
        }
      });
}

TEST_F(Cond, HasTheGradientInALoopAndOfALoop) {
  const Tensor x = f32({0.5, -0.25, 0.75, 0.125}, {4});
  const Tensor w = f32({0.75}, {});
  const auto inner = [&](const Tensor& c, const Tensor& item) {
    const auto [last, all] = scan(
        [&](const Tensor& h, std::tuple<>) {
          const Tensor next = sin(h * w) + item;
          return std::pair(next, next * h);
        },
        c, std::tuple<>(), {.length = 2});
    return last + sum(all);
  };
  const auto step = [&](const Tensor& c, const Tensor& item, bool branches) {
    const auto first = [&] { return inner(c, item); };
    const auto second = [&] { return c * cos(item) * w; };
    const auto nested = [&] {
      return branches ? cond(greater(item, 0.6), second, [&] { return second() * 0.5 + item; })
                      : where(greater(item, 0.6), second(), second() * 0.5 + item);
    };
    return branches ? cond(greater(item, 0.3), nested, first)
                    : where(greater(item, 0.3), nested(), first());
  };
  std::vector<std::vector<Tensor>> gradients;
  for (const bool branches : {false, true}) {
    for (const bool again : {false, true}) {
      const auto body = [&](const Tensor& c, const Tensor& item) {
        const auto compute = [&] { return step(c, item, branches); };
        const Tensor next = again ? checkpoint(compute) : compute();
        return std::pair(next, next * next);
      };
      const auto [last, all] = scan(body, full({}, 1), x);
      gradients.push_back(grad(last + sum(all), std::vector{x, w}));
    }
  }
  sync();
  for (std::size_t i = 1; i < gradients.size(); ++i) {
    for (std::size_t v = 0; v < 2; ++v) {
      const std::vector<float> expected = gradients[0][v].to_vector();
      expect_near(gradients[i][v], std::vector<double>(expected.begin(), expected.end()));
    }
  }
}

TEST_F(Cond, HasSecondGradientsAndTakesGradientsInside) {
  const Tensor x = f32({0.5}, {});
  in_both(
      [&](const Tensor& predicate) {
        const Tensor loss = cond(
            predicate,
            [&] {
              const Tensor y = x * x * x;
              return grad(y, std::vector{x})[0] * x;  // is 3 x^3
            },
            [&] { return exp(x * 2.0) * 0.125; });
        const Tensor first = grad(loss, std::vector{x})[0];
        return grad(first * first, std::vector{x})[0];
      },
      [&](bool holds, const Tensor& made) {
        const double e = std::exp(1.0);
        // The second gradient is 2 f' f''. For f = 3 x^3, f' is 9 x^2 and f'' is 18 x. For f = e^2x
        // / 8, f' is e^2x / 4 and f'' is e^2x / 2.
        expect_near(reshape(made, {1}), {holds ? 2 * 9 * 0.25 * 9 : e * e / 4});
      });
}

TEST_F(Cond, UpdatesParametersOrKeepsThem) {
  Parameter p = make_parameter("p", std::vector<float>{1, 2}, {2});
  for (const double scale : {1.0, std::numeric_limits<double>::infinity()}) {
    const Tensor gradient = f32({0.5, 0.25}, {2}) * scale;
    p.assign(cond(
        all(isfinite(gradient)), [&](const Tensor& v) { return v - gradient; },
        [](const Tensor& v) { return v; }, p));
    sync();
  }
  expect_near(p, {0.5, 1.75});
}

TEST_F(Cond, RefusesResultsOfOtherTypes) {
  const Tensor predicate = greater(full({}, 1), 0.5);
  expect_refusal({"cond: result 0 is f32[2] in the first function, but f32[3] in the second"},
                 [&](int& line) {
                   line = __LINE__ + 1;
                   cond(
                       predicate, [] { return full({2}, 1); }, [] { return full({3}, 1); });
                 });
  expect_refusal({"cond: the first function returns 1 tensors, but the second returns 2"},
                 [&](int& line) {
                   line = __LINE__ + 1;
                   cond(
                       predicate, [] { return std::vector{full({2}, 1)}; },
                       [] { return std::vector(2, full({2}, 1)); });
                 });
  expect_refusal({"cond: the predicate is f32[]; expected pred[]"}, [&](int& line) {
    const auto one = [] { return full({2}, 1); };
    const Tensor number = full({}, 1);
    line = __LINE__ + 1;
    cond(number, one, one);
  });
  expect_near(full({1}, 3) + 1.0, {4});  // the refused op has changed nothing
}

TEST_F(Cond, RefusesATensorOfItsFunctionOutsideIt) {
  const Tensor predicate = greater(full({}, 1), 0.5);
  Tensor kept;
  const Tensor x = full({2}, 1);
  const auto keeps = [&] {
    kept = x * 2.0;
    return kept;
  };
  testing::expect_error(Errc::invalid_argument,
                        {"belongs to the function of cond() at branches_test.cpp:"},
                        [&] { cond(predicate, keeps, [&] { return kept + 1.0; }); });
  testing::expect_error(Errc::invalid_argument,
                        {"belongs to the function of cond() at branches_test.cpp:"}, [&] {
                          cond(predicate, keeps, [&] { return x; });
                          (void)(kept + 1.0);
                        });
  Parameter p = make_parameter("p", std::vector<float>{1}, {1});
  testing::expect_error(
      Errc::invalid_argument,
      {"'p'", "can't change in the function of cond()", "return it from both functions"}, [&] {
        cond(
            predicate,
            [&] {
              p.assign(p + 1.0);
              return x;
            },
            [&] { return x; });
      });
  testing::expect_error(Errc::invalid_argument,
                        {"is in the function of cond() at", "whether it runs or not"}, [&] {
                          cond(
                              predicate,
                              [&] {
                                (x * 2.0).to_vector();
                                return x;
                              },
                              [&] { return x; });
                        });
}

TEST(BranchesOnMesh, StandInAShardMap) {
  const Mesh mesh({2, 2}, {"data", "model"});
  testing::SimulateRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  using P = PartitionSpec;
  const Tensor x = f32({1, 2, 3, 4}, {4});
  const Tensor w = f32({0.5}, {1});
  for (const double limit : {5.0, 20.0}) {
    const auto total = shard_map(
        [&](const Tensor& part) {
          const Tensor all = psum(sum(part), "data");
          const Tensor made = cond(
              less(all, limit), [&] { return part * w; }, [&] { return part * part * 2.0; });
          const Tensor doubled =
              while_loop([](const Tensor& c) { return less(psum(sum(c), "data"), 30.0); },
                         [](const Tensor& c) { return c * 2.0; }, stop_gradient(part));
          return psum(sum(made * made) + sum(doubled), "data");
        },
        mesh, {P{"data"}}, P{});
    const Tensor loss = total(x);
    const std::vector<Tensor> gradients = grad(loss, std::vector{x, w});
    sync();
    if (limit > 10) {
      expect_near(reshape(loss, {1}), {0.25 * 30 + 40});
      expect_near(gradients[0], {0.5, 1, 1.5, 2});
      expect_near(gradients[1], {30});
    } else {
      expect_near(reshape(loss, {1}), {4.0 * (1 + 16 + 81 + 256) + 40});
      expect_near(gradients[0], {16, 128, 432, 1024});
      expect_near(gradients[1], {0});
    }
  }
  const auto parts = shard_map(
      [](const Tensor& part) {
        return cond(
            less(sum(part), 3.5), [&] { return part; }, [&] { return part * 2.0; });
      },
      mesh, {P{"data"}}, P{"data"});
  testing::expect_error(Errc::invalid_argument,
                        {"cond: the predicate may differ between chips along", "data", "psum()"},
                        [&] { parts(x); });
}

/// The results and the plan of a loop of data-parallel steps. Some steps are skipped.
struct OnMesh {
  std::vector<std::vector<float>> values;
  Plan plan;
};

OnMesh run_on(const Mesh& mesh, const PartitionSpec& rows) {
  testing::SimulateRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  const auto numbers = [](std::int64_t count, int step) {
    std::vector<float> elements(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < elements.size(); ++i) {
      elements[i] = static_cast<float>(i * static_cast<std::size_t>(step) % 17) / 64 - 0.125F;
    }
    return elements;
  };
  const Tensor w = f32(numbers(64, 5), {8, 8});
  const Tensor x = f32(numbers(4 * 64, 7), {4, 8, 8});
  mark_sharding(x, mesh, rows);
  const auto [last, losses] = scan(
      [&](const Tensor& h, const Tensor& x_t) {
        const Tensor next = cond(
            less(mean(x_t), mean(x)), [&] { return tanh(matmul(x_t + h, w)); },
            [&] { return h * 0.5; });
        return std::pair(next, mean(next * next));
      },
      full({8, 8}, 0.25), x);
  const std::vector<Tensor> gradients = grad(mean(last) + sum(losses), std::vector{w, x});
  const Tensor grown = while_loop([](const Tensor& c) { return less(sum(abs(c)), 50.0); },
                                  [&](const Tensor& c) { return c + abs(matmul(c, w)); }, last);
  sync();
  OnMesh made{.values = {}, .plan = *runtime.plans.front()};
  for (const Tensor& tensor : {gradients[0], gradients[1], losses, grown}) {
    made.values.push_back(tensor.to_vector());
  }
  return made;
}

TEST(BranchesOnMesh, ComputeTheSame) {
  const OnMesh whole = run_on(Mesh({1, 1}, {"data", "model"}), {{}, {}, {}});
  EXPECT_EQ(std::ranges::count(whole.plan.program.op_kinds, OpKind::cond), 2);
  for (const Mesh& mesh : {Mesh({4, 1}, {"data", "model"}), Mesh({2, 2}, {"data", "model"})}) {
    for (const PartitionSpec& spec :
         {PartitionSpec{{}, "data", {}}, {{}, "data", "model"}, {{}, {}, "data"}}) {
      const OnMesh made = run_on(mesh, spec);
      for (std::size_t i = 0; i < made.values.size(); ++i) {
        for (std::size_t e = 0; e < made.values[i].size(); ++e) {
          ASSERT_NEAR(made.values[i][e], whole.values[i][e], 1e-4) << i << " " << e;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::branches_test
