#include <weft/ops.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

thread_local std::uint64_t thread_seed = 0;

}  // namespace

void manual_seed(std::uint64_t seed) { thread_seed = seed; }
std::uint64_t initial_seed() { return thread_seed; }

Tensor rand(const Shape& shape, std::source_location loc) {
  Call call("rand", loc);
  // The upper 24 bits, all that a float holds.
  const ValueId words = call.trace().random_bits(shape, loc);
  const ValueId upper =
      call->binary(OpKind::divide, words, call->constant(256, {DType::u32, shape}));
  return call.result(call->binary(OpKind::multiply, call->convert(upper, DType::f32),
                                  call->constant(0x1p-24, {DType::f32, shape})));
}

}  // namespace weft
