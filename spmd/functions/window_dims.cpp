#include "spmd/functions/window_dims.hpp"

#include <algorithm>

#include <fmt/ranges.h>
#include <weft/ops/elementwise.hpp>

namespace weft {
namespace {

/// Adds padding for a last window that begins within the `size` elements and their padding, but
/// ends beyond them.
void round_up(WindowDim& dim, std::int64_t size) {
  const std::int64_t span = size + dim.low + dim.high - dilated(dim.size, dim.dilation);
  const std::int64_t rest = (span % dim.stride + dim.stride) % dim.stride;
  const std::int64_t next = span - rest + dim.stride;
  if (rest != 0 && next < size + dim.low) dim.high += dim.stride - rest;
}

bool all_are(std::span<const std::int64_t> numbers, std::int64_t number) {
  return std::ranges::all_of(numbers, [&](std::int64_t each) { return each == number; });
}

}  // namespace

Images images(Call& call, const Operand& x, int spatial_dims) {
  const int num_dims = call.type(x).shape.size();
  if (num_dims == spatial_dims + 2) return {x.tensor(), false};
  if (num_dims == spatial_dims + 1) return {unsqueeze(x, 0), true};
  constexpr std::array kSpatial{"L", "H,W", "D,H,W"};
  const char* const spatial = kSpatial[static_cast<std::size_t>(spatial_dims - 1)];
  call.refuse("{} has {} dims; expected [N,C,{}] or [C,{}]", call.node(x)->label(), num_dims,
              spatial, spatial);
}

void expect_from(const Call& call, std::string_view name, std::span<const std::int64_t> numbers,
                 std::int64_t least) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  for (const std::int64_t number : numbers) {
    if (number >= least && number <= kMost) continue;
    call.refuse("{} = {{{}}}: expected {} to 2^20", name, fmt::join(numbers, ", "), least);
  }
}

std::vector<WindowDim> windows(const Call& call, const Tensor& x, const WindowOptions& options) {
  const auto& [size, stride, padding, dilation, ceil_mode] = options;
  expect_from(call, "kernel_size", size, 1);
  expect_from(call, "stride", stride, 1);
  expect_from(call, "padding", padding, 0);
  expect_from(call, "dilation", dilation, 1);
  std::vector<WindowDim> dims;
  std::vector<std::int64_t> spans;
  bool fit = true;
  for (std::size_t i = 0; i < size.size(); ++i) {
    WindowDim dim{.size = size[i],
                  .stride = stride[i],
                  .low = padding[i],
                  .high = padding[i],
                  .dilation = dilation[i]};
    const std::int64_t elements = x.shape()[static_cast<int>(i) + 2];
    if (ceil_mode) round_up(dim, elements);
    fit = fit && window_count(dim, elements) >= 1;
    spans.push_back(dilated(size[i], dilation[i]));
    dims.push_back(dim);
  }
  if (!fit) {
    call.refuse("{} with padding {{{}}} is smaller than a window of {}", call.node(x)->label(),
                fmt::join(padding, ", "), fmt::join(spans, "x"));
  }
  return dims;
}

std::vector<WindowDim> same_windows(const Call& call, const Tensor& x,
                                    const WindowOptions& options) {
  const auto& [size, stride, padding, dilation, ceil_mode] = options;
  if (!all_are(stride, 1) || !all_are(padding, 0)) {
    call.refuse(
        "same_padding with stride = {{{}}} and padding = {{{}}}: expected stride 1 and no other "
        "padding",
        fmt::join(stride, ", "), fmt::join(padding, ", "));
  }
  expect_from(call, "dilation", dilation, 1);
  // If the padding is the window's span minus 1, there are as many windows as elements. Below, it
  // is divided between both sides.
  WindowOptions all = options;
  for (std::size_t i = 0; i < size.size(); ++i) all.padding[i] = dilation[i] * (size[i] - 1);
  std::vector<WindowDim> dims = windows(call, x, all);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    dims[i].low = all.padding[i] / 2;
    dims[i].high = all.padding[i] - dims[i].low;
  }
  return dims;
}

std::vector<WindowDim> pool_windows(const Call& call, const Tensor& x,
                                    const WindowOptions& options) {
  std::vector<WindowDim> dims = windows(call, x, options);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (options.padding[i] <= options.kernel_size[i] / 2) continue;
    call.refuse("padding = {{{}}}: expected at most half of kernel_size {{{}}}",
                fmt::join(options.padding, ", "), fmt::join(options.kernel_size, ", "));
  }
  dims.insert(dims.begin(), 2, WindowDim{});
  return dims;
}

}  // namespace weft
