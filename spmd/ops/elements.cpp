#include <weft/spmd/ops/elements.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <weft/spmd/program/element.hpp>

namespace weft {
namespace {

using Dims = std::span<const std::int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::vector<std::int64_t> row_major_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.size()));
  std::int64_t stride = 1;
  for (int dim = shape.size(); dim-- > 0;) {
    strides[static_cast<std::size_t>(dim)] = stride;
    stride *= shape[dim];
  }
  return strides;
}

std::vector<std::int64_t> offsets(Dims sizes, Dims strides) {
  std::vector<std::int64_t> result{0};
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    std::vector<std::int64_t> next;
    next.reserve(result.size() * static_cast<std::size_t>(sizes[dim]));
    for (const std::int64_t offset : result) {
      for (std::int64_t i = 0; i < sizes[dim]; ++i) next.push_back(offset + i * strides[dim]);
    }
    result = std::move(next);
  }
  return result;
}

std::vector<std::int64_t> places(const Shape& whole, const Shape& shape, Dims start, Dims stride) {
  std::vector<std::int64_t> strides = row_major_strides(whole);
  std::int64_t first = 0;
  for (std::size_t dim = 0; dim < strides.size(); ++dim) {
    first += start[dim] * strides[dim];
    strides[dim] *= stride[dim];
  }
  std::vector<std::int64_t> result = offsets(shape, strides);
  for (std::int64_t& place : result) place += first;
  return result;
}

std::vector<std::int64_t> box(const Shape& whole, const Shape& part, Dims at) {
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(whole.size()), 1);
  return places(whole, part, at, ones);
}

std::vector<std::int64_t> part_of(const Shape& whole, int dim, std::int64_t i, std::int64_t parts) {
  Shape part = whole;
  part[dim] /= parts;
  std::array<std::int64_t, kDimCountMax> at{};
  at[static_cast<std::size_t>(dim)] = i * part[dim];
  return box(whole, part, at);
}

Elements take(const Elements& elements, const std::vector<std::int64_t>& where) {
  Elements taken;
  taken.reserve(where.size());
  for (const std::int64_t offset : where)
    taken.push_back(elements[static_cast<std::size_t>(offset)]);
  return taken;
}

void put(Elements& to, const std::vector<std::int64_t>& where, const Elements& elements) {
  for (std::size_t i = 0; i < where.size(); ++i) {
    to[static_cast<std::size_t>(where[i])] = elements[i];
  }
}

double to_dtype(DType dtype, double x) {
  if (is_floating(dtype)) return x;
  std::array<std::byte, 8> bytes{};
  store_element(dtype, x, bytes.data());
  return load_element(dtype, bytes.data());
}

double neutral(ReduceKind kind, DType dtype) {
  switch (kind) {
    case ReduceKind::add: return 0;
    case ReduceKind::max: return dtype == DType::pred ? 0 : to_dtype(dtype, -kInfinity);
    case ReduceKind::min: return to_dtype(dtype, kInfinity);
  }
  return kNaN;
}

double combine(ReduceKind kind, double a, double b) {
  if (kind == ReduceKind::add) return a + b;
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  return kind == ReduceKind::max ? std::max(a, b) : std::min(a, b);
}

}  // namespace weft
