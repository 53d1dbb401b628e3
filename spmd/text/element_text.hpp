#pragma once
/// Converts an element of a tensor to text and back without changing a bit.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <weft/tensor/type.hpp>

namespace weft {

/// Returns a short text from which append_element() gets the same bits: a number, or the bits of a
/// NaN ("0x..").
std::string element_text(DType dtype, const std::byte* bytes);
/// Appends the bytes of the element that the text describes. Returns false if the text isn't a
/// value of the dtype.
bool append_element(DType dtype, std::string_view text, std::vector<std::byte>& bytes);

}  // namespace weft
