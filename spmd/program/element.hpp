#pragma once
/// Converts a tensor's element between bytes and a double.

#include <cstddef>

#include <weft/tensor/type.hpp>

namespace weft {

/// Writes the value as byte_size(dtype) bytes. Floating dtypes round to nearest even; integers
/// truncate and saturate (NaN becomes 0); pred is stored as 0 or 1.
void store_element(DType dtype, double value, std::byte* bytes) noexcept;
/// Returns the element as a double; an i64 beyond 2^53 is rounded.
double load_element(DType dtype, const std::byte* bytes) noexcept;
/// Returns whether the dtype can store the value. An integer dtype or pred must store it exactly. A
/// floating dtype may round it, but not from a finite value to an infinity.
bool is_representable(DType dtype, double value) noexcept;

}  // namespace weft
