#pragma once
/// Random permutations of 0..size-1. The element at any place can be computed directly.

#include <array>
#include <cstdint>
#include <vector>

#include "data/items/words.hpp"

namespace weft {

/// A permutation that computes each place without a table. A number below a * b is a pair of a
/// number of Z_a and one of Z_b. Each round adds to one of them a function of the other, which can
/// be inverted whatever the function is. a * b may be more than `size`, so numbers not below `size`
/// pass through again; this is rare because a * b - size < a. It is a Feistel network (M. Luby, C.
/// Rackoff, 1988) without powers of two. For few items it doesn't reach every order.
class KeyedPermutation {
 public:
  /// `size` is at least 1.
  KeyedPermutation(std::int64_t size, PhiloxKey key);

  std::int64_t operator[](std::int64_t place) const;

 private:
  static constexpr std::size_t kRounds = 8;

  std::uint64_t once(std::uint64_t number) const;

  std::uint64_t size_;
  std::uint64_t a_;
  std::uint64_t b_;
  std::array<std::uint64_t, kRounds> keys_{};
};

/// A permutation, chosen uniformly as far as the key allows. For fewer than 65,536 items it is a
/// table (R. Durstenfeld, 1964), else a KeyedPermutation.
class Shuffle {
 public:
  /// Permutations of at least this size have no table.
  static constexpr std::int64_t kTableEnd = 65'536;

  /// `size` is at least 1.
  Shuffle(std::int64_t size, PhiloxKey key);

  std::int64_t operator[](std::int64_t place) const {
    return table_.empty() ? keyed_[place] : table_[static_cast<std::size_t>(place)];
  }

 private:
  KeyedPermutation keyed_;
  std::vector<std::uint16_t> table_;
};

}  // namespace weft
