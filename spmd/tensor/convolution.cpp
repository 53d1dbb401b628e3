#include <weft/functional.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

void expect_images(const Call& call, const Operand& x) {
  if (call.type(x).shape.size() != 4) {
    call.refuse("{} has {} dims; it takes [N,C,H,W]", call.node(x)->label(),
                call.type(x).shape.size());
  }
}

void expect_from(const Call& call, std::string_view name, const HeightWidth& value,
                 std::int64_t least) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  const auto fits = [&](std::int64_t number) { return number >= least && number <= kMost; };
  if (!fits(value.height) || !fits(value.width)) {
    call.refuse("{} = {{{}, {}}}: expected {} to 2^20", name, value.height, value.width, least);
  }
}

/// Adds what lies beyond `size` elements and their padding of a window that begins before that.
void round_up(WindowDim& dim, std::int64_t size) {
  const std::int64_t span = size + dim.low + dim.high - dilated(dim.size, dim.dilation);
  const std::int64_t rest = (span % dim.stride + dim.stride) % dim.stride;
  const std::int64_t next = span - rest + dim.stride;
  if (rest != 0 && next < size + dim.low) dim.high += dim.stride - rest;
}

/// Windows over height and width of x[N,C,H,W]; one at least fits.
std::vector<WindowDim> windows(const Call& call, const Operand& x, const HeightWidth& size,
                               const HeightWidth& stride, const HeightWidth& padding,
                               const HeightWidth& dilation, bool ceil_mode = false) {
  expect_from(call, "kernel_size", size, 1);
  expect_from(call, "stride", stride, 1);
  expect_from(call, "padding", padding, 0);
  expect_from(call, "dilation", dilation, 1);
  const auto window = [](std::int64_t k, std::int64_t s, std::int64_t p, std::int64_t d) {
    return WindowDim{.size = k, .stride = s, .low = p, .high = p, .dilation = d};
  };
  std::vector<WindowDim> dims{window(size.height, stride.height, padding.height, dilation.height),
                              window(size.width, stride.width, padding.width, dilation.width)};
  const Shape& shape = call.type(x).shape;
  if (ceil_mode) {
    round_up(dims[0], shape[2]);
    round_up(dims[1], shape[3]);
  }
  if (window_count(dims[0], shape[2]) < 1 || window_count(dims[1], shape[3]) < 1) {
    call.refuse("{} with padding {{{}, {}}} is smaller than a window of {}x{}",
                call.node(x)->label(), padding.height, padding.width,
                dilated(size.height, dilation.height), dilated(size.width, dilation.width));
  }
  return dims;
}

/// So much padding that the result has the input's height and width.
std::vector<WindowDim> same_windows(const Call& call, const Operand& x, const HeightWidth& size,
                                    const Conv2dOptions& options) {
  const auto is = [](const HeightWidth& value, std::int64_t both) {
    return value.height == both && value.width == both;
  };
  if (!is(options.stride, 1) || !is(options.padding, 0)) {
    call.refuse(
        "same_padding with stride = {{{}, {}}} and padding = {{{}, {}}}: expected stride 1 and no "
        "other padding",
        options.stride.height, options.stride.width, options.padding.height, options.padding.width);
  }
  expect_from(call, "dilation", options.dilation, 1);
  // Of windows that fit in any case: only their size is looked at.
  const HeightWidth all{options.dilation.height * (size.height - 1),
                        options.dilation.width * (size.width - 1)};
  std::vector<WindowDim> dims = windows(call, x, size, 1, all, options.dilation);
  for (const auto& [dim, total] : {std::pair(&dims[0], all.height), {&dims[1], all.width}}) {
    dim->low = total / 2;
    dim->high = total - dim->low;
  }
  return dims;
}

/// Of a pool: of all four dims.
std::vector<WindowDim> pool_windows(const Call& call, const Operand& x, const HeightWidth& size,
                                    const HeightWidth& stride, const HeightWidth& padding,
                                    const HeightWidth& dilation, bool ceil_mode) {
  expect_images(call, x);
  const std::vector<WindowDim> spatial =
      windows(call, x, size, stride, padding, dilation, ceil_mode);
  if (padding.height > size.height / 2 || padding.width > size.width / 2) {
    call.refuse("padding = {{{}, {}}}: expected at most half of kernel_size {{{}, {}}}",
                padding.height, padding.width, size.height, size.width);
  }
  return {{}, {}, spatial[0], spatial[1]};
}

