#pragma once
/// Makes random permutations of 0..size-1. Each single element can be computed directly.

#include <array>
#include <cstdint>
#include <vector>

#include "data/items/words.hpp"

namespace weft {

/// A permutation that computes each element without a table. It is a Feistel network (M. Luby, C.
/// Rackoff, 1988) whose halves aren't powers of two: a number below a * b is split into a number
/// below a and a number below b. Each round adds a function of one half to the other half, modulo a
/// or b. A round can be inverted whatever its function is. Because a * b may exceed `size`, a
/// result that isn't below `size` passes through the network again, which is rare because a * b -
/// size < a. If there are few items, not all orders are possible.
class KeyedPermutation {
 public:
  /// `size` must be at least 1.
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

/// A permutation that is determined by a key. For fewer than 65,536 items it is a table, which can
/// be any permutation (R. Durstenfeld, 1964), and otherwise a KeyedPermutation.
class Shuffle {
 public:
  /// Permutations of this size or more have no table.
  static constexpr std::int64_t kTableEnd = 65'536;

  /// `size` must be at least 1.
  Shuffle(std::int64_t size, PhiloxKey key);

  std::int64_t operator[](std::int64_t place) const {
    return table_.empty() ? keyed_[place] : table_[static_cast<std::size_t>(place)];
  }

 private:
  KeyedPermutation keyed_;
  std::vector<std::uint16_t> table_;
};

}  // namespace weft
