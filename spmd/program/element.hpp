#pragma once
/// One element of a tensor as bytes and as a double.

#include <cstddef>

#include <weft/type.hpp>

namespace weft {

/// Writes byte_size(dtype) bytes: floating rounds to nearest even, integers truncate and saturate
/// (NaN is 0), pred is 0 or 1.
void store_element(DType dtype, double value, std::byte* bytes) noexcept;
/// The element as a double; i64 beyond 2^53 rounds.
double load_element(DType dtype, const std::byte* bytes) noexcept;
/// Whether the dtype has the value: an integer or pred exactly, a floating dtype rounded, where a
/// finite value mustn't become an infinity.
bool is_representable(DType dtype, double value) noexcept;

}  // namespace weft
