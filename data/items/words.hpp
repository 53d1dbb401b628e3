#pragma once
/// Random words for data: which stream they are of, and numbers made of them.

#include <array>
#include <bit>
#include <cstdint>

#include "spmd/program/philox.hpp"

namespace weft {

/// What the words of a seed are for, so that no two uses have the same. Values are stable: the
/// order of a training that is resumed depends on them.
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

/// The key of a stream's `number`, such as an epoch.
constexpr PhiloxKey data_key(std::uint64_t seed, DataStream stream, std::uint64_t number,
                             std::uint32_t part = 0) {
  const PhiloxBlock block =
      philox({static_cast<std::uint32_t>(stream), part, low_word(number), high_word(number)},
             {low_word(seed), high_word(seed)});
  return {block[0], block[1]};
}

/// A seed for what lies within a dataset, other than the seed of the whole.
constexpr std::uint64_t inner_seed(std::uint64_t seed, std::uint64_t number) {
  const PhiloxKey key = data_key(seed, DataStream::inner_seed, number);
  return std::uint64_t{key[1]} << 32 | key[0];
}

/// In 0..count-1, each as likely as the other; count >= 1. `words` gives uniform 32-bit words.
template <typename Words>
std::uint64_t number_below(Words& words, std::uint64_t count) {
  if (high_word(count) == 0) {
    // D. Lemire, "Fast random integer generation in an interval" (2019).
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

/// Word `drawn` of a key, which is counted on; `place` tells apart sequences of one key. `block`
/// has the words of the last call.
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
