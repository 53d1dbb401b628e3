#pragma once
/// Random orders of 0..size-1 in which any place can be asked for.

#include <array>
#include <cstdint>
#include <vector>

#include "data/items/words.hpp"

namespace weft {

/// A permutation worked out place by place, without memory. A number below a * b is a pair of a
/// number of Z_a and one of Z_b; each round adds to one of them a function of the other, which has
/// an inverse whatever the function is. As a * b may be more than `size`, what lands there goes
/// through again until it is below `size`; since a * b - size < a, that is rare. It is a Feistel
/// network (M. Luby, C. Rackoff, 1988) without powers of two. Of few items it doesn't reach every
/// order.
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

/// A permutation of which every one is as likely as the other, as far as the key allows: a table
/// (R. Durstenfeld, 1964) of fewer than 65,536 items, else a KeyedPermutation.
class Shuffle {
 public:
  /// Sizes from here on have no table.
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
