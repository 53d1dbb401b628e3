#include <weft/control_flow.hpp>

#include <numeric>

#include <weft/transforms.hpp>

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
  expect_near(full({1}, 3) + 1.0, {4});  // the rest of the program is whole
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
  expect_refusal({"item 1, f32[3], has 3 parts in dim 0", "the items before have 2"},
                 [&](int& line) {
                   const std::vector<Tensor> items{ones(2), ones(3)};
                   line = __LINE__ + 1;
                   scan(body, full({}, 0), items);
                 });
  expect_refusal({"item 0, f32[2], has 2 parts", "length is 5"}, [&](int& line) {
    const std::vector<Tensor> items{ones(2)};
    line = __LINE__ + 1;
    scan(body, full({}, 0), items, {.length = 5});
  });
  expect_refusal({"length = 0: without items"}, [&](int& line) {
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
