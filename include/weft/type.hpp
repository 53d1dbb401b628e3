#pragma once
/// TensorType: element type and static shape of a value.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace weft {

/// Values are stable: they are written to files.
enum class DType : std::uint8_t { pred = 0, i32 = 1, u32 = 2, i64 = 3, bf16 = 4, f32 = 5, f64 = 6 };

/// Bytes of one element (pred: 1).
constexpr std::int64_t byte_size(DType dtype) noexcept {
  constexpr std::array<std::int64_t, 7> kSizes{1, 4, 4, 8, 2, 4, 8};
  return kSizes[static_cast<std::size_t>(dtype)];
}
/// "f32"; StableHLO's names except `pred`.
std::string_view to_string(DType dtype) noexcept;
/// Throws invalid_argument for an unknown name.
DType parse_dtype(std::string_view name);
constexpr bool is_floating(DType dtype) { return dtype >= DType::bf16; }

/// How a reduction combines values.
enum class ReduceKind : std::uint8_t { add, max, min };
/// "add", "max", "min".
std::string_view to_string(ReduceKind kind) noexcept;

/// Most dims that a tensor can have.
inline constexpr int kDimCountMax = 6;

/// What becomes of the losses of elements or rows (losses.hpp).
enum class Reduction : std::uint8_t {
  mean,        ///< f32[]
  sum,         ///< f32[]
  none,        ///< as they are
  batch_mean,  ///< their sum divided by the size of dim 0 (torch's "batchmean")
};

/// Up to kDimCountMax sizes, each >= 0, stored in place.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims)
      : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}
  /// Throws invalid_argument for more than kDimCountMax dims or a negative size.
  explicit Shape(std::span<const std::int64_t> dims);

  int size() const { return size_; }
  std::int64_t operator[](int dim) const { return dims_[static_cast<std::size_t>(dim)]; }
  std::int64_t& operator[](int dim) { return dims_[static_cast<std::size_t>(dim)]; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + size_; }
  operator std::span<const std::int64_t>() const {  // NOLINT(google-explicit-constructor)
    return {begin(), end()};
  }
  std::int64_t num_elements() const;
  /// "64x128"; "" for a scalar.
  std::string to_string() const;

  /// Compares only the dims in use; the default would compare all kDimCountMax.
  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.size_ != b.size_) return false;
    for (int dim = 0; dim < a.size_; ++dim) {
      if (a[dim] != b[dim]) return false;
    }
    return true;
  }

 private:
  std::array<std::int64_t, kDimCountMax> dims_{};
  std::int32_t size_ = 0;
};

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  std::int64_t num_elements() const { return shape.num_elements(); }
  std::int64_t bytes() const { return num_elements() * byte_size(dtype); }
  /// "f32[64,128]"; "f32[]" for a scalar.
  std::string to_string() const;

  friend bool operator==(const TensorType&, const TensorType&) = default;
};

}  // namespace weft
