#pragma once
/// Draws random words for data, and makes random numbers from them.

#include <array>
#include <bit>
#include <cstdint>

#include "spmd/program/philox.hpp"

namespace weft {

/// The purposes for which words are drawn. One seed gives different words for different purposes.
/// The values of the enumerators never change, because the order of a resumed training depends on
/// them.
enum class DataStream : std::uint32_t {
  item = 0x64617461,
  shuffle,
  split,
  weights,
  window,
  mix_blocks,
  mix_part,
  inner_seed,
  buffer,
  pack,
};

constexpr std::uint32_t low_word(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
constexpr std::uint32_t high_word(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}

/// Returns the key of the words for one purpose (`stream`) and one `number`, such as an epoch.
constexpr PhiloxKey data_key(std::uint64_t seed, DataStream stream, std::uint64_t number,
                             std::uint32_t part = 0) {
  const PhiloxBlock block =
      philox({static_cast<std::uint32_t>(stream), part, low_word(number), high_word(number)},
             {low_word(seed), high_word(seed)});
  return {block[0], block[1]};
}

/// Returns a seed for a part of a dataset. It differs from the dataset's own seed.
constexpr std::uint64_t inner_seed(std::uint64_t seed, std::uint64_t number) {
  const PhiloxKey key = data_key(seed, DataStream::inner_seed, number);
  return std::uint64_t{key[1]} << 32 | key[0];
}

/// Returns a uniform number in 0..count-1; count >= 1. `words` gives uniform 32-bit words.
template <typename Words>
std::uint64_t number_below(Words& words, std::uint64_t count) {
  if (high_word(count) == 0) {
    // This is the method of D. Lemire, "Fast random integer generation in an interval" (2019).
    const std::uint32_t divisor = low_word(count);
    const std::uint32_t surplus = (0U - divisor) % divisor;
    for (;;) {
      const std::uint64_t product = std::uint64_t{words()} * divisor;
      if (low_word(product) >= surplus) return product >> 32;
    }
  }
  const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(count - 1);
  for (;;) {
    const std::uint64_t high = words();
    const std::uint64_t number = (high << 32 | words()) & mask;
    if (number < count) return number;
  }
}

/// Returns word number `drawn` of a key and increments `drawn`. `place` distinguishes the sequences
/// of words of one key. `block` keeps generated words for the next calls.
constexpr std::uint32_t draw_word(PhiloxKey key, std::uint64_t place, std::uint64_t& drawn,
                                  PhiloxBlock& block) {
  const std::uint64_t number = drawn / 4;
  if (drawn % 4 == 0) {
    block = philox({low_word(number), high_word(number), low_word(place), high_word(place)}, key);
  }
  return block[drawn++ % 4];
}

class WordSequence {
 public:
  explicit WordSequence(PhiloxKey key, std::uint64_t place = 0) : key_(key), place_(place) {}

  std::uint32_t operator()() { return draw_word(key_, place_, drawn_, block_); }

 private:
  PhiloxKey key_;
  std::uint64_t place_;
  std::uint64_t drawn_ = 0;
  PhiloxBlock block_{};
};

}  // namespace weft
