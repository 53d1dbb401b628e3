#include <weft/tensor/type.hpp>

#include <algorithm>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::int64_t kElementCountMax = std::int64_t{1} << 53;
constexpr std::array<std::string_view, kDTypeCount> kDTypeNames{"pred", "i32", "u32", "i64", "bf16",
                                                                "f32",  "f64", "f16", "i8",  "u8"};

}  // namespace

std::string_view to_string(ReduceKind kind) noexcept {
  switch (kind) {
    case ReduceKind::add: return "add";
    case ReduceKind::max: return "max";
    case ReduceKind::min: return "min";
  }
  return "unknown";
}

std::string_view to_string(DType dtype) noexcept {
  const auto index = static_cast<std::size_t>(dtype);
  return index < kDTypeNames.size() ? kDTypeNames[index] : "unknown";
}

DType parse_dtype(std::string_view name) {
  const auto found = std::find(kDTypeNames.begin(), kDTypeNames.end(), name);
  if (found == kDTypeNames.end()) {
    fail(Errc::invalid_argument, "dtype \"{}\" isn't one of {}", name,
         fmt::join(kDTypeNames, ", "));
  }
  return static_cast<DType>(found - kDTypeNames.begin());
}

Shape::Shape(std::span<const std::int64_t> dims) : size_(static_cast<std::int32_t>(dims.size())) {
  if (dims.size() > kDimCountMax) {
    fail(Errc::invalid_argument, "shape [{}] has {} dims; at most {} are supported",
         fmt::join(dims, ","), dims.size(), kDimCountMax);
  }
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 0) {
      fail(Errc::invalid_argument, "shape [{}] has size {}; sizes must be at least 0",
           fmt::join(dims, ","), dim);
    }
    if (dim > kElementCountMax / count) {
      fail(Errc::invalid_argument, "shape [{}] has more than 2^53 elements", fmt::join(dims, ","));
    }
    count *= std::max<std::int64_t>(dim, 1);
  }
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

std::int64_t Shape::num_elements() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : *this) count *= dim;
  return count;
}

std::string Shape::to_string() const { return fmt::format("{}", fmt::join(begin(), end(), "x")); }

std::string TensorType::to_string() const {
  return fmt::format("{}[{}]", weft::to_string(dtype), fmt::join(shape.begin(), shape.end(), ","));
}

}  // namespace weft
