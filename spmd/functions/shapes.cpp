#include <weft/ops/elementwise.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/ranges.h>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

std::int64_t size_of_dim(const Call& call, const Operand& x, int dim) {
  const Shape& shape = call.type(x).shape;
  return shape[call.dim_of(dim, shape.size())];
}

Dims sizes_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// Returns x with zeros outside a triangle: x where `keeps(column, row + diagonal)` is true.
Tensor triangle(const char* name, const Operand& x, std::int64_t diagonal,
                Tensor (*keeps)(Operand, Operand)) {
  Call call(name, x.loc());
  const Shape& shape = call.type(x).shape;
  const int num_dims = shape.size();
  if (num_dims < 2) call.refuse("{} has no rows and columns", call.node(x)->label());
  const Shape matrix({shape[num_dims - 2], shape[num_dims - 1]});
  // A shift beyond the matrix's edge has no further effect, but could overflow i32, so it is
  // limited.
  const std::int64_t shift = std::clamp(diagonal, -matrix[0], matrix[1]);
  const Tensor rows = iota(matrix, 0) + static_cast<double>(shift);
  return where(keeps(iota(matrix, 1), rows), x, 0.0);
}

std::vector<Tensor> parts(const Operand& x, const Dims& sizes, int dim) {
  std::vector<Tensor> result;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    result.push_back(slice(x, dim, begin, begin + size));
    begin += size;
  }
  return result;
}

}  // namespace

Tensor reshape(Operand x, const Shape& shape) {
  Call call("reshape", x.loc());
  return call.result(call->reshape(call.value(x), shape));
}

Tensor reshape(Operand x, std::initializer_list<std::int64_t> sizes) {
  Call call("reshape", x.loc());
  Dims shape(sizes);
  std::int64_t known = 1;
  for (const std::int64_t size : shape) known *= size == -1 ? 1 : size;
  const std::int64_t elements = call.type(x).num_elements();
  const auto inferred = std::find(shape.begin(), shape.end(), -1);
  if (inferred != shape.end() && known > 0 && elements % known == 0) *inferred = elements / known;
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; })) {
    call.refuse("{} has {} elements, which don't fit sizes {{{}}}", call.type(x).to_string(),
                elements, fmt::join(sizes, ","));
  }
  return call.result(call->reshape(call.value(x), call.shape_of(shape)));
}

Tensor transpose(Operand x, int dim0, int dim1) {
  Call call("transpose", x.loc());
  const int num_dims = call.type(x).shape.size();
  Dims perm(static_cast<std::size_t>(num_dims));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<std::size_t>(call.dim_of(dim0, num_dims))],
            perm[static_cast<std::size_t>(call.dim_of(dim1, num_dims))]);
  return call.result(call->transpose(call.value(x), perm));
}

Tensor permute(Operand x, std::vector<int> perm) {
  Call call("permute", x.loc());
  Dims dims;
  for (const int dim : perm) dims.push_back(call.dim_of(dim, call.type(x).shape.size()));
  return call.result(call->transpose(call.value(x), dims));
}

Tensor broadcast_to(Operand x, const Shape& shape) {
  Call call("broadcast_to", x.loc());
  if (call.type(x).shape.size() > shape.size()) {
    call.refuse("{} has more dims than [{}]", call.type(x).to_string(), fmt::join(shape, ","));
  }
  return call.result(call.spread(call.value(x), shape));
}

