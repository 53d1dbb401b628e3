#pragma once
/// Atoms: each mesh axis split into the prime factors of its size, so that a part of an axis is
/// again a list of atoms and a list of atoms fits in one word.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>

#include <weft/error.hpp>

namespace weft {

/// 1..15, numbered over the axes in order, major to minor within an axis. 0 is none.
using Atom = std::uint8_t;
/// Bit a is set for atom a.
using AtomMask = std::uint16_t;

inline constexpr int kAtomCountMax = 15;

/// An ordered list of distinct atoms, major to minor, as nibbles of one word (lowest first).
class AtomList {
 public:
  constexpr AtomList() = default;
  constexpr AtomList(std::initializer_list<Atom> atoms) {
    for (const Atom atom : atoms) push_back(atom);
  }
  static constexpr AtomList from_bits(std::uint64_t bits) {
    AtomList list;
    list.bits_ = bits;
    return list;
  }

  constexpr std::uint64_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int size() const { return (64 - std::countl_zero(bits_) + 3) / 4; }
  constexpr Atom operator[](int i) const { return static_cast<Atom>((bits_ >> (4 * i)) & 15U); }
  constexpr Atom back() const { return (*this)[size() - 1]; }

  constexpr AtomMask mask() const {
    AtomMask mask = 0;
    for (std::uint64_t left = bits_; left != 0; left >>= 4) {
      mask = static_cast<AtomMask>(mask | (1U << (left & 15U)));
    }
    return mask;
  }
  constexpr bool contains(Atom atom) const { return (mask() >> atom) & 1U; }
  /// The first `count` atoms.
  constexpr AtomList prefix(int count) const {
    return count >= 16 ? *this : from_bits(bits_ & ((std::uint64_t{1} << (4 * count)) - 1));
  }
  /// All but the first `count` atoms.
  constexpr AtomList suffix_from(int count) const {
    return count >= 16 ? AtomList{} : from_bits(bits_ >> (4 * count));
  }
  constexpr bool is_prefix_of(AtomList other) const { return other.prefix(size()) == *this; }
  /// How many atoms both begin with.
  constexpr int common_prefix(AtomList other) const {
    return std::min({size(), other.size(), std::countr_zero(bits_ ^ other.bits_) / 4});
  }

  constexpr void push_back(Atom atom) { bits_ |= static_cast<std::uint64_t>(atom) << (4 * size()); }
  constexpr void append(AtomList other) {
    for (int i = 0; i < other.size(); ++i) push_back(other[i]);
  }

  friend constexpr bool operator==(AtomList, AtomList) = default;

 private:
  std::uint64_t bits_ = 0;
};

}  // namespace weft
