#pragma once
/// Elements in memory, with their type: what the collectives of a Chip take.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>

#include <weft/spmd/error.hpp>
#include <weft/spmd/program/bf16.hpp>
#include <weft/spmd/program/type.hpp>

namespace weft {

template <typename T>
concept ChipElement = static_cast<bool>(dtype_of<T>());

/// A vector, array or span of such a type.
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
  /// What may be written may be read.
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
