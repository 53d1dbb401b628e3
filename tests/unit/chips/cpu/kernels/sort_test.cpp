// Tests, for every dtype, that a sort is stable if the chips of a mesh compute it in parts.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include <weft/ops/along_dim.hpp>
#include <weft/ops/random.hpp>

#include "spmd/program/element.hpp"
#include "tests/support/engine_runtime.hpp"
#include "tests/support/simulate_runtime.hpp"

namespace weft::sort_test {
namespace {

using testing::EngineRuntime;
using testing::PlanRuntime;
using testing::SimulateRuntime;
using Order = std::vector<std::int32_t>;

constexpr std::int64_t kTogether = 1 << 16;  // rows of at least this length are sorted in parts
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Mesh> meshes() {
  return {Mesh({1}, {"a"}), Mesh({2}, {"a"}), Mesh({3}, {"a"}), Mesh({4}, {"a"}),
          Mesh({2, 2}, {"a", "b"})};
}

/// A row of elements with many ties. Rows of floats include NaN, infinities and zeros of both
/// signs.
struct Row {
  Row(DType of, std::int64_t size) : dtype(of) {
    std::minstd_rand random(7);
    const auto bytes_each = static_cast<std::size_t>(byte_size(dtype));
    bytes.resize(static_cast<std::size_t>(size) * bytes_each);
    for (std::int64_t i = 0; i < size; ++i) {
      double number = static_cast<double>(random() % 201) - 100;
      if (!is_floating(dtype) && dtype != DType::i8) number = std::abs(number);
      if (dtype == DType::pred) number = static_cast<double>(random() % 2);
      if (is_floating(dtype)) {
        const std::array odd{std::nan(""), kInfinity, -kInfinity, -0.0, 0.0, -std::nan("")};
        if (random() % 10 == 0) number = odd[random() % odd.size()];
      }
      std::byte* const place = bytes.data() + static_cast<std::size_t>(i) * bytes_each;
      store_element(dtype, number, place);
      numbers.push_back(load_element(dtype, place));
    }
  }

  Order order(bool descending) const {
    const auto is_less = [](double a, double b) {
      return a < b || (std::isnan(b) && !std::isnan(a));
    };
    Order places(numbers.size());
    std::iota(places.begin(), places.end(), 0);
    std::ranges::stable_sort(places, [&](std::int32_t i, std::int32_t k) {
      const double a = numbers[static_cast<std::size_t>(i)];
      const double b = numbers[static_cast<std::size_t>(k)];
      return descending ? is_less(b, a) : is_less(a, b);
    });
    return places;
  }

  Tensor tensor(const Shape& shape) const {
    return to_device(ConstElementSpan(dtype, bytes.data(), std::ssize(numbers)), shape);
  }

  DType dtype;
  std::vector<std::byte> bytes;
  std::vector<double> numbers;
};

/// Returns for each sort of the last compiled plan the number of elements that a chip sorts.
std::vector<std::int64_t> sorted_counts(const PlanRuntime& runtime) {
  const Program& program = runtime.plans.back()->program;
  std::vector<std::int64_t> counts;
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (program.kind(op) != OpKind::argsort) continue;
    counts.push_back(program.type(program.result(op)).num_elements());
  }
  return counts;
}

std::int64_t part_of(std::int64_t size, const Mesh& mesh) {
  return (size + mesh.size() - 1) / mesh.size();
}

TEST(SortedTogether, HasTheOrderOfAStableSortInEveryDtype) {
  bool descending = false;
  for (const Mesh& mesh : meshes()) {
    EngineRuntime runtime(mesh);
    const RuntimeScope scope(runtime);
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32,
                              DType::u32, DType::i64, DType::i8, DType::u8, DType::pred}) {
      SCOPED_TRACE(fmt::format("{} {} {}", mesh.to_string(), to_string(dtype), descending));
      const Row row(dtype, kTogether + 5);  // a size that 2, 3 and 4 chips don't divide
      const Tensor order = argsort(row.tensor({kTogether + 5}), 0, descending);
      ASSERT_EQ(order.to_vector<std::int32_t>(), row.order(descending));
      EXPECT_EQ(sorted_counts(runtime), (std::vector<std::int64_t>{part_of(kTogether + 5, mesh)}));
      descending = !descending;
    }
    descending = !descending;
  }
}

TEST(SortedTogether, IsWhatTheSimulatorFinds) {
  for (const Mesh& mesh : meshes()) {
    SimulateRuntime runtime(mesh);
    const RuntimeScope scope(runtime);
    const Row row(DType::f32, kTogether);
    const Tensor order = argsort(row.tensor({1, kTogether, 1}), 1);
    EXPECT_EQ(order.to_vector<std::int32_t>(), row.order(false)) << mesh.to_string();
    EXPECT_EQ(sorted_counts(runtime), (std::vector<std::int64_t>{part_of(kTogether, mesh)}));
  }
}

TEST(SortedTogether, MayBeShardedAndHasValues) {
  const Row row(DType::f32, kTogether);
  const Order order = row.order(true);
  for (const Mesh& mesh : meshes()) {
    if (kTogether % mesh.size() != 0) continue;  // shards have no padding
    EngineRuntime runtime(mesh);
    const RuntimeScope scope(runtime);
    const Tensor x = row.tensor({kTogether});
    mark_sharding(x, mesh, {"a"});
    const Sorted sorted = sort(x, 0, true);
    const Sorted most = topk(x, 10);
    EXPECT_EQ(sorted.indices.to_vector<std::int32_t>(), order);
    EXPECT_EQ(most.indices.to_vector<std::int32_t>(), Order(order.begin(), order.begin() + 10));
    const std::vector<float> values = sorted.values.to_vector();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double expected = row.numbers[static_cast<std::size_t>(order[i])];
      ASSERT_TRUE(values[i] == expected || (std::isnan(values[i]) && std::isnan(expected))) << i;
    }
  }
}

TEST(SortedTogether, MakesOnePermutationOnAnyMesh) {
  const auto permutation = [](const Mesh& mesh) {
    EngineRuntime runtime(mesh);
    const RuntimeScope scope(runtime);
    manual_seed(5);
    return randperm(100'003).to_vector<std::int32_t>();
  };
  const Order expected = permutation(meshes()[0]);
  Order sorted = expected;
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], std::int32_t(i));
  for (const Mesh& mesh : meshes()) EXPECT_EQ(permutation(mesh), expected) << mesh.to_string();
  manual_seed(0);
}

TEST(SortedTogether, IsNotWhatIsShortOrHasSeveralRows) {
  const Mesh mesh({2}, {"a"});
  EngineRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  for (const Shape& shape : {Shape{kTogether - 1}, Shape{2, kTogether}}) {
    argsort(full(shape, 1)).to_vector<std::int32_t>();
    EXPECT_EQ(sorted_counts(runtime), (std::vector<std::int64_t>{shape.num_elements()}));
  }
}

}  // namespace
}  // namespace weft::sort_test