/// Splits dim `dim` into [groups, size / groups].
ValueId grouped(Call& call, ValueId x, int dim, std::int64_t groups) {
  const Shape shape = call->type(x).shape;
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  sizes[static_cast<std::size_t>(dim)] /= groups;
  sizes.insert(sizes.begin() + dim, groups);
  return call->reshape(x, Shape(sizes));
}

}  // namespace

Tensor conv2d(Operand x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  Call call("conv2d", x.loc());
  if (call.lowers(x, weight, bias)) {
    return conv2d(call.lowered(x), call.lowered(weight), call.lowered(bias), options);
  }
  expect_images(call, x);
  const TensorType in = call.type(x);
  const TensorType kernel = call.type(weight);
  const std::int64_t groups = options.groups;
  if (groups < 1) call.refuse("groups = {}: expected 1 or more", groups);
  if (kernel.shape.size() != 4 || kernel.dtype != in.dtype ||
      kernel.shape[1] * groups != in.shape[1] || kernel.shape[0] % groups != 0) {
    call.refuse(
        "{} and the weight {} don't fit; with groups = {} it takes [N,C,H,W] and [O,C/{},kh,kw] of "
        "one dtype, O a multiple of {}",
        call.node(x)->label(), call.node(weight)->label(), groups, groups, groups);
  }
  if (bias.defined() && call.type(bias) != TensorType{in.dtype, {kernel.shape[0]}}) {
    call.refuse("the bias {} doesn't fit the weight {}: it takes [O] and [O,C/groups,kh,kw]",
                call.node(bias)->label(), call.node(weight)->label());
  }
  const HeightWidth size{kernel.shape[2], kernel.shape[3]};
  Convolution convolution{
      .lhs = {0, 1, 2, 3},
      .rhs = {1, 0, 2, 3},
      .result = {0, 1, 2, 3},
      .window = options.same_padding
                    ? same_windows(call, x, size, options)
                    : windows(call, x, size, options.stride, options.padding, options.dilation)};
  ValueId lhs = call.value(x);
  ValueId rhs = call.value(weight);
  if (groups > 1) {
    lhs = grouped(call, lhs, 1, groups);
    rhs = grouped(call, rhs, 0, groups);
    convolution.lhs = {0, 2, 3, 4};
    convolution.rhs = {2, 1, 3, 4};
    convolution.result = {0, 2, 3, 4};
    convolution.group = {1, 0, 1};
  }
  ValueId result = call->convolution(lhs, rhs, convolution);
  if (groups > 1) {
    const Shape shape = call->type(result).shape;
    result = call->reshape(result, {shape[0], kernel.shape[0], shape[3], shape[4]});
  }
  if (bias.defined()) {
    const std::array<std::int64_t, 1> features{1};
    const ValueId addend =
        call->broadcast_in_dim(call.value(bias), call->type(result).shape, features);
    result = call->binary(OpKind::add, result, addend);
  }
  return call.result(result);
}

Tensor max_pool2d(Operand x, const MaxPool2dOptions& options) {
  Call call("max_pool2d", x.loc());
  const auto dims =
      pool_windows(call, x, options.kernel_size, options.stride.value_or(options.kernel_size),
                   options.padding, options.dilation, options.ceil_mode);
  return call.result(call->reduce_window(call.value(x), {ReduceKind::max, dims}));
}

Tensor avg_pool2d(Operand x, const AvgPool2dOptions& options) {
  Call call("avg_pool2d", x.loc());
  const HeightWidth& size = options.kernel_size;
  const auto dims = pool_windows(call, x, size, options.stride.value_or(size), options.padding, 1,
                                 options.ceil_mode);
  const TensorType type = call.type(x);
  if (!is_floating(type.dtype)) {
    call.refuse("{} isn't of a floating dtype; cast it", call.node(x)->label());
  }
  const Tensor total = call.result(call->reduce_window(call.value(x), {ReduceKind::add, dims}));
  const HeightWidth& padding = options.padding;
  std::array<WindowDim, 2> counted{dims[2], dims[3]};
  Shape counts{type.shape[2], type.shape[3]};
  if (options.count_include_pad) {
    if (counted[0].high == padding.height && counted[1].high == padding.width) {
      return total / static_cast<double>(size.height * size.width);
    }
    // What ceil_mode adds behind the padding doesn't count.
    counts = {counts[0] + 2 * padding.height, counts[1] + 2 * padding.width};
    for (const auto& [dim, pad] :
         {std::pair(&counted[0], padding.height), {&counted[1], padding.width}}) {
      dim->low = 0;
      dim->high -= pad;
    }
  }
  const ValueId ones = call->constant(1, {type.dtype, counts});
  return total /
         call.result(call->reduce_window(ones, {ReduceKind::add, {counted[0], counted[1]}}));
}

}  // namespace weft