Tensor slice(Operand x, int dim, std::int64_t begin, std::int64_t end, std::int64_t step) {
  Call call("slice", x.loc());
  const Shape& shape = call.type(x).shape;
  const int cut = call.dim_of(dim, shape.size());
  if (step < 1) call.refuse("step = {}: expected 1 or more", step);
  const std::int64_t size = shape[cut];
  const auto place = [size](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  Dims start(static_cast<std::size_t>(shape.size()), 0);
  Dims limit(shape.begin(), shape.end());
  Dims stride(start.size(), 1);
  const auto d = static_cast<std::size_t>(cut);
  start[d] = place(begin);
  limit[d] = std::max(start[d], place(end));
  stride[d] = step;
  return call.result(call->slice(call.value(x), start, limit, stride));
}

Tensor cat(const std::vector<Tensor>& tensors, int dim, std::source_location loc) {
  Call call("cat", loc);
  if (tensors.empty()) call.refuse("needs at least one tensor");
  const int joined = call.dim_of(dim, tensors.front().shape().size());
  std::vector<ValueId> parts;
  for (const Tensor& tensor : tensors) parts.push_back(call.value(Operand(tensor, loc)));
  return call.result(call->concatenate(parts, joined));
}

Tensor flip(Operand x, const std::vector<int>& dims) {
  Call call("flip", x.loc());
  Dims reversed;
  for (const int dim : dims) reversed.push_back(call.dim_of(dim, call.type(x).shape.size()));
  return call.result(call->reverse(call.value(x), reversed));
}

Tensor narrow(Operand x, int dim, const Tensor& start, std::int64_t length) {
  Call call("narrow", x.loc());
  const Shape shape = call.type(x).shape;
  const int cut = call.dim_of(dim, shape.size());
  if (length < 0 || length > shape[cut]) {
    call.refuse("length = {}: expected 0 to {}, the size of dim {}", length, shape[cut], dim);
  }
  if (call.type(start).shape.size() != 0) {
    call.refuse("start is {}: expected i32[] or i64[]", call.node(start)->label());
  }
  Dims sizes(shape.begin(), shape.end());
  sizes[static_cast<std::size_t>(cut)] = length;
  const ValueId value = call.value(x);
  std::vector<ValueId> starts(sizes.size(), call->constant(0, {DType::i32, {}}));
  starts[static_cast<std::size_t>(cut)] = call.value(call.index(start));
  return call.result(call->dynamic_slice(value, starts, sizes));
}

Tensor index_add(Operand x, const Tensor& index, const Tensor& source) {
  Call call("index_add", x.loc());
  const TensorType& to = call.type(x);
  Dims expected(call.type(index).shape.begin(), call.type(index).shape.end());
  if (to.shape.size() > 0) expected.insert(expected.end(), to.shape.begin() + 1, to.shape.end());
  if (to.shape.size() == 0 || call.type(source).dtype != to.dtype ||
      !std::ranges::equal(call.type(source).shape, expected)) {
    call.refuse(
        "{}, index {} and source {} don't fit; expected [rows,row...], i32[index...] and "
        "[index...,row...]",
        to.to_string(), call.type(index).to_string(), call.type(source).to_string());
  }
  const ValueId value = call.value(x);
  const ValueId rows = call.value(call.index(index));
  const ValueId sums = call->scatter(rows, call.value(source), to.shape[0]);
  return call.result(call->binary(OpKind::add, value, sums));
}

Tensor pad(Operand x, const std::vector<std::array<std::int64_t, 2>>& widths, double value) {
  Call call("pad", x.loc());
  const TensorType type = call.type(x);
  if (static_cast<int>(widths.size()) != type.shape.size()) {
    call.refuse(
        "{} widths are given for the {} dims of {}: expected {{before, after}} for each dim",
        widths.size(), type.shape.size(), type.to_string());
  }
  Dims low;
  Dims high;
  for (const auto& [before, after] : widths) {
    low.push_back(before);
    high.push_back(after);
  }
  const ValueId padding = call->constant(value, {type.dtype, {}});
  return call.result(call->pad(call.value(x), padding, low, high, Dims(low.size(), 0)));
}

Tensor unsqueeze(Operand x, int dim) {
  Call call("unsqueeze", x.loc());
  Dims sizes = sizes_of(call.type(x).shape);
  sizes.insert(sizes.begin() + call.dim_of(dim, static_cast<int>(sizes.size()) + 1), 1);
  return reshape(x, call.shape_of(sizes));
}

Tensor squeeze(Operand x, std::optional<int> dim) {
  Call call("squeeze", x.loc());
  Dims sizes = sizes_of(call.type(x).shape);
  if (!dim) {
    std::erase(sizes, 1);
  } else if (sizes.empty() && (*dim == 0 || *dim == -1)) {
    return x.tensor();
  } else {
    const auto at = sizes.begin() + call.dim_of(*dim, static_cast<int>(sizes.size()));
    if (*at == 1) sizes.erase(at);
  }
  return reshape(x, call.shape_of(sizes));
}

Tensor flatten(Operand x, int first, int last) {
  Call call("flatten", x.loc());
  const Shape& shape = call.type(x).shape;
  if (shape.size() == 0) return reshape(x, {1});
  const int begin = call.dim_of(first, shape.size());
  const int end = call.dim_of(last, shape.size());
  if (begin > end) call.refuse("dim {} comes after dim {}", first, last);
  Dims sizes(shape.begin(), shape.begin() + begin);
  sizes.push_back(std::accumulate(shape.begin() + begin, shape.begin() + end + 1, std::int64_t{1},
                                  std::multiplies<>()));
  sizes.insert(sizes.end(), shape.begin() + end + 1, shape.end());
  return reshape(x, call.shape_of(sizes));
}

Tensor stack(const std::vector<Tensor>& tensors, int dim, std::source_location loc) {
  Call call("stack", loc);
  std::vector<Tensor> layers;
  for (const Tensor& tensor : tensors) {
    const TensorType& type = call.type(Operand(tensor, loc));
    if (type != call.type(Operand(tensors.front(), loc))) {
      call.refuse("{} and {} differ; all tensors must have one type (cat joins other sizes)",
                  tensors.front().type().to_string(), type.to_string());
    }
    layers.push_back(unsqueeze(Operand(tensor, loc), dim));
  }
  if (layers.empty()) call.refuse("needs at least one tensor");
  return cat(layers, call.dim_of(dim, layers.front().shape().size()), loc);
}

std::vector<Tensor> split(Operand x, std::int64_t size, int dim) {
  Call call("split", x.loc());
  if (size < 1) call.refuse("size = {}: expected 1 or more", size);
  std::int64_t left = size_of_dim(call, x, dim);
  Dims sizes;
  for (; left > size; left -= size) sizes.push_back(size);
  sizes.push_back(left);
  return parts(x, sizes, dim);
}

std::vector<Tensor> split(Operand x, const std::vector<std::int64_t>& sizes, int dim) {
  Call call("split", x.loc());
  const std::int64_t size = size_of_dim(call, x, dim);
  const bool is_negative = std::ranges::any_of(sizes, [](std::int64_t part) { return part < 0; });
  if (is_negative || std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != size) {
    call.refuse("sizes {{{}}}: expected numbers whose sum is {}, the size of dim {}",
                fmt::join(sizes, ","), size, dim);
  }
  return parts(x, sizes, dim);
}

std::vector<Tensor> split(Operand x, std::initializer_list<std::int64_t> sizes, int dim) {
  return split(x, Dims(sizes), dim);
}

std::vector<Tensor> chunk(Operand x, std::int64_t count, int dim) {
  Call call("chunk", x.loc());
  if (count < 1) call.refuse("count = {}: expected 1 or more", count);
  const std::int64_t size = size_of_dim(call, x, dim);
  if (size == 0) return parts(x, Dims(static_cast<std::size_t>(count), 0), dim);
  return split(x, (size + count - 1) / count, dim);
}

Tensor repeat(Operand x, const std::vector<std::int64_t>& counts) {
  Call call("repeat", x.loc());
  const Shape shape = call.type(x).shape;
  const bool is_negative = std::ranges::any_of(counts, [](std::int64_t n) { return n < 0; });
  if (static_cast<int>(counts.size()) < shape.size() || is_negative) {
    call.refuse("counts {{{}}} for {}: expected one for each dim, none negative",
                fmt::join(counts, ","), call.node(x)->label());
  }
  Dims sizes(counts.size() - static_cast<std::size_t>(shape.size()), 1);
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  Tensor result = reshape(x, call.shape_of(sizes));
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    if (counts[dim] == 1) continue;
    if (counts[dim] == 0) {
      result = slice(result, static_cast<int>(dim), 0, 0);
    } else {
      const std::vector<Tensor> copies(static_cast<std::size_t>(counts[dim]), result);
      result = cat(copies, static_cast<int>(dim), x.loc());
    }
  }
  return result;
}

