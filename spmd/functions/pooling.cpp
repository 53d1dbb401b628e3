#include <algorithm>

#include <weft/ops/convolution.hpp>
#include <weft/ops/elementwise.hpp>

#include "spmd/functions/window_dims.hpp"

namespace weft {
namespace {

template <int N>
WindowOptions pool_options(const Spatial<N>& size, const std::optional<Spatial<N>>& stride,
                           const Spatial<N>& padding, const Spatial<N>& dilation, bool ceil_mode) {
  return {.kernel_size = list_of(size),
          .stride = list_of(stride.value_or(size)),
          .padding = list_of(padding),
          .dilation = list_of(dilation),
          .ceil_mode = ceil_mode};
}

template <int N>
Tensor max_pool(const char* name, const Operand& given, const MaxPoolOptions<N>& options) {
  Call call(name, given.loc());
  const Images x = images(call, given, N);
  const auto dims = pool_windows(call, x.batch,
                                 pool_options(options.kernel_size, options.stride, options.padding,
                                              options.dilation, options.ceil_mode));
  return as_given(x,
                  call.result(call->reduce_window(call.value(x.batch), {ReduceKind::max, dims})));
}

void expect_floating(const Call& call, const Operand& x) {
  if (is_floating(call.type(x).dtype)) return;
  call.refuse("{} isn't of a floating dtype; cast it", call.node(x)->label());
}

/// Returns the number of elements under each window of a pool. Padding counts if
/// `count_include_pad`; elements that ceil_mode adds after the padding never count.
Tensor window_elements(Call& call, const TensorType& type, std::vector<WindowDim> dims,
                       const Dims& padding, bool count_include_pad) {
  Dims sizes(type.shape.begin() + 2, type.shape.end());
  dims.erase(dims.begin(), dims.begin() + 2);
  for (std::size_t i = 0; count_include_pad && i < dims.size(); ++i) {
    sizes[i] += 2 * padding[i];
    dims[i].low = 0;
    dims[i].high -= padding[i];
  }
  const ValueId ones = call->constant(1, {type.dtype, Shape(sizes)});
  return call.result(call->reduce_window(ones, {ReduceKind::add, dims}));
}

template <int N>
Tensor avg_pool(const char* name, const Operand& given, const AvgPoolOptions<N>& options) {
  Call call(name, given.loc());
  expect_floating(call, given);
  const Images x = images(call, given, N);
  const WindowOptions window = pool_options(options.kernel_size, options.stride, options.padding,
                                            Spatial<N>(1), options.ceil_mode);
  const std::vector<WindowDim> dims = pool_windows(call, x.batch, window);
  std::int64_t elements = 1;
  bool is_even = options.count_include_pad;
  for (std::size_t i = 0; i < N; ++i) {
    elements *= window.kernel_size[i];
    is_even = is_even && dims[i + 2].high == window.padding[i];
  }
  return as_given(x, call.rounded_once(x.batch, [&](const Tensor& batch) {
    const Tensor total =
        call.result(call->reduce_window(call.value(batch), {ReduceKind::add, dims}));
    if (is_even) return total / static_cast<double>(elements);
    return total /
           window_elements(call, batch.type(), dims, window.padding, options.count_include_pad);
  }));
}

/// Returns a matrix [parts, size]. Row i has 1 / (length of part i) at the elements of part i, and
/// 0 elsewhere.
Tensor part_means(Call& call, std::int64_t parts, std::int64_t size, DType dtype) {
  std::vector<double> elements(static_cast<std::size_t>(parts * size), 0);
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t begin = i * size / parts;
    const std::int64_t end = ((i + 1) * size + parts - 1) / parts;
    const auto row = elements.begin() + i * size;
    std::fill(row + begin, row + end, 1 / static_cast<double>(end - begin));
  }
  const TensorType type{DType::f64, {parts, size}};
  return cast(call.result(call->constant(std::as_bytes(std::span(elements)), type)), dtype);
}

/// Divides a dim into parts and returns the mean of each part. The dim must have elements.
Tensor means_of_parts(Call& call, const Tensor& x, int dim, std::int64_t parts) {
  const TensorType type = x.type();
  const std::int64_t size = type.shape[dim];
  if (parts == size) return x;
  if (size % parts != 0) {
    // This isn't a matmul, because under autocast a matmul would be computed in bf16 or f16.
    const int last = type.shape.size() - 1;
    const ValueId turned = call.value(transpose(x, dim, -1));
    const ValueId means = call.value(part_means(call, parts, size, type.dtype));
    const Tensor product = call.result(call->dot_general(
        turned, means,
        {.lhs_batch = {}, .rhs_batch = {}, .lhs_contracting = {last}, .rhs_contracting = {1}}));
    return transpose(product, dim, -1);
  }
  Dims sizes(type.shape.begin(), type.shape.end());
  sizes[static_cast<std::size_t>(dim)] = size / parts;
  sizes.insert(sizes.begin() + dim, parts);
  return mean(reshape(x, Shape(sizes)), {dim + 1});
}

template <int N>
Tensor adaptive_avg_pool(const char* name, const Operand& given, const Spatial<N>& output_size) {
  Call call(name, given.loc());
  expect_floating(call, given);
  expect_from(call, "output_size", output_size.sizes(), 1);
  const Images x = images(call, given, N);
  for (int i = 0; i < N; ++i) {
    if (x.batch.shape()[i + 2] > 0) continue;
    call.refuse("{} has an empty dim", call.node(given)->label());
  }
  return as_given(x, call.rounded_once(x.batch, [&](Tensor result) {
    for (int i = 0; i < N; ++i) result = means_of_parts(call, result, i + 2, output_size[i]);
    return result;
  }));
}

}  // namespace

Tensor max_pool1d(Operand x, const MaxPool1dOptions& options) {
  return max_pool("max_pool1d", x, options);
}
Tensor max_pool2d(Operand x, const MaxPool2dOptions& options) {
  return max_pool("max_pool2d", x, options);
}
Tensor max_pool3d(Operand x, const MaxPool3dOptions& options) {
  return max_pool("max_pool3d", x, options);
}

Tensor avg_pool1d(Operand x, const AvgPool1dOptions& options) {
  return avg_pool("avg_pool1d", x, options);
}
Tensor avg_pool2d(Operand x, const AvgPool2dOptions& options) {
  return avg_pool("avg_pool2d", x, options);
}
Tensor avg_pool3d(Operand x, const AvgPool3dOptions& options) {
  return avg_pool("avg_pool3d", x, options);
}

Tensor adaptive_avg_pool1d(Operand x, const Spatial<1>& output_size) {
  return adaptive_avg_pool("adaptive_avg_pool1d", x, output_size);
}
Tensor adaptive_avg_pool2d(Operand x, const Spatial<2>& output_size) {
  return adaptive_avg_pool("adaptive_avg_pool2d", x, output_size);
}
Tensor adaptive_avg_pool3d(Operand x, const Spatial<3>& output_size) {
  return adaptive_avg_pool("adaptive_avg_pool3d", x, output_size);
}

}  // namespace weft
