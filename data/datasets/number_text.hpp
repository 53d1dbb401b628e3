#pragma once
/// Numbers as text, stored as elements.

#include <cstddef>
#include <string_view>

#include <weft/type.hpp>

namespace weft {

struct NumberText {
  DType dtype = DType::f32;
  double scale = 1;  ///< as FileField's
  double offset = 0;
};

/// Writes an element, or returns false unless the whole of the text is a number of the dtype, with
/// or without spaces around it.
bool store_number(const NumberText& form, std::string_view text, std::byte* out);

/// Whether the text is a number.
bool is_number(std::string_view text);

}  // namespace weft
