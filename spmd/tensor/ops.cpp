#include <weft/ops.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/ranges.h>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

using Dims = std::vector<std::int64_t>;

Tensor unary(OpKind kind, const Operand& x) {
  Call call(to_string(kind), x.loc());
  return call.result(call->unary(kind, call.value(x)));
}

struct Operands {
  ValueId a;
  ValueId b;
};

/// Both in one type.
Operands operands(Call& call, const Operand& a, const Operand& b) {
  if (!a.is_number() && !b.is_number() && call.type(a) == call.type(b)) {
    const ValueId left = call.value(a);
    return {left, call.value(b)};
  }
  if (a.is_number() && b.is_number()) call.refuse("needs a tensor among its operands");
  const DType dtype = call.common_dtype({&a, &b});
  const Shape shape = call.common_shape({&a, &b});
  const ValueId left = call.value(a, dtype, shape);
  return {left, call.value(b, dtype, shape)};
}

Tensor binary(OpKind kind, const Operand& a, const Operand& b) {
  Call call(to_string(kind), a.loc());
  const Operands values = operands(call, a, b);
  return call.result(call->binary(kind, values.a, values.b));
}

Tensor compare(std::string_view name, CompareDirection direction, const Operand& a,
               const Operand& b) {
  Call call(name, a.loc());
  const Operands values = operands(call, a, b);
  return call.result(call->compare(direction, values.a, values.b));
}

Tensor reduce(std::string_view name, ReduceKind kind, const Operand& x,
              const std::vector<int>& dims, bool keepdim) {
  Call call(name, x.loc());
  Shape shape = call.type(x).shape;
  const Dims reduced = call.dims_of(dims, shape.size());
  const ValueId value = call->reduce(kind, call.value(x), reduced);
  if (!keepdim) return call.result(value);
  for (const std::int64_t dim : reduced) shape[static_cast<int>(dim)] = 1;
  return call.result(call->reshape(value, shape));
}

}  // namespace

Tensor full(const Shape& shape, double value, DType dtype, std::source_location loc) {
  Call call("full", loc);
  return call.result(call->constant(value, {dtype, shape}));
}

Tensor iota(const Shape& shape, int dim, DType dtype, std::source_location loc) {
  Call call("iota", loc);
  return call.result(call->iota({dtype, shape}, call.dim_of(dim, shape.size())));
}

Tensor operator+(Operand a, Operand b) { return binary(OpKind::add, a, b); }
Tensor operator-(Operand a, Operand b) { return binary(OpKind::subtract, a, b); }
Tensor operator*(Operand a, Operand b) { return binary(OpKind::multiply, a, b); }
Tensor operator/(Operand a, Operand b) { return binary(OpKind::divide, a, b); }
Tensor operator-(Operand x) { return unary(OpKind::negate, x); }
Tensor maximum(Operand a, Operand b) { return binary(OpKind::maximum, a, b); }
Tensor minimum(Operand a, Operand b) { return binary(OpKind::minimum, a, b); }
Tensor pow(Operand a, Operand b) { return binary(OpKind::power, a, b); }
Tensor equal(Operand a, Operand b) { return compare("equal", CompareDirection::eq, a, b); }
Tensor not_equal(Operand a, Operand b) { return compare("not_equal", CompareDirection::ne, a, b); }
Tensor less(Operand a, Operand b) { return compare("less", CompareDirection::lt, a, b); }
Tensor less_equal(Operand a, Operand b) {
  return compare("less_equal", CompareDirection::le, a, b);
}
Tensor greater(Operand a, Operand b) { return compare("greater", CompareDirection::gt, a, b); }
Tensor greater_equal(Operand a, Operand b) {
  return compare("greater_equal", CompareDirection::ge, a, b);
}

Tensor where(Operand condition, Operand on_true, Operand on_false) {
  Call call("where", condition.loc());
  const DType dtype = call.common_dtype({&on_true, &on_false});
  const Shape shape = call.common_shape({&condition, &on_true, &on_false});
  const ValueId predicate = call.spread(call.value(condition), shape);
  const ValueId left = call.value(on_true, dtype, shape);
  return call.result(call->select(predicate, left, call.value(on_false, dtype, shape)));
}

