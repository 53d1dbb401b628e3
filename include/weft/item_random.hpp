#pragma once
/// Item, the name of what a dataset reads, and ItemRandom, the random numbers that belong to it.

#include <array>
#include <cstdint>
#include <limits>

namespace weft {

/// What is read: a dataset gives the same bytes for the same item, whoever asks and when.
struct Item {
  std::int64_t index = 0;
  /// Counts the times that the item is drawn: of a sampler without replacement, the epoch.
  std::uint64_t epoch = 0;
  std::uint64_t seed = 0;

  friend bool operator==(const Item&, const Item&) = default;
};

/// Random words that are a function of an item alone (Philox4x32-10): a random bit generator for
/// <random>, whose distributions may differ between standard libraries; uniform() and below() don't.
class ItemRandom {
 public:
  using result_type = std::uint32_t;

  explicit ItemRandom(const Item& item);

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()();
  /// In [0, 1), a multiple of 2^-24.
  float uniform();
  /// In [low, high).
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  /// In 0..count-1, each as likely as the other. Throws invalid_argument for count < 1.
  std::int64_t below(std::int64_t count);

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t index_;
  std::uint64_t drawn_ = 0;  // words
  std::array<std::uint32_t, 4> block_{};
};

}  // namespace weft