Tensor roll(Operand x, std::int64_t shift, int dim) {
  Call call("roll", x.loc());
  const std::int64_t size = size_of_dim(call, x, dim);
  const std::int64_t moved = size == 0 ? 0 : (shift % size + size) % size;
  if (moved == 0) return call.result(call.value(x));
  return cat({slice(x, dim, size - moved, size), slice(x, dim, 0, size - moved)}, dim, x.loc());
}

Tensor tril(Operand x, std::int64_t diagonal) { return triangle("tril", x, diagonal, less_equal); }

Tensor triu(Operand x, std::int64_t diagonal) {
  return triangle("triu", x, diagonal, greater_equal);
}

Tensor one_hot(const Tensor& index, std::int64_t num_classes, DType dtype,
               std::source_location loc) {
  Call call("one_hot", loc);
  const TensorType type = call.type(index);
  if (num_classes < 1) call.refuse("num_classes = {}: expected 1 or more", num_classes);
  const ValueId places = call.value(call.index(index));
  const Tensor checked = call.result(call->check_index(places, num_classes));
  Dims sizes = sizes_of(type.shape);
  sizes.push_back(num_classes);
  const Shape shape = call.shape_of(sizes);
  return cast(equal(unsqueeze(checked, -1), iota(shape, -1)), dtype);
}

Tensor index_select(Operand x, int dim, const Tensor& index) {
  Call call("index_select", x.loc());
  const TensorType& type = call.type(x);
  if (type.shape.size() == 0 || call.type(index).shape.size() != 1) {
    call.refuse("{} and the index {} don't fit; expected a tensor with dims, and i32[n] or i64[n]",
                call.node(x)->label(), call.node(index)->label());
  }
  const int axis = call.dim_of(dim, type.shape.size());
  const std::int64_t size = type.shape[axis];
  const Tensor turned = transpose(x, 0, axis);
  const ValueId rows = call.value(Operand(turned, x.loc()));
  const ValueId checked = call->check_index(call.value(call.index(index)), size);
  return transpose(call.result(call->gather(rows, checked)), 0, axis);
}

}  // namespace weft
