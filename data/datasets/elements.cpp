#include "data/datasets/elements.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <weft/tensor/element.hpp>
#include <weft/tensor/error.hpp>

#include "spmd/program/element.hpp"

namespace weft {
namespace {

template <typename T>
double value_of(T value) {
  if constexpr (std::is_same_v<T, F16>) {
    return static_cast<float>(value);
  } else {
    return static_cast<double>(value);
  }
}

/// Returns the value of a stored element, which may be big-endian and unaligned.
template <typename T>
T load(const std::byte* bytes, bool big_endian) {
  std::array<std::byte, sizeof(T)> copy;
  std::memcpy(copy.data(), bytes, sizeof(T));
  if (big_endian) std::ranges::reverse(copy);
  return std::bit_cast<T>(copy);
}

template <typename From, typename To>
void cast_to(const ElementCast& cast, std::span<const std::byte> stored, std::byte* out) {
  for (std::size_t i = 0; i < stored.size() / sizeof(From); ++i) {
    const auto value = load<From>(stored.data() + i * sizeof(From), cast.from.big_endian);
    To element{};
    if constexpr (std::is_integral_v<To>) {
      if constexpr (!std::is_same_v<From, F16>) element = static_cast<To>(value);
    } else {
      element = static_cast<To>(value_of(value) * cast.scale + cast.offset);
    }
    std::memcpy(out + i * sizeof(To), &element, sizeof(To));
  }
}

template <typename From>
void cast_from(const ElementCast& cast, std::span<const std::byte> stored,
               std::span<std::byte> out) {
  switch (cast.to) {
    case DType::pred: cast_to<From, std::uint8_t>(cast, stored, out.data()); break;
    case DType::i32: cast_to<From, std::int32_t>(cast, stored, out.data()); break;
    case DType::u32: cast_to<From, std::uint32_t>(cast, stored, out.data()); break;
    case DType::i64: cast_to<From, std::int64_t>(cast, stored, out.data()); break;
    case DType::f32: cast_to<From, float>(cast, stored, out.data()); break;
    case DType::f64: cast_to<From, double>(cast, stored, out.data()); break;
    case DType::i8: cast_to<From, std::int8_t>(cast, stored, out.data()); break;
    case DType::u8: cast_to<From, std::uint8_t>(cast, stored, out.data()); break;
    case DType::bf16:
    case DType::f16:
      for (std::size_t i = 0; i < out.size() / 2; ++i) {
        const double value =
            value_of(load<From>(stored.data() + i * sizeof(From), cast.from.big_endian));
        store_element(cast.to, value * cast.scale + cast.offset, out.data() + 2 * i);
      }
  }
}

/// Returns the dtype to which a stored element is converted if no option sets the dtype.
DType default_dtype(const ForeignElement& from) {
  switch (from.kind) {
    case 'b': return DType::pred;
    case 'f': return from.bytes == 8 ? DType::f64 : from.bytes == 4 ? DType::f32 : DType::f16;
    case 'u':
      if (from.bytes == 1) return DType::u8;
      if (from.bytes == 4) return DType::u32;
      [[fallthrough]];
    default:
      if (from.bytes == 1) return DType::i8;
      return from.bytes == 8 ? DType::i64 : DType::i32;
  }
}

bool can_cast(const ForeignElement& from, DType to) {
  if (to == default_dtype(from)) return true;
  if (is_floating(to)) return true;
  if (from.kind == 'f' || to == DType::pred) return false;
  if (from.kind == 'b' || to == DType::i64) return true;
  if (to == DType::i8 || to == DType::u8) return false;
  return from.kind == 'u' ? from.bytes < 4 : to == DType::i32 && from.bytes <= 4;
}

void check_i64(const ElementCast& cast, std::span<const std::byte> stored) {
  for (std::size_t i = 0; i < stored.size(); i += 8) {
    const auto value = load<std::uint64_t>(stored.data() + i, cast.from.big_endian);
    if (value <= std::numeric_limits<std::int64_t>::max()) continue;
    fail(Errc::corrupt, "element {} is {}, which doesn't fit in i64", i / 8, value);
  }
}

}  // namespace

ForeignElement element_of(const NpyHeader& header) {
  return {header.descr[1], static_cast<int>(header.element_bytes), header.big_endian};
}

bool ElementCast::is_copy() const {
  return to == default_dtype(from) && byte_size(to) == from.bytes && !from.big_endian &&
         !is_scaled() && from != ForeignElement{'u', 8, false};
}

void check_scale(DType dtype, double scale, double offset) {
  if (!std::isfinite(scale) || !std::isfinite(offset)) {
    fail(Errc::invalid_argument, "scale = {}, offset = {}: expected finite numbers", scale, offset);
  }
  if (!is_floating(dtype) && (scale != 1 || offset != 0)) {
    fail(Errc::invalid_argument,
         "scale = {}, offset = {} with dtype {}: only floating fields are scaled", scale, offset,
         to_string(dtype));
  }
}

ElementCast make_cast(const ForeignElement& from, const FileField& field) {
  const DType to = field.dtype.value_or(default_dtype(from));
  if (!can_cast(from, to)) {
    fail(Errc::invalid_argument,
         "field '{}': dtype = {}: the file has elements '{}{}': expected {}, a wider integer or a "
         "floating dtype",
         field.name, to_string(to), from.kind, from.bytes, to_string(default_dtype(from)));
  }
  check_scale(to, field.scale, field.offset);
  return {from, to, field.scale, field.offset};
}

void cast_elements(const ElementCast& cast, std::span<const std::byte> stored,
                   std::span<std::byte> out) {
  if (cast.from.kind == 'b') check_bools(stored);
  switch (cast.from.bytes * (cast.from.kind == 'f' ? 10 : cast.from.kind == 'i' ? -1 : 1)) {
    case -1: return cast_from<std::int8_t>(cast, stored, out);
    case -2: return cast_from<std::int16_t>(cast, stored, out);
    case -4: return cast_from<std::int32_t>(cast, stored, out);
    case -8: return cast_from<std::int64_t>(cast, stored, out);
    case 1: return cast_from<std::uint8_t>(cast, stored, out);
    case 2: return cast_from<std::uint16_t>(cast, stored, out);
    case 4: return cast_from<std::uint32_t>(cast, stored, out);
    case 8:
      if (cast.to == DType::i64) check_i64(cast, stored);
      return cast_from<std::uint64_t>(cast, stored, out);
    case 20: return cast_from<F16>(cast, stored, out);
    case 40: return cast_from<float>(cast, stored, out);
    case 80: return cast_from<double>(cast, stored, out);
    default: WEFT_CHECK(false, cast.from.kind, cast.from.bytes);
  }
}

void check_bools(std::span<const std::byte> bytes) {
  const auto other = std::ranges::find_if(bytes, [](std::byte b) { return b > std::byte{1}; });
  if (other == bytes.end()) return;
  fail(Errc::corrupt, "element {} is a bool of value {}: expected 0 or 1", other - bytes.begin(),
       std::to_integer<int>(*other));
}

}  // namespace weft
