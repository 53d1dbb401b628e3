#pragma once
/// WordHash: a hash for tables in memory. Values that are stored or compared across processes use a
/// Fingerprint instead.

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft {

class WordHash {
 public:
  template <typename Number>
  void add(Number number) {
    hash_ = (hash_ ^ static_cast<std::uint64_t>(number)) * 0x9fb21c651e98df25U;
    hash_ ^= hash_ >> 32;
  }
  template <typename Number>
  void add_all(std::span<const Number> numbers) {
    add(numbers.size());
    for (const Number number : numbers) add(number);
  }
  std::size_t value() const { return static_cast<std::size_t>(hash_); }

 private:
  std::uint64_t hash_ = 0;
};

}  // namespace weft
