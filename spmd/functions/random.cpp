#include <weft/ops/elementwise.hpp>

#include <limits>
#include <numbers>

#include "spmd/tensor/call.hpp"

namespace weft {

Tensor rand(const Shape& shape, std::source_location loc) {
  Call call("rand", loc);
  // Only the upper 24 bits are used, because the mantissa of a float has 24 bits.
  const ValueId words = call.trace().random_bits(shape, loc);
  const ValueId upper =
      call->binary(OpKind::divide, words, call->constant(256, {DType::u32, shape}));
  return call.result(call->binary(OpKind::multiply, call->convert(upper, DType::f32),
                                  call->constant(0x1p-24, {DType::f32, shape})));
}

Tensor randn(const Shape& shape, std::source_location loc) {
  Call call("randn", loc);
  // This is the method of Box and Muller (1958). The logarithm is finite, because 1 - rand is in
  // (0, 1].
  const Tensor radius = sqrt(log(Operand(1.0, loc) - rand(shape, loc)) * -2.0);
  return radius * cos(rand(shape, loc) * (2 * std::numbers::pi));
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, std::source_location loc) {
  Call call("randint", loc);
  constexpr std::int64_t kCountMax = std::int64_t{1} << 24;  // a random float has 24 bits
  using Limits = std::numeric_limits<std::int32_t>;
  if (low >= high || high - low > kCountMax || low < Limits::min() || high > Limits::max()) {
    call.refuse(
        "low = {} and high = {}: expected low < high, and at most {} numbers, which fit in i32",
        low, high, kCountMax);
  }
  const Tensor place = floor(rand(shape, loc) * static_cast<double>(high - low));
  return cast(place, DType::i32) + static_cast<double>(low);
}

Tensor bernoulli(Operand p) {
  Call call("bernoulli", p.loc());
  const TensorType type = call.type(p);
  if (!is_floating(type.dtype)) call.refuse("{} isn't floating", call.node(p)->label());
  return cast(less(rand(type.shape, p.loc()), cast(p, DType::f32)), type.dtype);
}

}  // namespace weft
