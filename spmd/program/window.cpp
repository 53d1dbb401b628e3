#include "spmd/program/window.hpp"

namespace weft {
namespace {

using Field = std::int64_t WindowDim::*;

/// The fields in the order of the attributes.
constexpr std::array<Field, 5> kConvolutionFields{&WindowDim::stride, &WindowDim::low,
                                                  &WindowDim::high, &WindowDim::base_dilation,
                                                  &WindowDim::dilation};
constexpr std::array<Field, 6> kReductionFields{&WindowDim::size,          &WindowDim::stride,
                                                &WindowDim::low,           &WindowDim::high,
                                                &WindowDim::base_dilation, &WindowDim::dilation};

void append(std::vector<std::int64_t>& attrs, std::span<const Field> fields,
            std::span<const WindowDim> dims) {
  for (const Field field : fields) {
    for (const WindowDim& dim : dims) attrs.push_back(dim.*field);
  }
}

std::vector<WindowDim> dims_of(std::span<const std::int64_t> attrs, std::span<const Field> fields) {
  std::vector<WindowDim> dims(attrs.size() / fields.size());
  auto attr = attrs.begin();
  for (const Field field : fields) {
    for (WindowDim& dim : dims) dim.*field = *attr++;
  }
  return dims;
}

}  // namespace

std::int64_t dilated(std::int64_t size, std::int64_t dilation) {
  return size == 0 ? 0 : (size - 1) * dilation + 1;
}

std::int64_t window_count(const WindowDim& window, std::int64_t size) {
  const std::int64_t padded = window.low + dilated(size, window.base_dilation) + window.high;
  const std::int64_t span = dilated(window.size, window.dilation);
  return padded < span ? 0 : (padded - span) / window.stride + 1;
}

std::int64_t element_under(const WindowDim& window, std::int64_t o, std::int64_t k,
                           std::int64_t size) {
  const std::int64_t at = o * window.stride + k * window.dilation - window.low;
  if (at < 0 || at % window.base_dilation != 0) return -1;
  return at / window.base_dilation < size ? at / window.base_dilation : -1;
}

std::int64_t count_elements_under(const WindowDim& window, std::int64_t size,
                                  std::int64_t windows) {
  std::int64_t count = 0;
  for (std::int64_t o = 0; o < windows; ++o) {
    for (std::int64_t k = 0; k < window.size; ++k) {
      if (element_under(window, o, k, size) >= 0) ++count;
    }
  }
  return count;
}

WindowDim transposed(const WindowDim& window, std::int64_t size, std::int64_t count) {
  const std::int64_t span = dilated(window.size, window.dilation);
  const std::int64_t low = span - 1 - window.low;
  return {
      .size = window.size,
      .stride = window.base_dilation,
      .low = low,
      .high = dilated(size, window.base_dilation) - 1 + span - low - dilated(count, window.stride),
      .base_dilation = window.stride,
      .dilation = window.dilation};
}

std::vector<std::int64_t> to_attrs(const Convolution& convolution) {
  std::vector<std::int64_t> attrs;
  for (const auto* list : {&convolution.lhs, &convolution.rhs, &convolution.result}) {
    attrs.insert(attrs.end(), list->begin(), list->end());
  }
  append(attrs, kConvolutionFields, convolution.window);
  attrs.push_back(convolution.reversed ? 1 : 0);
  attrs.insert(attrs.end(), convolution.group.begin(), convolution.group.end());
  return attrs;
}

Convolution convolution_of(std::span<const std::int64_t> attrs, const Shape& rhs) {
  const std::size_t spatial = spatial_count(attrs.size());
  const std::size_t side = 2 + spatial;
  const auto list = [&](std::size_t first, std::size_t count) {
    const auto part = attrs.subspan(first, count);
    return std::vector<std::int64_t>(part.begin(), part.end());
  };
  const std::size_t fields = kConvolutionFields.size() * spatial;
  const std::size_t flag = 3 * side + fields;
  Convolution convolution{.lhs = list(0, side),
                          .rhs = list(side, side),
                          .result = list(2 * side, side),
                          .window = dims_of(attrs.subspan(3 * side, fields), kConvolutionFields),
                          .reversed = attrs[flag] != 0,
                          .group = list(flag + 1, attrs.size() - flag - 1)};
  for (std::size_t i = 0; i < spatial; ++i) {
    convolution.window[i].size = rhs[static_cast<int>(convolution.rhs[2 + i])];
  }
  return convolution;
}

std::size_t spatial_count(std::size_t attr_count) {
  for (const std::size_t spatial : {1U, 2U, 3U}) {
    const std::size_t without_group = 3 * (2 + spatial) + kConvolutionFields.size() * spatial + 1;
    if (attr_count == without_group || attr_count == without_group + 3) return spatial;
  }
  return 0;
}

std::vector<std::int64_t> to_attrs(const WindowReduction& reduction) {
  std::vector<std::int64_t> attrs{static_cast<std::int64_t>(reduction.kind)};
  append(attrs, kReductionFields, reduction.dims);
  return attrs;
}

WindowReduction window_reduction_of(std::span<const std::int64_t> attrs) {
  return {static_cast<ReduceKind>(attrs[0]), dims_of(attrs.subspan(1), kReductionFields)};
}

}  // namespace weft
