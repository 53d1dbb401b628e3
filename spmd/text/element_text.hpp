#pragma once
/// Converts a tensor's element to text and back, exact to the bit.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <weft/tensor/type.hpp>

namespace weft {

/// Returns a short text that parses back to the same bits: a number, or the bits of a NaN ("0x..").
std::string element_text(DType dtype, const std::byte* bytes);
/// Appends the element's bytes. Returns false if the text is no value of the dtype.
bool append_element(DType dtype, std::string_view text, std::vector<std::byte>& bytes);

}  // namespace weft
