#pragma once
/// Elements in memory: bfloat16, the dtypes of C++ types, and spans of elements with their type.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <type_traits>

#include <weft/error.hpp>
#include <weft/type.hpp>

namespace weft {

// bfloat16, for which C++20 has no type, and the dtypes of C++ types.

/// The upper half of a float. Arithmetic is done in float; stores round to nearest even.
struct Bf16 {
  std::uint16_t bits;

  Bf16() = default;
  explicit Bf16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    // Adding to a NaN could carry into the sign: keep its upper half, made quiet.
    const std::uint32_t nan = (word >> 16) | 0x40U;
    const std::uint32_t rounded = (word + 0x7fffU + ((word >> 16) & 1U)) >> 16;
    bits = static_cast<std::uint16_t>(value != value ? nan : rounded);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// The DType of a C++ type, if there is one.
template <typename T>
constexpr std::optional<DType> dtype_of() {
  if constexpr (std::same_as<T, bool>) return DType::pred;
  if constexpr (std::same_as<T, std::int32_t>) return DType::i32;
  if constexpr (std::same_as<T, std::uint32_t>) return DType::u32;
  if constexpr (std::same_as<T, std::int64_t>) return DType::i64;
  if constexpr (std::same_as<T, Bf16>) return DType::bf16;
  if constexpr (std::same_as<T, float>) return DType::f32;
  if constexpr (std::same_as<T, double>) return DType::f64;
  return {};
}

// Elements in memory, with their type: what the collectives of a Chip take.

template <typename T>
concept ChipElement = static_cast<bool>(dtype_of<T>());

/// A vector, array or span of an element type.
template <typename Range>
concept ElementRange = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    ChipElement<std::ranges::range_value_t<Range>>;

/// `Byte`: std::byte, or const std::byte for elements that are only read.
template <typename Byte>
class BasicElementSpan {
 public:
  template <ElementRange Range>
  requires(std::is_const_v<Byte> ||
           !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>)
      BasicElementSpan(Range&& range)  // NOLINT(google-explicit-constructor): takes any range
      : dtype_(*dtype_of<std::ranges::range_value_t<Range>>()),
        data_(reinterpret_cast<Byte*>(std::ranges::data(range))),
        size_(static_cast<std::int64_t>(std::ranges::size(range))) {}
  /// One element.
  template <typename T>
  requires(ChipElement<std::remove_const_t<T>> && (std::is_const_v<Byte> || !std::is_const_v<T>))
      BasicElementSpan(T& element)  // NOLINT(google-explicit-constructor)
      : dtype_(*dtype_of<std::remove_const_t<T>>()),
        data_(reinterpret_cast<Byte*>(&element)),
        size_(1) {}
  /// `size` elements, such as those of a torch::Tensor. Throws invalid_argument for
  /// a negative or impossible size, or no data.
  BasicElementSpan(DType dtype, Byte* data, std::int64_t size)
      : dtype_(dtype), data_(data), size_(size) {
    constexpr std::int64_t kSizeMax = std::int64_t{1} << 48;
    if (size < 0 || size > kSizeMax || (size > 0 && data == nullptr)) {
      fail(Errc::invalid_argument, "elements: size = {}, data = {}: expected 0 to {} and memory",
           size, static_cast<const void*>(data), kSizeMax);
    }
  }
  /// A writable span converts to a read-only one.
  template <std::same_as<std::byte> Writable>
  requires std::is_const_v<Byte> BasicElementSpan(
      const BasicElementSpan<Writable>& other)  // NOLINT(google-explicit-constructor)
      : dtype_(other.dtype()), data_(other.data()), size_(other.size()) {}

  DType dtype() const { return dtype_; }
  Byte* data() const { return data_; }
  std::int64_t size() const { return size_; }  ///< elements

 private:
  DType dtype_;
  Byte* data_;
  std::int64_t size_;
};

using ElementSpan = BasicElementSpan<std::byte>;
using ConstElementSpan = BasicElementSpan<const std::byte>;

}  // namespace weft
