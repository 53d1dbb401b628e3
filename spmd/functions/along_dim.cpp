#include <weft/ops/along_dim.hpp>

#include <weft/ops/elementwise.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Returns `dim`, which may be negative, as an index from 0. Refuses a tensor without dims.
int axis_of(const Call& call, const Operand& x, int dim) {
  const int num_dims = call.type(x).shape.size();
  if (num_dims == 0) call.refuse("{} has no dims", call.node(x)->label());
  return call.dim_of(dim, num_dims);
}

/// Returns whether x is a scalar and `dim` is valid for it. As in torch, the dims that are valid
/// for a tensor with one dim are also valid for a scalar.
bool is_scalar_of(const Call& call, const Operand& x, int dim) {
  return call.type(x).shape.size() == 0 && (dim == 0 || dim == -1);
}

Tensor as_scalar(const Tensor& x) { return reshape(x, Shape()); }

/// Returns x with `axis` and the last dim exchanged.
Tensor turned(const Operand& x, int axis) {
  return axis + 1 == x.tensor().shape().size() ? x.tensor() : transpose(x, axis, -1);
}

/// The chips of a host sort a row of at least this many elements together. Sorting a shorter row
/// together isn't faster than sorting it on every chip, because of the all_gather.
constexpr std::int64_t kSortedTogetherMin = 1 << 16;

/// If the shape is a single long row, returns the atoms over which chips sort it together: all
/// atoms within a host. Otherwise returns no atoms, and each chip sorts its own rows.
AtomList sorting_atoms(Call& call, const Shape& shape) {
  const Mesh* mesh = call.trace().runtime().mesh();
  const std::int64_t size = shape[shape.size() - 1];
  if (mesh == nullptr || size < kSortedTogetherMin || shape.num_elements() != size) return {};
  const auto busy =
      static_cast<AtomMask>(mesh->dcn_atoms() | call.trace().regions().shard_maps.manual());
  return mesh->list(static_cast<AtomMask>(mesh->all_atoms() & ~busy));
}

Tensor order(Call& call, const Operand& x, int axis, bool descending) {
  const Tensor rows = turned(x, axis);
  const Shape shape = call.type(rows).shape;
  const AtomList atoms = sorting_atoms(call, shape);
  if (atoms.empty()) {
    return turned(call.result(call->argsort(call.value(rows), descending)), axis);
  }
  const int last = shape.size() - 1;
  Sharding parts = Sharding::closed();
  parts.dims[static_cast<std::size_t>(last)] = atoms;
  const ValueId places = call->sharding_constraint(call->iota({DType::i32, shape}, last), parts);
  const ValueId part = call->argsort(call.value(rows), descending, places);
  const ValueId whole =
      call->sharding_constraint(call->sharding_constraint(part, parts), Sharding::closed());
  return turned(call.result(whole), axis);
}

/// Returns `index` with a check that its elements are valid for a dim of this size.
Tensor checked(Call& call, const Tensor& index, std::int64_t size) {
  return call.result(call->check_index(call.value(call.index(index)), size));
}

/// Returns the elements of x at `index` along `axis`. Doesn't check `index`, because it was
/// computed in this file.
Tensor take(Call& call, const Operand& x, int axis, const Tensor& index) {
  const Tensor rows = turned(x, axis);
  const Tensor places = turned(index, axis);
  return turned(call.result(call->take_along(call.value(rows), call.value(places))), axis);
}

}  // namespace

Tensor argsort(Operand x, int dim, bool descending) {
  Call call("argsort", x.loc());
  if (is_scalar_of(call, x, dim)) return full({}, 0, DType::i32, x.loc());
  return order(call, x, axis_of(call, x, dim), descending);
}

Sorted sort(Operand x, int dim, bool descending) {
  Call call("sort", x.loc());
  if (is_scalar_of(call, x, dim)) return {x.tensor(), full({}, 0, DType::i32, x.loc())};
  const int axis = axis_of(call, x, dim);
  const Tensor indices = order(call, x, axis, descending);
  return {take(call, x, axis, indices), indices};
}

Sorted topk(Operand x, std::int64_t k, int dim, bool largest) {
  Call call("topk", x.loc());
  if (is_scalar_of(call, x, dim)) {
    const Sorted row = topk(reshape(x, {1}), k, 0, largest);
    return k == 1 ? Sorted{as_scalar(row.values), as_scalar(row.indices)} : row;
  }
  const int axis = axis_of(call, x, dim);
  const std::int64_t size = call.type(x).shape[axis];
  if (k < 0 || k > size) call.refuse("k = {}: expected 0 to {}, the size of dim {}", k, size, dim);
  const Tensor indices = slice(order(call, x, axis, largest), axis, 0, k);
  return {take(call, x, axis, indices), indices};
}