Tensor exp(Operand x) { return unary(OpKind::exponential, x); }
Tensor log(Operand x) { return unary(OpKind::log, x); }
Tensor sqrt(Operand x) { return unary(OpKind::sqrt, x); }
Tensor rsqrt(Operand x) { return unary(OpKind::rsqrt, x); }
Tensor tanh(Operand x) { return unary(OpKind::tanh, x); }
Tensor sigmoid(Operand x) { return unary(OpKind::logistic, x); }
Tensor softplus(Operand x) { return unary(OpKind::softplus, x); }
Tensor sin(Operand x) { return unary(OpKind::sine, x); }
Tensor cos(Operand x) { return unary(OpKind::cosine, x); }
Tensor abs(Operand x) { return unary(OpKind::abs, x); }

Tensor isfinite(Operand x) {
  Call call("isfinite", x.loc());
  return call.result(call->unary(OpKind::is_finite, call.value(x)));
}

Tensor relu(Operand x) {
  Call call("relu", x.loc());
  return where(greater(x, 0.0), x, 0.0);
}

Tensor cast(Operand x, DType dtype) {
  Call call("cast", x.loc());
  return call.result(call->convert(call.value(x), dtype));
}

Tensor sum(Operand x, std::vector<int> dims, bool keepdim) {
  return reduce("sum", ReduceKind::add, x, dims, keepdim);
}

Tensor mean(Operand x, std::vector<int> dims, bool keepdim) {
  Call call("mean", x.loc());
  if (call.type(x).num_elements() == 0) {
    call.refuse("{} has no elements, and their mean would be NaN; leave an empty batch out",
                call.node(x)->label());
  }
  const Tensor total = reduce("mean", ReduceKind::add, x, dims, keepdim);
  const auto count = static_cast<double>(call.type(x).num_elements());
  return total * (static_cast<double>(total.num_elements()) / count);
}

Tensor amax(Operand x, std::vector<int> dims, bool keepdim) {
  return reduce("amax", ReduceKind::max, x, dims, keepdim);
}

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
    call.refuse("{} has {} elements, which don't make sizes {{{}}}", call.type(x).to_string(),
                elements, fmt::join(sizes, ","));
  }
  return call.result(call->reshape(call.value(x), Shape(shape)));
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
  if (tensors.empty()) call.refuse("needs one tensor at least");
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
  if (call.type(start) != TensorType{DType::i32, {}}) {
    call.refuse("start is {}: expected i32[]", call.node(start)->label());
  }
  Dims sizes(shape.begin(), shape.end());
  sizes[static_cast<std::size_t>(cut)] = length;
  const ValueId value = call.value(x);
  std::vector<ValueId> starts(sizes.size(), call->constant(0, {DType::i32, {}}));
  starts[static_cast<std::size_t>(cut)] = call.value(start);
  return call.result(call->dynamic_slice(value, starts, sizes));
}

Tensor index_add(Operand x, const Tensor& index, const Tensor& source) {
  Call call("index_add", x.loc());
  const TensorType& to = call.type(x);
  Dims expected(call.type(index).shape.begin(), call.type(index).shape.end());
  if (to.shape.size() > 0) expected.insert(expected.end(), to.shape.begin() + 1, to.shape.end());
  if (to.shape.size() == 0 || call.type(index).dtype != DType::i32 ||
      call.type(source).dtype != to.dtype ||
      !std::ranges::equal(call.type(source).shape, expected)) {
    call.refuse(
        "{}, index {} and source {} don't fit; it takes [rows,row...], i32[index...] and "
        "[index...,row...]",
        to.to_string(), call.type(index).to_string(), call.type(source).to_string());
  }
  const ValueId value = call.value(x);
  const ValueId rows = call.value(index);
  const ValueId sums = call->scatter(rows, call.value(source), to.shape[0]);
  return call.result(call->binary(OpKind::add, value, sums));
}

Tensor pad(Operand x, const std::vector<std::array<std::int64_t, 2>>& widths, double value) {
  Call call("pad", x.loc());
  const TensorType type = call.type(x);
  if (static_cast<int>(widths.size()) != type.shape.size()) {
    call.refuse("{} widths for the {} dims of {}: expected {{before, after}} for each",
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

}  // namespace weft
