#pragma once
/// Converts numbers from their form in files to elements of a field.

#include <cstddef>
#include <optional>
#include <span>

#include <weft/data/files.hpp>
#include <weft/tensor/type.hpp>

#include "data/formats/foreign_element.hpp"
#include "data/formats/npy.hpp"

namespace weft {

ForeignElement element_of(const NpyHeader& header);

/// A conversion: element = stored * scale + offset.
struct ElementCast {
  ForeignElement from{};
  DType to = DType::f32;
  double scale = 1;
  double offset = 0;

  bool is_scaled() const { return scale != 1 || offset != 0; }
  /// Returns whether the conversion leaves the bytes of an element unchanged.
  bool is_copy() const;
};

/// Returns the conversion that `field` describes, from stored elements of the form `from`. Throws
/// invalid_argument for a conversion that FileField doesn't support.
ElementCast make_cast(const ForeignElement& from, const FileField& field);

/// Throws invalid_argument unless scale and offset are finite, and for integers, unless they are 1
/// and 0.
void check_scale(DType dtype, double scale, double offset);

/// Converts as many elements as `out` has. Throws corrupt for a bool that is neither 0 nor 1, and
/// for a number beyond the range of i64.
void cast_elements(const ElementCast& cast, std::span<const std::byte> stored,
                   std::span<std::byte> out);

/// Throws corrupt if a byte is neither 0 nor 1.
void check_bools(std::span<const std::byte> bytes);

}  // namespace weft
