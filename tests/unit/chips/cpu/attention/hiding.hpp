#pragma once
/// Ways in which attention hides keys from queries, for tests of keys that aren't finite.

#include <algorithm>
#include <array>
#include <cstdint>

namespace weft::testing {

/// `causal` hides later keys. The other ways hide the keys in OddKeys: row_mask and row_added from
/// all queries, mask and added from most queries.
enum class Hiding { causal, mask, row_mask, added, row_added };
inline constexpr std::array kAllHidings{Hiding::causal, Hiding::mask, Hiding::row_mask,
                                        Hiding::added, Hiding::row_added};

/// The indices of the keys that are infinite or NaN.
using OddKeys = std::array<std::int64_t, 4>;

inline bool sees(Hiding way, const OddKeys& odd, std::int64_t query, std::int64_t key) {
  const bool is_odd = std::ranges::find(odd, key) != odd.end();
  switch (way) {
    case Hiding::causal: return key <= query;
    case Hiding::mask:
    case Hiding::added: return !is_odd || query % 5 == 0;
    default: return !is_odd;
  }
}

inline bool sees_an_odd_one(Hiding way, const OddKeys& odd, std::int64_t query) {
  return std::ranges::any_of(odd, [&](std::int64_t key) { return sees(way, odd, query, key); });
}

}  // namespace weft::testing
