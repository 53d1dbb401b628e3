#pragma once
/// Philox4x32-10, the counter-based random generator of J. Salmon, M. Moraes, R. Dror and D. Shaw,
/// "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). A random number is a pure function of
/// key and counter, so it doesn't depend on the order of calls.

#include <array>
#include <cstdint>
#include <string_view>

namespace weft {

using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Returns four random words.
constexpr PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t odd = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(odd),
               static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(even)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// Returns block `number` of rng_bit_generator: key = state[0..1], counter = (number, state[2..3]).
constexpr PhiloxBlock generator_block(const PhiloxBlock& state, std::uint64_t number) {
  return philox({static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32),
                 state[2], state[3]},
                {state[0], state[1]});
}

/// Returns the FNV-1a hash of a tensor's name. The hash selects a random stream for each name,
/// which is the same on every machine.
constexpr std::uint64_t stream_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

/// Returns the random word of one element of a tensor: key = seed, counter = (element, stream).
constexpr std::uint32_t random_word(std::uint64_t seed, std::uint64_t stream,
                                    std::uint64_t element) {
  const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
  const auto high = [](std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); };
  return generator_block({low(seed), high(seed), low(stream), high(stream)}, element)[0];
}

/// Returns a uniform number in [0, 1). It uses only the upper 24 bits of the word, because a float
/// can't represent more.
constexpr float uniform(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

}  // namespace weft
