#include "spmd/program/strides.hpp"

#include <array>
#include <utility>

namespace weft {
namespace {

using Dims = std::span<const std::int64_t>;

}  // namespace

Strides dense_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t stride = 1;
  for (int dim = shape.size(); dim-- > 0;) {
    strides[static_cast<std::size_t>(dim)] = stride;
    stride *= shape[dim];
  }
  return strides;
}

std::vector<std::int64_t> row_major_strides(const Shape& shape) {
  const Strides strides = dense_strides(shape);
  return {strides.begin(), strides.begin() + shape.size()};
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

}  // namespace weft
