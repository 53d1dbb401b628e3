#include "data/items/permutation.hpp"

#include <cmath>
#include <numeric>
#include <utility>

namespace weft {
namespace {

/// Returns the smallest number whose square is at least `size`.
std::uint64_t root_above(std::uint64_t size) {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(size)));
  while (root * root >= size) --root;
  while (root * root < size) ++root;
  return root;
}

/// Returns a number below `count` (at most 2^32) that depends on every bit of `word`.
std::uint64_t scatter(std::uint64_t word, std::uint64_t count) {
  word = (word ^ word >> 32) * 0xd6e8feb86659fd93U;
  word = (word ^ word >> 29) * 0x9fb21c651e98df25U;
  word ^= word >> 32;
  return (word & 0xffffffffU) * count >> 32;
}

}  // namespace

KeyedPermutation::KeyedPermutation(std::int64_t size, PhiloxKey key)
    : size_(static_cast<std::uint64_t>(size)), a_(root_above(size_)), b_((size_ + a_ - 1) / a_) {
  WordSequence words(key);
  for (std::uint64_t& round : keys_) {
    round = words();
    round = round << 32 | words();
  }
}

std::uint64_t KeyedPermutation::once(std::uint64_t number) const {
  std::uint64_t in_a = number % a_;
  std::uint64_t in_b = number / a_;
  for (std::size_t round = 0; round < kRounds; round += 2) {
    in_a += scatter(in_b ^ keys_[round], a_);
    if (in_a >= a_) in_a -= a_;
    in_b += scatter(in_a ^ keys_[round + 1], b_);
    if (in_b >= b_) in_b -= b_;
  }
  return in_b * a_ + in_a;
}

std::int64_t KeyedPermutation::operator[](std::int64_t place) const {
  std::uint64_t number = once(static_cast<std::uint64_t>(place));
  while (number >= size_) number = once(number);
  return static_cast<std::int64_t>(number);
}

Shuffle::Shuffle(std::int64_t size, PhiloxKey key) : keyed_(size, key) {
  if (size >= kTableEnd) return;
  table_.resize(static_cast<std::size_t>(size));
  std::iota(table_.begin(), table_.end(), std::uint16_t{0});
  WordSequence words(key);
  for (std::size_t left = table_.size(); left > 1; --left) {
    std::swap(table_[left - 1], table_[number_below(words, left)]);
  }
}

}  // namespace weft
