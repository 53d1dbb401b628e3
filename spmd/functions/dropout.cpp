#include <cmath>

#include <weft/nn/functional.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

void expect_droppable(const Call& call, const Operand& x, double p) {
  if (!(p >= 0 && p <= 1)) call.refuse("p = {}: expected a probability from 0 to 1", p);
  if (is_floating(call.type(x).dtype)) return;
  call.refuse("{} isn't floating; cast it first", call.node(x)->label());
}

/// Returns a tensor whose elements are true with probability 1 - p. Requires 0 < p < 1.
Tensor kept(Call& call, const Shape& shape, double p) {
  const ValueId words = call.trace().random_bits(shape, call.loc());
  const ValueId bound = call->constant(std::floor(p * 0x1p32), {DType::u32, shape});
  return call.result(call->compare(CompareDirection::ge, words, bound));
}

/// Draws for each element of `shape` whether to keep all elements of x to which it is broadcast.
/// Returns x / (1 - p) for elements that are kept, and 0 for the others.
Tensor dropped(Call& call, const Operand& x, const Shape& shape, double p) {
  if (p == 0) return call.result(call.value(x));
  if (p == 1) return call.result(call->constant(0, call.type(x)));
  return where(kept(call, shape, p), x * (1 / (1 - p)), 0.0);
}

/// Drops complete channels of x[N,C,...], which has `num_dims` dims after C. If `may_lack_batch`, x
/// may lack N.
Tensor dropped_channels(const char* name, const Operand& x, double p, int num_dims,
                        bool may_lack_batch) {
  Call call(name, x.loc());
  expect_droppable(call, x, p);
  Shape shape = call.type(x).shape;
  const bool lacks_batch = may_lack_batch && shape.size() == num_dims + 1;
  if (shape.size() != num_dims + 2 && !lacks_batch) {
    call.refuse(
        "{} has {} dims: expected [N,C] and {} more dims{}", call.node(x)->label(), shape.size(),
        num_dims,
        may_lack_batch ? ", or the same without N" : "; unsqueeze(x, 0) adds a dim N of size 1");
  }
  for (int dim = lacks_batch ? 1 : 2; dim < shape.size(); ++dim) shape[dim] = 1;
  return dropped(call, x, shape, p);
}

}  // namespace

Tensor dropout(Operand x, double p) {
  Call call("dropout", x.loc());
  expect_droppable(call, x, p);
  return dropped(call, x, call.type(x).shape, p);
}

Tensor dropout1d(Operand x, double p) { return dropped_channels("dropout1d", x, p, 1, true); }
// dropout2d refuses x without N, because torch takes three dims as [N,C,L] there.
Tensor dropout2d(Operand x, double p) { return dropped_channels("dropout2d", x, p, 2, false); }
Tensor dropout3d(Operand x, double p) { return dropped_channels("dropout3d", x, p, 3, true); }

Tensor alpha_dropout(Operand x, double p) {
  Call call("alpha_dropout", x.loc());
  expect_droppable(call, x, p);
  if (p == 0 || p == 1) return dropped(call, x, call.type(x).shape, p);
  constexpr double kAlpha = 1.7580993408473766;  // the absolute value of selu at -infinity
  const double scale = 1 / std::sqrt((1 - p) * (1 + p * kAlpha * kAlpha));
  const Tensor keeps = kept(call, call.type(x).shape, p);
  return where(keeps, x * scale, -kAlpha * scale) + kAlpha * scale * p;
}

}  // namespace weft
