#pragma once
/// Access to the fields of an aggregate, in order, although the aggregate doesn't list them.

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace weft {
namespace detail {

inline constexpr std::size_t kFieldsMax = 16;

/// Refuses, when the program is compiled, a message with more than kFieldsMax fields.
template <std::size_t kCount>
constexpr void require_field_count() {
  static_assert(kCount <= kFieldsMax,
                "a message may have 16 fields; put some into a struct of their own");
}

/// Converts to any type, so it can initialize any field of an aggregate.
struct AnyField {
  template <typename T>
  operator T() const;
};

template <typename T, std::size_t... I>
constexpr bool takes_fields(std::index_sequence<I...>) {
  return requires { T{((void)I, AnyField{})...}; };
}

/// Returns the number of fields of an aggregate that has no arrays of C and no base classes.
/// Returns kFieldsMax + 1 if it has more than kFieldsMax.
template <typename T, std::size_t N = kFieldsMax + 1>
constexpr std::size_t field_count() {
  if constexpr (N == 0 || takes_fields<T>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return field_count<T, N - 1>();
  }
}

/// Calls f with references to all fields (std::tie).
template <typename T, typename F>
decltype(auto) with_fields(T& v, F f) {
  constexpr std::size_t n = field_count<std::remove_const_t<T>>();
  if constexpr (n == 0) {
    return f(std::tie());
  } else if constexpr (n == 1) {
    auto& [a] = v;
    return f(std::tie(a));
  } else if constexpr (n == 2) {
    auto& [a, b] = v;
    return f(std::tie(a, b));
  } else if constexpr (n == 3) {
    auto& [a, b, c] = v;
    return f(std::tie(a, b, c));
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = v;
    return f(std::tie(a, b, c, d));
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = v;
    return f(std::tie(a, b, c, d, e));
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, g] = v;
    return f(std::tie(a, b, c, d, e, g));
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, g, h] = v;
    return f(std::tie(a, b, c, d, e, g, h));
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, g, h, i] = v;
    return f(std::tie(a, b, c, d, e, g, h, i));
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, g, h, i, j] = v;
    return f(std::tie(a, b, c, d, e, g, h, i, j));
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, g, h, i, j, k] = v;
    return f(std::tie(a, b, c, d, e, g, h, i, j, k));
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, g, h, i, j, k, l] = v;
    return f(std::tie(a, b, c, d, e, g, h, i, j, k, l));
  } else if constexpr (n == 12) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m] = v;
    return f(std::tie(a, b, c, d, e, g, h, i, j, k, l, m));
  } else if constexpr (n == 13) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, o] = v;
    return f(std::tie(a, b, c, d, e, g, h, i, j, k, l, m, o));
  } else if constexpr (n == 14) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, o, p] = v;
    return f(std::tie(a, b, c, d, e, g, h, i, j, k, l, m, o, p));
  } else if constexpr (n == 15) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, o, p, q] = v;
    return f(std::tie(a, b, c, d, e, g, h, i, j, k, l, m, o, p, q));
  } else if constexpr (n == 16) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, o, p, q, r] = v;
    return f(std::tie(a, b, c, d, e, g, h, i, j, k, l, m, o, p, q, r));
  } else {
    require_field_count<n>();
  }
}

}  // namespace detail
}  // namespace weft
