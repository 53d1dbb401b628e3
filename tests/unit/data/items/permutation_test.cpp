#include "data/items/permutation.hpp"

#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace weft::permutation_test {
namespace {

PhiloxKey key_of(std::uint64_t number) { return data_key(7, DataStream::shuffle, number); }

template <typename Order>
bool is_permutation(const Order& order, std::int64_t size) {
  std::vector<bool> seen(static_cast<std::size_t>(size));
  for (std::int64_t place = 0; place < size; ++place) {
    const std::int64_t number = order[place];
    if (number < 0 || number >= size || seen[static_cast<std::size_t>(number)]) return false;
    seen[static_cast<std::size_t>(number)] = true;
  }
  return true;
}

/// Returns the distance of the counts' chi-square statistic from its mean, in standard deviations.
/// Mean and deviation are those for equally likely outcomes.
double deviations(const std::vector<int>& counts) {
  double sum = 0;
  for (const int count : counts) sum += count;
  const double expected = sum / static_cast<double>(counts.size());
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - expected) * (count - expected) / expected;
  const double freedom = static_cast<double>(counts.size()) - 1;
  return std::abs(chi_square - freedom) / std::sqrt(2 * freedom);
}

TEST(Permutation, HasEachNumberOnce) {
  for (std::int64_t size = 1; size <= 4096; size += size < 300 ? 1 : 37) {
    for (std::uint64_t key = 0; key < 3; ++key) {
      ASSERT_TRUE(is_permutation(KeyedPermutation(size, key_of(key)), size)) << size;
      ASSERT_TRUE(is_permutation(Shuffle(size, key_of(key)), size)) << size;
    }
  }
  for (const std::int64_t size : {65'535, 65'536, 65'537, 262'144, 1'000'003}) {
    ASSERT_TRUE(is_permutation(Shuffle(size, key_of(1)), size)) << size;
  }
}

TEST(Permutation, OfManyItemsIsAskedForPlaceByPlace) {
  for (const std::int64_t size : {std::int64_t{68'719'476'737}, std::int64_t{1} << 53}) {
    const Shuffle shuffle(size, key_of(3));
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < 20'000; ++i) {
      const std::int64_t number = shuffle[i * 1'000'003];
      ASSERT_TRUE(number >= 0 && number < size);
      ASSERT_TRUE(seen.insert(number).second);
    }
  }
}

TEST(Permutation, IsTheSameOnEveryMachine) {
  // These orders must not change between versions, because resumed jobs depend on them.
  const auto first = [](std::int64_t size) {
    const Shuffle shuffle(size, key_of(0));
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < 4; ++i) numbers.push_back(shuffle[i]);
    return numbers;
  };
  EXPECT_EQ(first(10), (std::vector<std::int64_t>{8, 4, 7, 1}));
  EXPECT_EQ(first(1'000'000), (std::vector<std::int64_t>{460'251, 991'584, 56'697, 444'407}));
}

TEST(Shuffle, HasAllOrdersOfFiveEquallyOften) {
  std::map<std::vector<std::int64_t>, int> seen;
  for (std::uint64_t epoch = 0; epoch < 120 * 400; ++epoch) {
    const Shuffle shuffle(5, key_of(epoch));
    ++seen[{shuffle[0], shuffle[1], shuffle[2], shuffle[3], shuffle[4]}];
  }
  std::vector<int> counts;
  for (const auto& [order, count] : seen) counts.push_back(count);
  ASSERT_EQ(counts.size(), 120U);
  EXPECT_LT(deviations(counts), 4);
}

TEST(KeyedPermutation, SendsEachPlaceEverywhere) {
  for (const std::int64_t size : {97, 1009}) {
    for (const std::int64_t place : {std::int64_t{0}, std::int64_t{1}, size / 2, size - 1}) {
      std::vector<int> counts(static_cast<std::size_t>(size));
      for (std::uint64_t epoch = 0; epoch < 200 * static_cast<std::uint64_t>(size); ++epoch) {
        ++counts[static_cast<std::size_t>(KeyedPermutation(size, key_of(epoch))[place])];
      }
      EXPECT_LT(deviations(counts), 4) << size << ", place " << place;
    }
  }
}

TEST(KeyedPermutation, SendsPairsOfPlacesToAllDistances) {
  const std::int64_t size = 97;
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(0, 48), std::pair(3, 13)}) {
    std::vector<int> counts(static_cast<std::size_t>(size - 1));
    for (std::uint64_t epoch = 0; epoch < 400 * static_cast<std::uint64_t>(size); ++epoch) {
      const KeyedPermutation order(size, key_of(epoch));
      ++counts[static_cast<std::size_t>((order[b] - order[a] + size) % size - 1)];
    }
    EXPECT_LT(deviations(counts), 4) << a << ", " << b;
  }
}

TEST(Words, NumbersBelowACountAreEquallyLikely) {
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{1000}}) {
    WordSequence words(key_of(9), count);
    std::vector<int> counts(count);
    for (std::uint64_t i = 0; i < 400 * count; ++i) ++counts[number_below(words, count)];
    if (count > 1) {
      EXPECT_LT(deviations(counts), 4) << count;
    }
  }
  // This count exceeds 32 bits and isn't a power of two. All thirds of its range are equally
  // likely.
  WordSequence words(key_of(9));
  const std::uint64_t count = std::uint64_t{3} << 40;
  std::vector<int> thirds(3);
  for (int i = 0; i < 30'000; ++i) ++thirds[number_below(words, count) >> 40];
  EXPECT_LT(deviations(thirds), 4);
}

}  // namespace
}  // namespace weft::permutation_test
