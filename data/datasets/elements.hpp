#pragma once
/// Converts numbers as files have them to elements of a field.

#include <cstddef>
#include <optional>
#include <span>

#include <weft/data_files.hpp>
#include <weft/type.hpp>

#include "data/formats/foreign_element.hpp"
#include "data/formats/npy.hpp"

namespace weft {

ForeignElement element_of(const NpyHeader& header);

/// Element = stored * scale + offset.
struct ElementCast {
  ForeignElement from{};
  DType to = DType::f32;
  double scale = 1;
  double offset = 0;

  bool is_scaled() const { return scale != 1 || offset != 0; }
  /// The stored bytes are the element's.
  bool is_copy() const;
};

/// Throws invalid_argument for a conversion that FileField doesn't offer.
ElementCast make_cast(const ForeignElement& from, const FileField& field);

/// Throws invalid_argument unless scale and offset are finite, and 1 and 0 for integers.
void check_scale(DType dtype, double scale, double offset);

/// `stored` has as many elements as `out`. Throws corrupt for a bool that is neither 0 nor 1, and
/// for a number that i64 doesn't have.
void cast_elements(const ElementCast& cast, std::span<const std::byte> stored,
                   std::span<std::byte> out);

/// Throws corrupt for a byte that is neither 0 nor 1.
void check_bools(std::span<const std::byte> bytes);

}  // namespace weft
