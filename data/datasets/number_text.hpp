#pragma once
/// Converts numbers in text form to elements.

#include <cstddef>
#include <string_view>

#include <weft/tensor/type.hpp>

namespace weft {

struct NumberText {
  DType dtype = DType::f32;
  double scale = 1;  ///< as in FileField
  double offset = 0;
};

/// Converts the text to an element and writes it to `out`. Returns false unless the whole text is a
/// number of the dtype; spaces around the number are allowed.
bool store_number(const NumberText& form, std::string_view text, std::byte* out);

/// Returns whether the text is a number.
bool is_number(std::string_view text);

}  // namespace weft