Tensor gather(Operand x, int dim, const Tensor& index) {
  Call call("gather", x.loc());
  const int axis = axis_of(call, x, dim);
  const Shape shape = call.type(x).shape;
  const Shape& places = call.type(index).shape;
  bool fits = places.size() == shape.size();
  Tensor part = x.tensor();
  for (int d = 0; fits && d < shape.size(); ++d) {
    if (d == axis || places[d] == shape[d]) continue;
    fits = places[d] < shape[d];
    part = slice(part, d, 0, places[d]);
  }
  if (!fits) {
    call.refuse("the index {} doesn't fit {}: except for dim {}, its dims must be at most as large",
                call.node(index)->label(), call.node(x)->label(), dim);
  }
  return take(call, part, axis, checked(call, index, shape[axis]));
}

Tensor scatter_add(Operand x, int dim, const Tensor& index, const Tensor& source) {
  Call call("scatter_add", x.loc());
  const int axis = axis_of(call, x, dim);
  const TensorType& to = call.type(x);
  const TensorType& from = call.type(source);
  bool fits = from.shape.size() == to.shape.size() && from.dtype == to.dtype &&
              call.type(index).shape == from.shape;
  for (int d = 0; fits && d < to.shape.size(); ++d) {
    fits = d == axis || from.shape[d] == to.shape[d];
  }
  if (!fits) {
    call.refuse("{}, index {} and source {} don't fit: all dims except dim {} must be equal",
                call.node(x)->label(), call.node(index)->label(), call.node(source)->label(), dim);
  }
  const Tensor places = turned(checked(call, index, to.shape[axis]), axis);
  const Tensor updates = turned(source, axis);
  const ValueId sums = call->scatter_along(call.value(places), call.value(updates), to.shape[axis]);
  return x + turned(call.result(sums), axis);
}

Tensor cumsum(Operand x, int dim) {
  Call call("cumsum", x.loc());
  if (is_summed_as_i32(call.type(x).dtype)) return cumsum(cast(x, DType::i32), dim);
  if (is_scalar_of(call, x, dim)) return x.tensor();
  const int axis = axis_of(call, x, dim);
  const TensorType type = call.type(x);
  return linear_recurrence(full(type.shape, 1, type.dtype, x.loc()), x.tensor(), axis);
}

Tensor cumprod(Operand x, int dim) {
  Call call("cumprod", x.loc());
  if (is_summed_as_i32(call.type(x).dtype)) return cumprod(cast(x, DType::i32), dim);
  if (is_scalar_of(call, x, dim)) return x.tensor();
  const int axis = axis_of(call, x, dim);
  const Tensor is_first = equal(iota(call.type(x).shape, axis, DType::i32, x.loc()), 0.0);
  // The first factor is 1 instead of x. It multiplies the initial 0, which an infinite x would turn
  // into NaN.
  return linear_recurrence(where(is_first, 1.0, x), where(is_first, x, 0.0), axis);
}

Tensor linear_recurrence(Operand a, const Tensor& b, int dim) {
  Call call("linear_recurrence", a.loc());
  const int axis = axis_of(call, a, dim);
  if (call.type(a) != call.type(b)) {
    call.refuse("{} and {} differ; both must have one type", call.node(a)->label(),
                call.node(b)->label());
  }
  const Tensor factors = turned(a, axis);
  const Tensor terms = turned(b, axis);
  return turned(call.result(call->linear_recurrence(call.value(factors), call.value(terms), false)),
                axis);
}

Tensor randperm(std::int64_t n, std::source_location loc) {
  Call call("randperm", loc);
  if (n < 0) call.refuse("n = {}: expected 0 or more", n);
  return argsort(rand({n}, loc));
}

Tensor multinomial(Operand weights, std::int64_t count, bool replacement) {
  Call call("multinomial", weights.loc());
  const int last = axis_of(call, weights, -1);
  const TensorType type = call.type(weights);
  const std::int64_t size = type.shape[last];
  if (!is_floating(type.dtype)) call.refuse("{} isn't floating", call.node(weights)->label());
  if (size == 0 || count < 0 || (!replacement && count > size)) {
    call.refuse("count = {} of {}: expected 0 to {} without replacement, and one element or more",
                count, call.node(weights)->label(), size);
  }
  const Tensor chances = stop_gradient(cast(weights, DType::f32));
  if (!replacement) {
    // The results are the indices of the largest log(weight) + Gumbel noise (E. Gumbel, 1954; W.
    // Kool et al., 2019).
    const Tensor noise =
        log(log(Operand(1.0, weights.loc()) - rand(type.shape, weights.loc())) * -1.0) * -1.0;
    return topk(log(chances) + noise, count).indices;
  }
  Dims sizes(type.shape.begin(), type.shape.end());
  sizes.back() = count;
  const Tensor sums = cumsum(chances, -1);
  const Tensor total = slice(sums, -1, size - 1, size);
  // `place` must be less than the total: a product that is rounded up to the total would choose the
  // last element, even if its weight is 0.
  const Tensor place = minimum(rand(Shape(sizes), weights.loc()) * total, total * (1 - 0x1p-23));
  const Tensor is_passed = less_equal(unsqueeze(sums, -2), unsqueeze(place, -1));
  const Tensor passed = sum(cast(is_passed, DType::i32), {-1});
  return minimum(passed, static_cast<double>(size - 1));
}

}  // namespace weft
